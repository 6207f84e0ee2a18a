/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_AGENT_H
#define GATE_AGENT_H

/*
 * The agent: one thread in the guest that carries out the manager's requests (wire/gate.h). It
 * starts when the process has joined its vGPU, blocks all signals, and sleeps between requests.
 */

#include "wire/gate.h"

/* agent_describe() - adds to @join what this process has of other processes' memory. For link_join(). */
void agent_describe(struct gate_join *join);

/* agent_start() - start the agent, and give it the connection to the manager. Errors: -EAGAIN. */
int agent_start(int socket);

#endif
