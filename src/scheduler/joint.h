/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_JOINT_H
#define SCHEDULER_JOINT_H

/*
 * The turns of several devices at once, where vGPUs have more than one of them: such a vGPU runs on all of
 * its devices or on none, so that no kernel waits for one on another device that has no turn.
 *
 * A turn is a set of members of which no two have a device in common. The member that is furthest behind chooses
 * first, then the next one, as long as there are devices left: none is passed over for ever, for a member that
 * waits falls behind until it is first. All turns have the length of a slice.
 *
 * Weights are such that no device is promised twice, and that no member could have more without taking it from
 * one that has less for its share: a vGPU of several devices gets on all what it may have on the most
 * crowded one, and the others have the rest.
 */

#include "scheduler/member.h"

/* joint_is_needed() - do the members of @scheduler have different devices? */
bool joint_is_needed(const struct scheduler *scheduler);

/*
 * joint_refresh() - members, shares or devices are others: set what each wants, and is entitled to when all have
 * work (member->entitled, in parts of each of its devices). joint_update() must follow.
 */
void joint_refresh(struct scheduler *scheduler);

/* joint_update() - set all members' weights for those that have work now. */
void joint_update(struct scheduler *scheduler);

/* joint_is_free() - does no member with work want a device that another with work wants? */
bool joint_is_free(const struct scheduler *scheduler);

/*
 * joint_choose() - mark the members that run next; all that have work, if @is_free
 * @run:  so long the turn under way has lasted, which is not charged yet
 * Returns the first, or NULL.
 */
struct scheduler_member *joint_choose(struct scheduler *scheduler, bool is_free, uint64_t run);

/* joint_may_begin() - @member has new work: are its devices free just now? */
bool joint_may_begin(const struct scheduler *scheduler, const struct scheduler_member *member);

/* joint_end() - charge and log those that have run for @run ns, of which none was chosen if !@was_turn. */
void joint_end(struct scheduler *scheduler, uint64_t run, bool was_turn, uint64_t now);

/* joint_begin() - those that were chosen run now. */
void joint_begin(struct scheduler *scheduler);

#endif
