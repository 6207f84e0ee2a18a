/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/scheduler.h"

#include <stddef.h>
#include <string.h>

#include "scheduler/credit.h"
#include "scheduler/joint.h"
#include "scheduler/turn.h"
#include "scheduler/weight.h"

void scheduler_init(struct scheduler *scheduler)
{
        memset(scheduler, 0, sizeof(*scheduler));
        list_init(&scheduler->members);
        list_init(&scheduler->rest.link);
        scheduler->order.until_ns = SCHEDULER_UNLIMITED;
        scheduler->asked.policy = SCHEDULER_BEST_EFFORT;
        scheduler_configure(scheduler, &scheduler->asked);
}

/* After each change of the members, of their work, and of what they are entitled to. */
static void update(struct scheduler *scheduler)
{
        if (scheduler->is_joint)
                joint_update(scheduler);
        else
                weight_update(scheduler);
        turn_admit(scheduler);
}

/* The number of vGPUs has a say in the defaults. */
static void refresh(struct scheduler *scheduler)
{
        bool is_joint;

        scheduler->settings = scheduler->asked;
        scheduler_settings_complete(&scheduler->settings, scheduler->n_members);
        is_joint = joint_is_needed(scheduler);
        scheduler->has_changed |= scheduler->is_joint != is_joint;
        scheduler->is_joint = is_joint;
        if (is_joint)
                joint_refresh(scheduler);
        else
                weight_refresh(scheduler);
        update(scheduler);
}

void scheduler_configure(struct scheduler *scheduler, const struct scheduler_settings *settings)
{
        scheduler->asked = *settings;
        scheduler->has_changed = true;
        refresh(scheduler);
}

void scheduler_add(struct scheduler *scheduler, struct scheduler_member *member)
{
        list_append(&scheduler->members, &member->link);
        scheduler->n_members++;
        member->has_work = member->has_woken = member->is_in = member->was_early = false;
        member->is_chosen = member->is_running = member->is_urgent = false;
        member->progress = member->credit = 0;
        refresh(scheduler);
}

static struct scheduler_member *before(struct scheduler *scheduler, struct scheduler_member *member)
{
        if (member->link.previous == &scheduler->members)
                return NULL;
        return list_entry(member->link.previous, struct scheduler_member, link);
}

void scheduler_remove(struct scheduler *scheduler, struct scheduler_member *member)
{
        if (scheduler->last == member)
                scheduler->last = before(scheduler, member);
        scheduler->has_changed |= member->is_running;
        if (scheduler->cut == member)
                scheduler->cut = NULL;
        if (scheduler->order.owner == member) {
                scheduler->order.owner = scheduler->order.member = NULL;
                scheduler->has_changed = true;
        }
        list_remove(&member->link);
        scheduler->n_members--;
        refresh(scheduler);
}

void scheduler_set_share(struct scheduler *scheduler, struct scheduler_member *member,
                         uint32_t share)
{
        member->share = share;
        refresh(scheduler);
}

void scheduler_set_devices(struct scheduler *scheduler, struct scheduler_member *member,
                           uint64_t devices)
{
        if (member->devices == devices)
                return;
        member->devices = devices;
        scheduler->has_changed = true;
        refresh(scheduler);
}

/* With its devices free it need not wait for the end of the turn of others. */
static bool changes_turn(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        if (!scheduler->is_joint)
                return scheduler->order.owner == member;
        return scheduler->order.mode == SCHEDULER_FREE || member->is_running ||
               (member->has_work && joint_may_begin(scheduler, member));
}

void scheduler_set_work(struct scheduler *scheduler, struct scheduler_member *member, bool has_work)
{
        if (member->has_work == has_work)
                return;
        member->has_work = has_work;
        member->has_woken = member->has_woken || has_work;
        update(scheduler);
        if (changes_turn(scheduler, member))
                scheduler->has_changed = true;
}

void scheduler_set_class(struct scheduler *scheduler, struct scheduler_member *member,
                         bool is_interactive)
{
        if (member->is_interactive == is_interactive)
                return;
        member->is_interactive = is_interactive;
        member->is_urgent = false;
        member->credit = 0;
        scheduler->has_changed = true;
}

void scheduler_void(struct scheduler *scheduler)
{
        scheduler->has_changed = true;
}

static bool has_shares(const struct scheduler *scheduler)
{
        const struct scheduler_member *member;

        list_for_each(member, &scheduler->members, link)
                if (member->share)
                        return true;
        return false;
}

bool scheduler_is_enforcing(const struct scheduler *scheduler)
{
        if (scheduler->settings.policy == SCHEDULER_FIXED_SHARE)
                return scheduler->n_members > 0;
        if (scheduler->n_members < 2)
                return false;
        return scheduler->settings.policy == SCHEDULER_EQUAL_SHARE || has_shares(scheduler);
}

/*
 * There is no other to protect: with a fixed share a single one is held to it all the same. @ret_only has
 * all the time then.
 */
static bool is_free(struct scheduler *scheduler, struct scheduler_member **ret_only)
{
        struct scheduler_member *member;
        uint32_t n_working = 0;

        *ret_only = NULL;
        if (!scheduler_is_enforcing(scheduler))
                return true;
        list_for_each(member, &scheduler->members, link)
                if (member->has_work) {
                        n_working++;
                        *ret_only = member;
                }
        return n_working == 0 ||
               (n_working == 1 && scheduler->settings.policy != SCHEDULER_FIXED_SHARE);
}

