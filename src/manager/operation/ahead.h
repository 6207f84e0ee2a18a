/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_AHEAD_H
#define MANAGER_AHEAD_H

/*
 * Pre-copy: before the programs of a suspend stop, their memory is copied while they run, so that only what
 * they change at the end is copied while they stand still.
 *
 *     close the gate -> export -> open the gate -> copy what differs -> drop the exported -> again, a few times
 *
 * What arrives is of no one moment, but the mover tells hashes of what has arrived (MOVER_JOB_LIVE). They are a
 * clean copy's (clean-copy.h), which nobody believes: with the gate closed for good all memory is hashed, and
 * what differs is copied again. So nothing that happens meanwhile has to be looked after, and nothing of this
 * fails the operation: where it does not come about, more is left to copy at the end.
 *
 * Memory that a program frees meanwhile is held by the mover until it is noticed (LOOK_US); where the program has as
 * much again at once, that is at the end of the round. So an allocation that the driver refuses, of any vGPU on these
 * devices, waits until all is let go, which it ends, and is tried again.
 *
 * Processes that share memory take no part: closed one by one they could not be exported.
 */

#include <stdbool.h>

struct device;
struct operation;

/* ahead_run() - a step, before the gates close; all processes at once, each in its own rounds. */
void ahead_run(struct operation *operation);

/* ahead_lets_wait() - does an allocation wait that finds @device full? */
bool ahead_lets_wait(const struct device *device);

#endif
