/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptive round robin. A member that ran longer than its target owes the difference. Of what it owes, a part
 * (one by the averaging factor) is taken off its next turn. Where that part is as long as the turn,
 * the turn is left out and so much is paid. So in the long run each member has what it is entitled
 * to, also where turns end late again and again, and none waits longer than its debt is worth.
 *
 * Without it the member that has made the least progress is next, in virtual time. That time is the least progress of
 * those that take turns. A member that begins to take turns begins there: what it did before it came, or while it
 * had no work, gives it no right to more than the others, nor them to more than it.
 *
 * A member with a part too small for a turn in each round has its turns less often: it owes what the shortest turn is
 * longer than its own. No two such turns follow one another, so that many of these do not keep the others waiting.
 */
#include "scheduler/turn.h"

#include <stddef.h>

#include "scheduler/credit.h"
#include "scheduler/weight.h"

/* A turn shortened to less costs more than it is worth. */
#define TARGET_MIN 1000000u /* ns */

/* Rounds in which all may be left out for what they owe; then one of them has to be next. */
#define ROUNDS_MAX 64

/* The rest of a fixed share stands behind the last member. */
static struct scheduler_member *after(struct scheduler *scheduler, struct scheduler_member *member)
{
        struct list *next =
                member && member != &scheduler->rest ? member->link.next : scheduler->members.next;

        if (next == &scheduler->members)
                return &scheduler->rest;
        return list_entry(next, struct scheduler_member, link);
}

static bool may_be_next(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        return member == &scheduler->rest ? member->weight > 0
                                          : weight_takes_turns(scheduler, member);
}

static bool is_behind(const struct scheduler_member *member, uint64_t progress)
{
        return member->is_in && member->progress < progress;
}

/* Where no member takes turns none is owed any: then the time is the most progress that one has made. */
static uint64_t virtual_time(const struct scheduler *scheduler)
{
        const struct scheduler_member *rest = &scheduler->rest, *member;
        uint64_t least = is_behind(rest, UINT64_MAX) ? rest->progress : UINT64_MAX;
        uint64_t greatest = rest->progress;

        list_for_each(member, &scheduler->members, link) {
                if (is_behind(member, least))
                        least = member->progress;
                if (member->progress > greatest)
                        greatest = member->progress;
        }
        return least == UINT64_MAX ? greatest : least;
}

static void admit(const struct scheduler *scheduler, struct scheduler_member *member, uint64_t time)
{
        if (member->is_in || !may_be_next(scheduler, member))
                return;
        member->is_in = true;
        if (member->progress < time)
                member->progress = time;
}

void turn_admit(struct scheduler *scheduler)
{
        struct scheduler_member *member;
        uint64_t time;

        scheduler->rest.is_in = scheduler->rest.is_in && may_be_next(scheduler, &scheduler->rest);
        list_for_each(member, &scheduler->members, link)
                member->is_in = member->is_in && may_be_next(scheduler, member);
        time = virtual_time(scheduler);
        admit(scheduler, &scheduler->rest, time);
        list_for_each(member, &scheduler->members, link)
                admit(scheduler, member, time);
}

/* So much is taken off the next turn of @member, which would last @turn. */
static uint64_t compensation(const struct scheduler *scheduler,
                             const struct scheduler_member *member, uint64_t turn)
{
        uint64_t part = member->overshoot / scheduler->settings.averaging_factor;
        uint64_t shortest = turn < TARGET_MIN ? turn : TARGET_MIN;

        if (part >= turn)
                return turn;
        return part < turn - shortest ? part : turn - shortest;
}

static uint64_t lend(struct scheduler *scheduler, struct scheduler_member *member, uint64_t turn)
{
        uint64_t shortest = weight_get_shortest(scheduler);

        scheduler->has_lent = turn < shortest;
        if (turn >= shortest)
                return turn;
        member->overshoot += shortest - turn;
        return shortest;
}

static struct scheduler_member *pick_in_order(struct scheduler *scheduler, uint64_t *ret_target)
{
        struct scheduler_member *member = scheduler->last;
        uint64_t steps = (uint64_t)(scheduler->n_members + 1) * ROUNDS_MAX;

        for (uint64_t i = 0;; i++) {
                uint64_t turn, taken;

                member = after(scheduler, member);
                if (member->was_early) {
                        member->was_early = false;
                        continue;
                }
                if (!may_be_next(scheduler, member))
                        continue;
                turn = weight_get_turn(scheduler, member->weight);
                if (scheduler->has_lent && turn < weight_get_shortest(scheduler) && i < steps)
                        continue;
                taken = compensation(scheduler, member, turn);
                member->overshoot -= taken;
                if (taken < turn || i >= steps) {
                        turn = lend(scheduler, member, turn);
                        *ret_target = taken < turn ? turn - taken : turn;
                        return member;
                }
        }
}

