/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/joint.h"

#include <stddef.h>

/* A member with a device each: so many at most. */
#define DEVICES_MAX 64

/* Nobody gets further ahead of the last one, in time at its weight: then who is new would have to wait for it. */
#define LEAD_MAX 20000000000ull

static bool counts(const struct scheduler_member *member, bool all)
{
        return all || member->has_work;
}

bool joint_is_needed(const struct scheduler *scheduler)
{
        const struct scheduler_member *member, *first = NULL;

        list_for_each(member, &scheduler->members, link) {
                if (first && member->devices != first->devices)
                        return true;
                first = member;
        }
        return false;
}

/* Weights. */

/* On one device: an equal part of what the shares leave. */
static uint64_t part_without_share(const struct scheduler *scheduler, uint64_t device)
{
        const struct scheduler_member *member;
        uint64_t taken = 0, n_without = 0, left;

        list_for_each(member, &scheduler->members, link) {
                if (!(member->devices & device))
                        continue;
                taken += (uint64_t)member->share * (SCHEDULER_WHOLE / 100);
                n_without += member->share == 0;
        }
        left = taken < SCHEDULER_WHOLE && n_without > 0 ? (SCHEDULER_WHOLE - taken) / n_without : 0;
        return left > SCHEDULER_WHOLE / 100 ? left : SCHEDULER_WHOLE / 100;
}

static uint64_t base_of(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        uint64_t least = SCHEDULER_WHOLE;

        if (member->share > 0)
                return (uint64_t)member->share * (SCHEDULER_WHOLE / 100);
        for (int i = 0; i < DEVICES_MAX; i++) {
                uint64_t device = member->devices & UINT64_C(1) << i;
                uint64_t part = device ? part_without_share(scheduler, device) : least;

                least = part < least ? part : least;
        }
        return least;
}

/* What is left of a device, and the sum of what those want whose weight is open. */
struct demand {
        uint64_t left, wanted;
};

static struct demand get_demand(const struct scheduler *scheduler, uint64_t device, bool all)
{
        struct demand demand = { .left = SCHEDULER_WHOLE };
        const struct scheduler_member *member;

        list_for_each(member, &scheduler->members, link) {
                if (!(member->devices & device) || !counts(member, all))
                        continue;
                if (member->is_settled)
                        demand.left -= member->fair < demand.left ? member->fair : demand.left;
                else
                        demand.wanted += base_of(scheduler, member);
        }
        return demand;
}

/* The device on which each gets least for what it wants; 0: nobody's weight is open. */
static uint64_t find_tightest(const struct scheduler *scheduler, bool all,
                              struct demand *ret_demand)
{
        uint64_t tightest = 0;

        for (int i = 0; i < DEVICES_MAX; i++) {
                struct demand demand = get_demand(scheduler, UINT64_C(1) << i, all);

                if (demand.wanted == 0 || (tightest && demand.left * ret_demand->wanted >=
                                                               ret_demand->left * demand.wanted))
                        continue;
                tightest = UINT64_C(1) << i;
                *ret_demand = demand;
        }
        return tightest;
}

/* Device after device, the most crowded one first, is divided among those on it. */
static void divide(const struct scheduler *scheduler, bool all)
{
        struct scheduler_member *member;
        struct demand demand;
        uint64_t device;

        list_for_each(member, &scheduler->members, link) {
                member->is_settled = false;
                member->fair = 0;
        }
        while ((device = find_tightest(scheduler, all, &demand)) != 0)
                list_for_each(member, &scheduler->members, link)
                        if ((member->devices & device) && counts(member, all) &&
                            !member->is_settled) {
                                uint64_t base = base_of(scheduler, member);

                                member->fair = (uint32_t)(base * demand.left / demand.wanted);
                                member->is_settled = true;
                        }
}

void joint_update(struct scheduler *scheduler)
{
        struct scheduler_member *member;

        divide(scheduler, false);
        scheduler->rest.weight = 0;
        list_for_each(member, &scheduler->members, link)
                member->weight = member->fair > 0 ? member->fair : 1;
}

uint32_t joint_get_entitled(const struct scheduler *scheduler,
                            const struct scheduler_member *member)
{
        divide(scheduler, true);
        return member->fair;
}

