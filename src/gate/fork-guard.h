/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FORK_GUARD_H
#define GATE_FORK_GUARD_H

/*
 * Descriptors of device memory keep it occupied in whoever has one, also in the child of a fork that
 * knows nothing of it. So the child closes them (child.h), and must find them all: between
 * fork_guard_enter() and fork_guard_leave() nobody forks. What gets or closes such descriptors notes
 * that within.
 *
 * fork_guard_start() - before the first of them, and after the driver has been at work: its own handlers
 * of a fork then come behind ours, and no thread waits for us with the driver's locks.
 */

void fork_guard_start(void);
void fork_guard_enter(void);
void fork_guard_leave(void);

#endif
