/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_HOLDER_H
#define CHECKPOINT_HOLDER_H

/*
 * The list of the processes that are held. A hold lasts until anybody has unlocked its process. The action that
 * began the hold is over by then, and our caller may have ended. This process then stays only for
 * the hold.
 */

#include <stdbool.h>
#include <sys/types.h>

/*
 * holder_hold() - stop the threads of the locked process @pid; @pidfd refers to it and stays the caller's
 * Errors: those of hold_begin() (-ESRCH: the process has ended), -E2BIG, those of the kernel.
 */
int holder_hold(pid_t pid, int pidfd);

/* holder_check() - let go of each process that runs again or has ended. Is any process still held? */
bool holder_check(void);

/* The time between two checks while a process is held. */
#define HOLDER_CHECK_MS 5

#endif
