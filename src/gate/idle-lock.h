/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_IDLE_LOCK_H
#define GATE_IDLE_LOCK_H

/*
 * The lock under which the gate asks the driver whether work is done (idle.h). While a thread has it, no
 * context ends, and no capture begins or ends.
 */

#include <stdbool.h>

void idle_hold(void);
void idle_release(void);

/* idle_try_hold() - false: somebody else has the lock. */
bool idle_try_hold(void);

/* idle_lock_forget() - in the child of a fork; idle_forget() calls it. */
void idle_lock_forget(void);

#endif
