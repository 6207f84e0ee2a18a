/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_WEIGHT_H
#define SCHEDULER_WEIGHT_H

/* Entitlements of the members of a scheduler, and the lengths of their turns. */

#include "scheduler/member.h"

/*
 * weight_refresh() - members or settings are others: set what each is entitled to when all have work
 * (member->entitled). weight_update() must follow.
 */
void weight_refresh(struct scheduler *scheduler);

/* weight_update() - set all members' weights for those that have work now; fixed share: for all. */
void weight_update(struct scheduler *scheduler);

/* weight_takes_turns() - a member with a fixed share has its turns also when it has no work. */
bool weight_takes_turns(const struct scheduler *scheduler, const struct scheduler_member *member);

/*
 * weight_get_left() - what @shares, parts in all, leave of a device to those without one, at least @spared: nothing where
 * it is about what each is entitled to, WEIGHT_SPARED where turns are taken. What never runs never ends, and others may
 * wait for it; and over minutes so little of a share cannot be seen.
 */
#define WEIGHT_SPARED (SCHEDULER_WHOLE / 400)
uint32_t weight_get_left(uint64_t shares, uint32_t spared);

/* weight_get_shortest() - no turn is planned to be shorter, in ns. */
uint64_t weight_get_shortest(const struct scheduler *scheduler);

/*
 * weight_get_turn() - how long a turn of weight @weight lasts in each round, in ns. That is less than the shortest turn for
 * a weight of less than half a percent.
 */
uint64_t weight_get_turn(const struct scheduler *scheduler, uint32_t weight);

#endif
