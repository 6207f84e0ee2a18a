/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_TURNS_H
#define GATE_TURNS_H

/*
 * Reports whether the process has work for the device, and takes turns at the gate.
 *
 * Both happen only while the manager wants them (GATE_WATCH); otherwise a launch pays one
 * comparison.
 *
 * REPORT: the flag gate_watch is set. The next call that submits work clears the flag and reports
 * work. The agent sets the flag again every 2 ms. If the agent finds the flag still set, nothing
 * was submitted in between, and it asks the driver whether all work is done (idle.h). If so, the
 * process is idle, and the agent sleeps until the next submission wakes it.
 *
 * TURNS: gate_watch stays set. Each submission waits until the manager has opened the vGPU's turn.
 * Only a few submissions are on the device at a time, so that a turn can end soon. A thread waits
 * for them at most half a second, because they may wait for the thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

/* Set while calls that give the device work go through turns_submit() first. */
extern _Atomic uint32_t gate_watch;

/* turns_watch() - watch for work as the manager says; for the agent. */
void turns_watch(enum gate_watch watch);

/*
 * turns_wait() - for the agent, between messages: look whether there is work, and wait until @socket has one. False:
 * @socket may have none; the agent was woken, it is time for another look, or @most_ms are over (-1: never).
 */
bool turns_wait(int socket, bool is_open, int most_ms);

/* turns_submit() - called by a thread that is about to give the device work, while gate_watch is set. */
void turns_submit(void);

#endif
