/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_MARGIN_H
#define MOVER_MARGIN_H

/*
 * The margin: memory of the mover's device that is not used, so that a device filled to the last is not full for the
 * driver. Its checkpoint of a process takes some MiB of the device for a moment. If there are none it fails, and every
 * later checkpoint of that process, too (`bench/full-device`). New streams of the mover and its page tables need
 * some as well. So the margin is lent: given back right before such a call, and taken again behind it. What is lent may
 * be taken by others meanwhile; then there is none until a vGPU leaves.
 *
 * Threads: any.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "mover/mapping.h"

/* So long the driver may not yet tell what was released: it answers before all of it is free. */
#define MARGIN_LATE_NS 20000000u

struct margin {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned int n_calls; /* that have a part of it: margin_begin_call() */
        unsigned int n_lent;
        uint64_t wanted;        /* bytes; 0: the device has not been used yet */
        uint64_t not_before_ns; /* there was no room for it */
        struct mapping
                memory; /* mapped nowhere; empty while it is lent, or there was no room for it */
};

void margin_init(struct margin *margin);

/* margin_want() - of @id, which has @total bytes, from now on. */
void margin_want(struct margin *margin, uint64_t total);

/* margin_take() - if it is wanted, not lent, and not there. No room for it is no failure. */
void margin_take(struct margin *margin, const struct room_taking *taking, CUdevice id);

/* margin_lend() - until as many margin_return(), behind which margin_take() takes it again. */
void margin_lend(struct margin *margin);
void margin_return(struct margin *margin);

/* margin_drop() - it is not wanted any more. */
void margin_drop(struct margin *margin);

/* margin_is_lacking() - is it to be taken: wanted, neither there nor lent, and not just tried in vain? */
bool margin_is_lacking(struct margin *margin);

/*
 * margin_begin_call() - while it is lent: a part of it is for one call of the driver, until margin_end_call(). Where
 * there is not enough for all that are under way it waits for their ends.
 * @is_known: the device's context is current, so that the driver can be asked what is free; else nothing is known
 *
 * Errors: -ENOSPC, there is too little for this one.
 */
int margin_begin_call(struct margin *margin, bool is_known);
void margin_end_call(struct margin *margin);

/*
 * margin_read_free() - free memory of the current context's device, but for what is missing of the margin: both of
 * the same moment. Errors: a driver call.
 */
int margin_read_free(struct margin *margin, uint64_t *ret_free, struct mover_done *done);

#endif