static struct scheduler_member *pick_least_served(struct scheduler *scheduler, uint64_t *ret_target)
{
        struct scheduler_member *best = NULL, *member = scheduler->last;

        for (uint32_t i = 0; i <= scheduler->n_members; i++) {
                member = after(scheduler, member);
                if (may_be_next(scheduler, member) && (!best || member->progress < best->progress))
                        best = member;
        }
        *ret_target = weight_get_turn(scheduler, best->weight);
        return best;
}

/* A whole turn adds so much to its progress: the comparison is as coarse. */
static uint64_t step_of(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        return weight_get_turn(scheduler, member->weight) * SCHEDULER_WHOLE / member->weight;
}

/*
 * A member that has new work and has not had more than the others is next, and has had its turn of this round
 * then. Every second turn at most, so that the others go on taking theirs.
 */
static struct scheduler_member *find_woken(struct scheduler *scheduler)
{
        struct scheduler_member *member, *woken = NULL;
        uint64_t least = UINT64_MAX;

        if (scheduler->settings.policy == SCHEDULER_FIXED_SHARE || scheduler->has_jumped_queue)
                return NULL;
        list_for_each(member, &scheduler->members, link) {
                if (!member->has_work)
                        continue;
                if (member->progress < least)
                        least = member->progress;
                if (member->has_woken && !member->was_early && member != scheduler->last &&
                    (!woken || member->progress < woken->progress))
                        woken = member;
        }
        if (!woken || woken->progress > least + step_of(scheduler, woken))
                return NULL;
        woken->was_early = scheduler->settings.is_adaptive;
        return woken;
}

/* Rounds would be unjust to members if an urgent one happened to end their turns. */
static void note_cut(struct scheduler *scheduler, uint64_t now)
{
        const struct scheduler_order *order = &scheduler->order;

        if (order->mode != SCHEDULER_TURN || !order->owner || order->owner->is_urgent ||
            now + TARGET_MIN > order->until_ns)
                return;
        scheduler->cut = order->owner;
        scheduler->cut_left = order->until_ns - now;
}

static struct scheduler_member *take_cut(struct scheduler *scheduler, uint64_t *ret_target)
{
        struct scheduler_member *member = scheduler->cut;

        scheduler->cut = NULL;
        if (!member || !may_be_next(scheduler, member))
                return NULL;
        *ret_target = scheduler->cut_left;
        return member;
}

static struct scheduler_member *pick_in_turn(struct scheduler *scheduler, uint64_t *ret_target)
{
        struct scheduler_member *member = find_woken(scheduler);

        scheduler->has_jumped_queue = member != NULL;
        if (member) {
                *ret_target = lend(scheduler, member, weight_get_turn(scheduler, member->weight));
        } else {
                member = scheduler->settings.is_adaptive ? pick_in_order(scheduler, ret_target)
                                                         : pick_least_served(scheduler, ret_target);
                scheduler->last = member;
        }
        member->has_woken = false;
        return member;
}

struct scheduler_member *turn_pick(struct scheduler *scheduler, uint64_t now, uint64_t *ret_target)
{
        struct scheduler_member *member = credit_pick(scheduler, ret_target);

        if (member) {
                note_cut(scheduler, now);
                return member;
        }
        member = take_cut(scheduler, ret_target);
        return member ? member : pick_in_turn(scheduler, ret_target);
}

void turn_charge(const struct scheduler_order *order, uint64_t run)
{
        struct scheduler_member *owner = order->owner;

        if (order->weight > 0)
                owner->progress += run * SCHEDULER_WHOLE / order->weight;
        if (run <= order->target)
                return;
        owner->overshoot += run - order->target;
        owner->preempted += run - order->target;
}

void turn_log(struct scheduler *scheduler, uint64_t run, uint64_t now)
{
        const struct scheduler_order *order = &scheduler->order;
        const struct scheduler_member *member = order->member;

        scheduler->log[scheduler->n_logged++ % SCHEDULER_LOG_MAX] = (struct scheduler_turn){
                .end = now,
                .run = run,
                .run_total = member->received,
                .target = order->target,
                .preempted = member->preempted,
                .id = member->id,
                .weight = order->weight,
                .devices = member->devices,
        };
}
