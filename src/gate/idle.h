/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_IDLE_H
#define GATE_IDLE_H

/*
 * Asks the driver whether the device has completed all work of the process so far. An event behind
 * all work of each context answers this beside the running program: it costs 3 us and waits for
 * nothing.
 *
 * In the meantime no context may end and no capture may begin or end (idle_hold() surrounds such
 * calls; an event behind all work would invalidate a capture), the process may not be exiting, and
 * the gate may not be closed: threads of the guest come here before they have a mark of their own.
 */

#include <stdbool.h>

#include "abi/cuda.h"

/*
 * idle_mark() - put an event behind all work there is. Errors: -EBUSY, not now; -ENOTSUP, this
 * driver cannot or there are too many contexts; -EIO, it failed.
 */
int idle_mark(void);

/* idle_is_reached() - is all work done that came before the mark? */
bool idle_is_reached(void);

/*
 * idle_look() - by the agent, with the gate closed: which contexts have work? True: some have, and some
 * have none. idle_was_busy() - did @context have some then?
 */
bool idle_look(void);
bool idle_was_busy(CUcontext context);

/* idle_drop_context() - forget @context, which has ended; with idle_hold(). */
void idle_drop_context(CUcontext context);

#endif