static bool is_over(const struct scheduler *scheduler, uint64_t now)
{
        const struct scheduler_order *order = &scheduler->order;

        return order->mode == SCHEDULER_FREE || scheduler->has_changed ||
               now < scheduler->start_ns || now >= order->until_ns;
}

/* Fixed share: the rest of a turn after its owner has run out of work, or has some again. */
static bool continues_turn(const struct scheduler *scheduler, uint64_t now)
{
        return scheduler->settings.policy == SCHEDULER_FIXED_SHARE && scheduler->order.owner &&
               scheduler->order.mode != SCHEDULER_FREE && now >= scheduler->start_ns &&
               now < scheduler->order.until_ns;
}

static bool decide_jointly(struct scheduler *scheduler, uint64_t now,
                           struct scheduler_order *ret_order)
{
        struct scheduler_order order = { .until_ns = SCHEDULER_UNLIMITED, .is_joint = true };
        bool is_free = !scheduler_is_enforcing(scheduler) || joint_is_free(scheduler);
        bool is_in_turn = scheduler->order.mode == SCHEDULER_TURN && now > scheduler->start_ns;

        if (is_free && scheduler->order.mode == SCHEDULER_FREE && !scheduler->has_changed)
                return false;
        if (!is_free && !is_over(scheduler, now))
                return false;
        scheduler->has_changed = false;
        order.owner = order.member =
                joint_choose(scheduler, is_free, is_in_turn ? now - scheduler->start_ns : 0);
        if (!is_free) {
                order.mode = SCHEDULER_TURN;
                order.target = scheduler_settings_get_slice(&scheduler->settings);
                order.until_ns = now + order.target;
                order.weight = order.owner->weight;
        }
        *ret_order = order;
        return true;
}

bool scheduler_decide(struct scheduler *scheduler, uint64_t now, struct scheduler_order *ret_order)
{
        struct scheduler_order order = { .until_ns = SCHEDULER_UNLIMITED };

        *ret_order = scheduler->order;
        credit_accrue(scheduler, now);
        scheduler->has_changed |= credit_wake(scheduler);
        if (scheduler->is_joint)
                return decide_jointly(scheduler, now, ret_order);
        if (is_free(scheduler, &order.owner)) {
                bool is_new = scheduler->has_changed || scheduler->order.mode != SCHEDULER_FREE ||
                              scheduler->order.owner != order.owner;

                scheduler->has_changed = false;
                scheduler->cut = NULL;
                *ret_order = order;
                return is_new;
        }
        if (!is_over(scheduler, now))
                return false;
        if (continues_turn(scheduler, now)) {
                order.owner = scheduler->order.owner;
                order.target = scheduler->order.until_ns - now;
        } else {
                order.owner = turn_pick(scheduler, now, &order.target);
        }
        scheduler->has_changed = false;
        if (order.owner != &scheduler->rest && order.owner->has_work)
                order.member = order.owner;
        order.mode = order.member ? SCHEDULER_TURN : SCHEDULER_PAUSE;
        order.until_ns = now + order.target;
        order.weight = order.owner->weight;
        *ret_order = order;
        return true;
}

static void end_turn(struct scheduler *scheduler, uint64_t now)
{
        const struct scheduler_order *order = &scheduler->order;
        uint64_t run = now > scheduler->start_ns ? now - scheduler->start_ns : 0;

        if (order->is_joint) {
                bool is_turn = order->mode == SCHEDULER_TURN;

                joint_end(scheduler, is_turn && run > SCHEDULER_RUN_MAX ? order->target : run,
                          is_turn, now);
                return;
        }
        if (!order->owner)
                return;
        if (order->mode == SCHEDULER_FREE) {
                order->owner->received += run;
                return;
        }
        if (run > SCHEDULER_RUN_MAX)
                run = order->target;
        turn_charge(order, run);
        if (!order->member)
                return;
        order->member->received += run;
        turn_log(scheduler, run, now);
}

void scheduler_begin(struct scheduler *scheduler, struct scheduler_order *order, uint64_t now)
{
        credit_accrue(scheduler, now);
        end_turn(scheduler, now);
        scheduler->order = *order;
        scheduler->start_ns = now;
        if (order->is_joint)
                joint_begin(scheduler);
        if (order->mode != SCHEDULER_FREE)
                scheduler->order.until_ns = now + order->target;
        *order = scheduler->order;
}

bool scheduler_runs(const struct scheduler_order *order, const struct scheduler_member *member)
{
        if (order->mode == SCHEDULER_FREE)
                return true;
        return order->is_joint ? member->is_chosen : order->member == member;
}

uint64_t scheduler_get_received(const struct scheduler *scheduler,
                                const struct scheduler_member *member, uint64_t now)
{
        const struct scheduler_order *order = &scheduler->order;
        bool is_running = order->is_joint ? member->is_running : order->owner == member;

        if (!is_running || order->mode == SCHEDULER_PAUSE || now < scheduler->start_ns)
                return member->received;
        return member->received + (now - scheduler->start_ns);
}

uint32_t scheduler_get_entitled(const struct scheduler_member *member)
{
        return member->entitled;
}
