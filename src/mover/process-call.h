/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_PROCESS_CALL_H
#define MOVER_PROCESS_CALL_H

/*
 * The driver's checkpoint calls on a process.
 *
 * Such a call may never return: a control group freezes the process in the middle of it, or the driver waits for what
 * never happens. So each is made in a thread of its own, and the caller waits for it until a deadline. A call that has
 * not returned by then is left behind with its thread, and a thread that waits for a lock of the caller's goes on. The driver
 * is not asked about that process again until the call has returned, which the manager is told (RETURNED). It is told
 * behind the answers that say that it has not: a request about a process is of one thread, which says when its answer
 * is sent (process_told()).
 *
 * Errors of all: -ESRCH, the process has ended, and no call was made: its number may be another's by now; -EINPROGRESS,
 * this call or the one before it has not returned, and @done names it; -ENOMEM and -EIO as those of DRIVER_CALL().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "wire/mover.h"

struct process_target {
        int pid;
        int pidfd;
        uint32_t call_ms; /* so long a call is waited for; 0: until it returns */
};

/* process_has_ended() - has the process of @target ended? */
bool process_has_ended(const struct process_target *target);

int process_get_state(const struct process_target *target, CUprocessState *ret_state,
                      struct mover_done *done);

/* process_lock() - @timeout_ms: so long the driver waits; 0: for ever. It is waited for that much longer. */
int process_lock(const struct process_target *target, uint32_t timeout_ms, struct mover_done *done);

int process_checkpoint(const struct process_target *target, struct mover_done *done);

/* process_restore() - @pairs: @n of them, at most MOVER_PAIRS_MAX; none: to the same devices. */
int process_restore(const struct process_target *target, const struct mover_pair *pairs, size_t n,
                    struct mover_done *done);

int process_unlock(const struct process_target *target, struct mover_done *done);

/* process_told() - this thread's request is answered; before that no return of what it has met as left is told. */
void process_told(void);

#endif
