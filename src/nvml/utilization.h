/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_UTILIZATION_H
#define NVML_UTILIZATION_H

/*
 * The calls for samples of utilization share this.
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
        bool is_told;              /* false: the process is idle: it needs room and gets no entry */
};

/* Finds the next vGPU or process that has a sample. Start with *cursor 0; false ends the loop. */
typedef bool (*utilization_next)(struct utilization *ret_one, uint32_t *cursor, uint32_t device);

/* utilization_next_instance() - loop over the active vGPUs of a device, idle ones too. */
bool utilization_next_instance(struct utilization *ret_one, uint32_t *cursor, uint32_t device);

/* utilization_next_process() - loop over the processes; only those that worked in the last period are told. */
bool utilization_next_process(struct utilization *ret_one, uint32_t *cursor, uint32_t device);

/* The kind of a list: whom it tells of, and how one element is written. */
struct utilization_list {
        utilization_next next;
        void (*fill)(void *element, const struct utilization *one);
        size_t size; /* of an element */
};

/*
 * utilization_answer() - write the samples newer than @last_seen_us into the caller's @elements, of which
 * there are *@count. With a NULL array, answer how many there are in all, idle ones included, as
 * INSUFFICIENT_SIZE, or SUCCESS for 0. NOT_FOUND: there is no entry to write.
 */
nvmlReturn_t utilization_answer(const struct utilization_list *list, uint32_t device,
                                unsigned long long last_seen_us, void *elements,
                                unsigned int *count);

#endif
