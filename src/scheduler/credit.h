/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_CREDIT_H
#define SCHEDULER_CREDIT_H

/*
 * The class interactive. Such a member saves the time that it is entitled to while others have the device, up to
 * what lets it have the device for half a second on end. When it gets work it is urgent: it has the device at once,
 * in the middle of the turn of another, and keeps it as long as it has work and credit. Afterwards it takes turns as
 * others do. What it spends is charged to its credit whether it was urgent or not, so in the long run it has no more
 * than it is entitled to. A jump costs credit as well, about what the two switches take from the others.
 *
 * There is no credit under fixed share: there all time is promised beforehand.
 */

#include "scheduler/member.h"

#define CREDIT_MAX  500000000u /* ns: so long it may have the device on end */
#define CREDIT_JUMP 1000000u   /* ns: of a jump */

/* credit_accrue() - what has been saved and spent under the order in force, up to @now. */
void credit_accrue(struct scheduler *scheduler, uint64_t now);

/*
 * credit_wake() - members that have got work and have credit for a jump become urgent
 * Returns whether the turn in force has to end for one of them.
 */
bool credit_wake(struct scheduler *scheduler);

/* credit_pick() - the urgent member with the most credit, and for how long; NULL: there is none. */
struct scheduler_member *credit_pick(const struct scheduler *scheduler, uint64_t *ret_target);

/* credit_comes_before() - is @one more urgent than @other? */
bool credit_comes_before(const struct scheduler_member *one, const struct scheduler_member *other);

#endif
