/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_TURN_H
#define SCHEDULER_TURN_H

/* Whose turn comes next, and what the last one cost. */

#include "scheduler/scheduler.h"

/*
 * turn_pick() - the next one, with how long it shall last
 *
 * What is taken off for earlier overshoot is taken off now. The weights are up to date, and
 * somebody takes turns.
 */
struct scheduler_member *turn_pick(struct scheduler *scheduler, uint64_t *ret_target);

/* turn_charge() - the @target ns that were @member's lasted @run ns, whether it had work or not. */
void turn_charge(struct scheduler_member *member, uint64_t run, uint64_t target);

/* turn_log() - a turn of @member that is charged. */
void turn_log(struct scheduler *scheduler, const struct scheduler_member *member, uint64_t run,
              uint64_t target, uint64_t now);

#endif
