/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_AGENT_H
#define GATE_AGENT_H

/*
 * The agent: one thread in the guest that carries out the manager's requests (wire/gate.h). It
 * starts when the process has joined its vGPU, blocks all signals, and sleeps between requests.
 */

/* agent_start() - with the connection to the manager, which it takes. Errors: -EAGAIN. */
int agent_start(int socket);

/* agent_forget() - in the child of a fork: the thread is not there, and the socket is the parent's. */
void agent_forget(void);

#endif
