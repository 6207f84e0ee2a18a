/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_HOLDER_H
#define CHECKPOINT_HOLDER_H

/*
 * The processes that are held. A hold lasts until anybody has unlocked its process. The action that
 * began the hold is over by then, and our caller may have ended. This process then stays only for
 * the hold.
 */

#include <stdbool.h>
#include <sys/types.h>

/*
 * holder_hold() - stop the threads of the locked process @pid, of which @pidfd is; that stays the
 * caller's Errors: as hold_begin() (-ESRCH: it has ended), -E2BIG, those of the kernel.
 */
int holder_hold(pid_t pid, int pidfd);

/* holder_check() - let go who runs again or has ended. Returns whether somebody is still held. */
bool holder_check(void);

/* How often to check while somebody is held. */
#define HOLDER_CHECK_MS 5

#endif
