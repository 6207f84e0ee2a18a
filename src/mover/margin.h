/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_MARGIN_H
#define MOVER_MARGIN_H

/*
 * The margin: memory of the mover's device that is not used, so that a device filled to the last is not full for the
 * driver. Its checkpoint of a process takes some MiB of the device for a moment. If there are none it fails, and every
 * later checkpoint of that process, too (`bench/full-device`). New streams of the mover and its page tables need
 * some as well. So the margin is lent: given back right before such a call, and taken again behind it.
 *
 * What is lent is not for any other. Gates are under ceilings by then, which leave the margin alone (model/ceiling.h). In
 * the mover each call of the driver under way has a claim to what is free, and the next begins only with what is left:
 *
 *     claim        of                                             begins
 *     CHECKPOINT   a part of the margin                           when there is so much beside all claims
 *     RESTORE      the hold that is let go for it                 at once: it has been held until now
 *     HOLD         what a checkpoint has made free, as a hold     if that leaves all claims and the margin, or not at all
 *
 * Other takings wait while there are such calls (mover/room.h). What a program outside has taken is gone; then there is
 * no margin until a vGPU leaves.
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

enum margin_call { MARGIN_CHECKPOINT, MARGIN_RESTORE, MARGIN_HOLD };

/* All zero: none. */
struct margin_claim {
        uint64_t bytes;
};

struct margin {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        uint64_t claimed;     /* by calls that are under way */
        unsigned int n_ended; /* of those, ever */
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

/* margin_is_lacking() - is it to be taken: wanted, neither there nor lent, and not just tried in vain? */
bool margin_is_lacking(struct margin *margin);

/*
 * margin_claim() - for one call of the driver, while the margin is lent and a window is open, until margin_unclaim(). A
 * checkpoint that lacks room waits for the ends of the others that are under way.
 * @bytes: of a restore and of a hold; of a checkpoint it is a part of the margin
 * @is_known: the device's context is current, so that the driver can be asked what is free; else nothing is known
 *
 * Errors: -ENOSPC, there is too little for this one.
 */
int margin_claim(struct margin *margin, enum margin_call call, uint64_t bytes, bool is_known,
                 struct margin_claim *ret_claim);
void margin_unclaim(struct margin *margin, struct margin_claim *claim);

/*
 * margin_read_free() - free memory of the current context's device, but for what is missing of the margin: both of
 * the same moment. Errors: a driver call.
 */
int margin_read_free(struct margin *margin, uint64_t *ret_free, struct mover_done *done);

#endif
