/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_WAKE_H
#define GATE_WAKE_H

/* Wakes the agent between two messages of the manager. */

/* wake_open() - from now on the agent can be woken. */
void wake_open(void);

/* wake_get_fd() - an eventfd, readable once somebody woke the agent; -1: not opened yet. */
int wake_get_fd(void);

/* wake_agent() - has the agent look again. Nothing happens before wake_open(). */
void wake_agent(void);

#endif
