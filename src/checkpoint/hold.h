/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_HOLD_H
#define CHECKPOINT_HOLD_H

/*
 * Holding a locked process: its threads are stopped, by ptrace, until it is unlocked again.
 *
 * Measured on driver 580: a lock does not stop cuCtxSynchronize(). A thread in a loop of it runs on in
 * the driver while the checkpoint takes the context away under it, and dies of a segmentation fault
 * (each time); also when it comes back to the loop only after the checkpoint. A process whose threads
 * were stopped all the time from its lock to its unlock survived, each time.
 *
 * The driver's own threads, one of which does the checkpoint, run on; so do those that sleep in a
 * call that does wait for the unlock. A thread that runs is stopped outside of the driver if it can be
 * found there in time: neither its program counter nor a return address on its stack lies in the
 * driver's library. Else it is stopped where it is, which was survived as well.
 *
 * The kernel lets the threads go when the process that holds them ends, whatever way.
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
 * @timeout_ms:  for each thread to be found outside of the driver
 *
 * Errors: -ESRCH; -EPERM, it may not be traced, or is traced already; -ENOMEM.
 */
int hold_begin(struct hold *hold, pid_t pid, unsigned int timeout_ms);

/* hold_end() - let them go; does nothing when nothing is held. */
void hold_end(struct hold *hold);

/*
 * hold_look() - does a thread of the locked process @pid run inside the driver?
 *
 * Stops threads that run for an instant, some times, to see where they are. What cannot be looked at
 * is not seen: then the answer is no.
 */
bool hold_look(pid_t pid);

#endif
