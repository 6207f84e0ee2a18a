/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_TURNS_H
#define GATE_TURNS_H

/*
 * Does the process have work for the device, and may it have it there just now?
 *
 * Only while the manager wants it (GATE_WATCH): otherwise this costs one comparison a launch.
 *
 * REPORT: the flag gate_watch is set, and the next call that gives the device work clears it and says
 * so. The agent sets it again at its next look, every 2 ms. Where it finds it still set, nothing was
 * submitted in between, and it asks the driver whether all is done (idle.h). If so, the process is
 * idle, and the agent sleeps until the next submission wakes it.
 *
 * TURNS: gate_watch stays set. Each submission waits until the manager has opened the vGPU's turn, and
 * no more than a few are on the device at a time, so that a turn can end soon. A thread waits for them no
 * longer than half a second, for they may wait for it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

/* turns_watch() - as the manager has said; the agent's. */
void turns_watch(enum gate_watch watch);

/* turns_wait() - for the agent, between messages: look now and then until @socket has one. */
void turns_wait(int socket, bool is_open);

/* turns_submit() - by a thread that is about to give the device work, while gate_watch is set. */
void turns_submit(void);

/* turns_forget() - in the child of a fork. */
void turns_forget(void);

#endif
