/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_UTILIZATION_H
#define NVML_UTILIZATION_H

/*
 * Shared by the calls for samples of utilization.
 *
 * Each vGPU and each process has a ring of samples; a call returns the newest sample of each ring.
 * A sample is new if it is strictly newer than the caller's time stamp. A caller that passes the
 * newest stamp gets NOT_FOUND until there is a newer sample.
 */

#include <stdbool.h>
#include <stddef.h>

#include "nvml/answer.h"
#include "state/state-page.h"

struct utilization {
        struct state_sample sample;
        char name[STATE_NAME_MAX]; /* of the process; "" for a vGPU */
        bool is_told;              /* false: an idle process, which needs room and gets no entry */
};

/* Who is asked about: the next one that has a sample. Start with *cursor 0; false ends. */
typedef bool (*utilization_next)(struct utilization *ret_one, uint32_t *cursor, uint32_t device);

/* utilization_next_instance() - the active vGPUs of a device: idle ones too. */
bool utilization_next_instance(struct utilization *ret_one, uint32_t *cursor, uint32_t device);

/* utilization_next_process() - the processes; only those that did something in the last period are told. */
bool utilization_next_process(struct utilization *ret_one, uint32_t *cursor, uint32_t device);

/* What kind of list is answered: of whom, and how one element is written. */
struct utilization_list {
        utilization_next next;
        void (*fill)(void *element, const struct utilization *one);
        size_t size; /* of an element */
};

/*
 * utilization_answer() - those newer than @last_seen_us, into the caller's @elements, of which
 * there are *@count. With a NULL array the answer is how many there are in all, idle ones included,
 * as INSUFFICIENT_SIZE, or SUCCESS when it is 0. NOT_FOUND: there is no entry to write.
 */
nvmlReturn_t utilization_answer(const struct utilization_list *list, uint32_t device,
                                unsigned long long last_seen_us, void *elements,
                                unsigned int *count);

#endif
