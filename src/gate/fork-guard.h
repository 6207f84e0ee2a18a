/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FORK_GUARD_H
#define GATE_FORK_GUARD_H

/*
 * A descriptor of device memory keeps the memory occupied, also in the child of a fork, which does
 * not know about it. The child therefore closes all such descriptors (child.h). To find them all,
 * nobody forks between fork_guard_enter() and fork_guard_leave(), and code that gets or closes such
 * a descriptor records it in between.
 *
 * fork_guard_start() - before the first of them, and after the driver has been at work: its own
 * handlers of a fork then come behind ours, and no thread waits for us with the driver's locks.
 */

void fork_guard_start(void);
void fork_guard_enter(void);
void fork_guard_leave(void);

#endif
