/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_IDLE_LOCK_H
#define GATE_IDLE_LOCK_H

/*
 * The lock under which the gate asks the driver whether work is done (idle.h). While a thread has it, no capture begins
 * or ends.
 *
 * The end of a context takes as long as its work, which may wait for other threads. So the lock is not held over the
 * driver's call: from idle_pause() to idle_unpause() nothing is asked, and everything else goes on.
 */

#include <stdbool.h>

void idle_hold(void);
void idle_release(void);

/* idle_try_hold() - false: another thread has the lock, or a context is ending. */
bool idle_try_hold(void);

/*
 * idle_pause() - before a call of the driver that may end a context. idle_unpause() - after it: the caller has the lock, and
 * forgets what ended with the context before idle_release().
 */
void idle_pause(void);
void idle_unpause(void);

/* idle_is_paused() - with the lock. */
bool idle_is_paused(void);

/* idle_lock_forget() - in the child of a fork; idle_forget() calls it. */
void idle_lock_forget(void);

#endif
