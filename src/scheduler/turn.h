/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_TURN_H
#define SCHEDULER_TURN_H

/* Chooses the next turn, and charges the last one. */

#include "scheduler/member.h"

/*
 * turn_pick() - the next one, with how long it shall last
 *
 * What is taken off for earlier overshoot is taken off now. The weights are up to date, and
 * at least one member takes turns. An urgent one (credit.h) is before all others, and the turn that is cut short
 * for it goes on after it.
 */
struct scheduler_member *turn_pick(struct scheduler *scheduler, uint64_t now, uint64_t *ret_target);

/* turn_admit() - members that take turns from now on begin where those are that take some already. */
void turn_admit(struct scheduler *scheduler);

/* turn_charge() - the turn of @order lasted @run ns, whether its owner had work or not. */
void turn_charge(const struct scheduler_order *order, uint64_t run);

/* turn_log() - the turn in force, which is charged and has lasted @run ns. */
void turn_log(struct scheduler *scheduler, uint64_t run, uint64_t now);

#endif