/* Turns. */

bool joint_is_free(const struct scheduler *scheduler)
{
        const struct scheduler_member *member;
        uint64_t taken = 0;

        list_for_each(member, &scheduler->members, link) {
                if (!member->has_work)
                        continue;
                if (taken & member->devices)
                        return false;
                taken |= member->devices;
        }
        return true;
}

static uint64_t progress_of(uint64_t run, uint32_t weight)
{
        return run * SCHEDULER_WHOLE / (weight > 0 ? weight : 1);
}

static uint64_t get_progress(const struct scheduler_member *member, uint64_t run)
{
        return member->progress + (member->is_running ? progress_of(run, member->run_weight) : 0);
}

/* Of those who are as far behind, the one that has waited for longest. */
static bool comes_before(const struct scheduler_member *one, const struct scheduler_member *other,
                         uint64_t run)
{
        uint64_t progress = get_progress(one, run), of_other = get_progress(other, run);

        if (progress != of_other)
                return progress < of_other;
        if (one->is_running != other->is_running)
                return other->is_running;
        return one->last_turn < other->last_turn;
}

static struct scheduler_member *find_next(const struct scheduler *scheduler, uint64_t taken,
                                          uint64_t run)
{
        struct scheduler_member *member, *next = NULL;

        list_for_each(member, &scheduler->members, link)
                if (member->has_work && !(member->devices & taken) &&
                    (!next || comes_before(member, next, run)))
                        next = member;
        return next;
}

struct scheduler_member *joint_choose(struct scheduler *scheduler, bool is_free, uint64_t run)
{
        struct scheduler_member *member, *first = NULL;
        uint64_t taken = 0;

        list_for_each(member, &scheduler->members, link)
                member->is_chosen = is_free && member->has_work;
        while (!is_free && (member = find_next(scheduler, taken, run)) != NULL) {
                first = first ? first : member;
                taken |= member->devices;
                member->is_chosen = true;
        }
        return first;
}

bool joint_may_begin(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        const struct scheduler_member *other;

        list_for_each(other, &scheduler->members, link)
                if (other != member && other->is_running && (other->devices & member->devices))
                        return false;
        return true;
}

static uint64_t find_least_progress(const struct scheduler *scheduler)
{
        const struct scheduler_member *member;
        uint64_t least = UINT64_MAX;

        list_for_each(member, &scheduler->members, link)
                if (member->has_work && member->progress < least)
                        least = member->progress;
        return least;
}

static void log_turn(struct scheduler *scheduler, const struct scheduler_member *member,
                     uint64_t run, uint64_t now)
{
        scheduler->log[scheduler->n_logged++ % SCHEDULER_LOG_MAX] = (struct scheduler_turn){
                .end = now,
                .run = run,
                .run_total = member->received,
                .target = scheduler->order.target,
                .preempted = member->preempted,
                .id = member->id,
                .weight = member->run_weight,
                .devices = member->devices,
        };
}

static void charge(struct scheduler *scheduler, struct scheduler_member *member, uint64_t run,
                   uint64_t now)
{
        uint64_t target = scheduler->order.target;

        member->progress += progress_of(run, member->run_weight);
        member->preempted += run > target ? run - target : 0;
        member->last_turn = scheduler->n_logged + 1;
        log_turn(scheduler, member, run, now);
}

void joint_end(struct scheduler *scheduler, uint64_t run, bool was_turn, uint64_t now)
{
        struct scheduler_member *member;
        uint64_t least;

        list_for_each(member, &scheduler->members, link) {
                if (!member->is_running)
                        continue;
                member->is_running = false;
                member->received += run;
                if (was_turn)
                        charge(scheduler, member, run, now);
        }
        least = find_least_progress(scheduler);
        list_for_each(member, &scheduler->members, link)
                if (least < UINT64_MAX - LEAD_MAX && member->progress > least + LEAD_MAX)
                        member->progress = least + LEAD_MAX;
}

void joint_begin(struct scheduler *scheduler)
{
        struct scheduler_member *member;

        list_for_each(member, &scheduler->members, link) {
                member->is_running = member->is_chosen;
                member->run_weight = member->weight;
        }
}
