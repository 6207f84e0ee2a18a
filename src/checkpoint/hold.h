/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_HOLD_H
#define CHECKPOINT_HOLD_H

/*
 * Holds a locked process: ptrace stops its threads until the process is unlocked again.
 *
 * Measured on driver 580: a lock does not stop cuCtxSynchronize(). A thread in a loop of this call
 * keeps running in the driver while the checkpoint takes its context away, and dies of a
 * segmentation fault (each time), also if it comes back to the loop only after the checkpoint. A
 * process whose threads were stopped from its lock to its unlock survived, each time.
 *
 * The driver's own threads keep running, because one of them does the checkpoint. So do threads
 * that sleep in a call that waits for the unlock. A running thread is stopped outside of the driver
 * if it can be found there in time: then neither its program counter nor a return address on its
 * stack lies in the driver's library. Otherwise it is stopped where it is; processes survived this
 * as well.
 *
 * The kernel continues the threads when the process that holds them ends, in whatever way.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hold {
        pid_t pid; /* 0: holds nothing */
        pid_t *thread;
        size_t n_threads;
};

/*
 * hold_begin() - stop the threads of the locked process @pid
 * @timeout_ms:  how long to try to find each thread outside of the driver
 *
 * Errors: -ESRCH; -EPERM, it may not be traced, or is traced already; -ENOMEM.
 */
int hold_begin(struct hold *hold, pid_t pid, unsigned int timeout_ms);

/* hold_end() - let the threads go, if any are held. */
void hold_end(struct hold *hold);

/*
 * hold_look() - does a thread of the locked process @pid run inside the driver?
 *
 * Stops running threads for an instant, several times, to see where they are. If it cannot look at a
 * thread, the answer is no.
 */
bool hold_look(pid_t pid);

#endif
