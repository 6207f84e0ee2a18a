/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/credit.h"

#include <stddef.h>

/* A turn of less costs more than it is worth. */
#define TARGET_MIN 1000000u /* ns */

static bool member_is_on(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        return scheduler->order.is_joint ? member->is_running : scheduler->order.owner == member;
}

static uint64_t part_of(uint64_t ns, uint32_t parts)
{
        return ns * parts / SCHEDULER_WHOLE;
}

/* It is spent more slowly the more the member is entitled to, so less of it is saved. */
static uint64_t most_of(const struct scheduler_member *member)
{
        return part_of(CREDIT_MAX, SCHEDULER_WHOLE - member->entitled);
}

/* While no other member wants the device, its time is not paid for. */
static void member_accrue(const struct scheduler *scheduler, struct scheduler_member *member,
                          uint64_t ns)
{
        uint64_t spent, most = most_of(member);

        if (!member_is_on(scheduler, member)) {
                member->credit += part_of(ns, member->entitled);
                member->credit = member->credit < most ? member->credit : most;
                return;
        }
        if (scheduler->order.mode == SCHEDULER_FREE)
                return;
        spent = part_of(ns, SCHEDULER_WHOLE - member->entitled);
        member->credit -= spent < member->credit ? spent : member->credit;
}

static void accrue(struct scheduler *scheduler, uint64_t ns)
{
        struct scheduler_member *member;

        list_for_each(member, &scheduler->members, link)
                if (member->is_interactive)
                        member_accrue(scheduler, member, ns);
}

/* Savings under another policy do not count. */
static void forget_credit(struct scheduler *scheduler)
{
        struct scheduler_member *member;

        list_for_each(member, &scheduler->members, link) {
                member->credit = 0;
                member->is_urgent = false;
        }
        scheduler->cut = NULL;
}

void credit_accrue(struct scheduler *scheduler, uint64_t now)
{
        uint64_t ns = now > scheduler->accrued_ns ? now - scheduler->accrued_ns : 0;

        scheduler->accrued_ns = now;
        if (scheduler->settings.policy == SCHEDULER_FIXED_SHARE)
                forget_credit(scheduler);
        else if (ns <= SCHEDULER_RUN_MAX)
                accrue(scheduler, ns);
}

/* Turns on other devices are in no member's way. Urgent ones do not end each other's turns. */
static bool is_in_the_way(const struct scheduler *scheduler, const struct scheduler_member *other,
                          const struct scheduler_member *member)
{
        if (other == member || other->is_urgent || !member_is_on(scheduler, other))
                return false;
        return !scheduler->order.is_joint || (other->devices & member->devices);
}

static bool ends_a_turn(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        const struct scheduler_member *other;

        if (scheduler->order.mode != SCHEDULER_TURN)
                return false;
        list_for_each(other, &scheduler->members, link)
                if (is_in_the_way(scheduler, other, member))
                        return true;
        return false;
}

static bool jumps(const struct scheduler_member *member)
{
        return member->is_interactive && member->has_work && member->has_woken &&
               !member->is_urgent && member->credit >= 2 * CREDIT_JUMP;
}

bool credit_wake(struct scheduler *scheduler)
{
        struct scheduler_member *member;
        bool ends = false;

        list_for_each(member, &scheduler->members, link) {
                if (!member->has_work || !member->is_interactive || member->credit == 0)
                        member->is_urgent = false;
                if (!jumps(member))
                        continue;
                member->is_urgent = true;
                member->has_woken = false;
                member->credit -= CREDIT_JUMP;
                ends |= ends_a_turn(scheduler, member);
        }
        return ends;
}

bool credit_comes_before(const struct scheduler_member *one, const struct scheduler_member *other)
{
        return one->is_urgent && (!other->is_urgent || one->credit > other->credit);
}

struct scheduler_member *credit_pick(const struct scheduler *scheduler, uint64_t *ret_target)
{
        uint64_t slice = scheduler_settings_get_slice(&scheduler->settings), lasts;
        struct scheduler_member *member, *best = NULL;

        list_for_each(member, &scheduler->members, link)
                if (member->is_urgent && (!best || credit_comes_before(member, best)))
                        best = member;
        if (!best)
                return NULL;
        *ret_target = slice;
        if (best->entitled >= SCHEDULER_WHOLE)
                return best;
        lasts = best->credit * SCHEDULER_WHOLE / (SCHEDULER_WHOLE - best->entitled);
        if (lasts < slice)
                *ret_target = lasts > TARGET_MIN ? lasts : TARGET_MIN;
        return best;
}
