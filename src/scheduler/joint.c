/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/joint.h"

#include <stddef.h>

#include "scheduler/credit.h"
#include "scheduler/weight.h"

/* A member with a device each: so many at most. */
#define DEVICES_MAX 64

/* No member gets further ahead of the last one, in time at its weight: a new one would have to wait for that. */
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

#define for_each_device(i, devices)                                                   \
        for (uint64_t left_ = (devices); left_ != 0 && ((i) = first_of(left_), true); \
             left_ &= left_ - 1)

static int first_of(uint64_t devices)
{
        return __builtin_ctzll(devices);
}

/* A device, as its members divide it. */
struct crowd {
        uint64_t taken;     /* parts: the sum of their shares */
        uint64_t n_without; /* members without a share */
};

/* On one device: an equal part of what the shares leave, which may be nothing of what it is entitled to. */
static uint32_t part_without_share(const struct crowd *crowd, bool all)
{
        uint32_t left = weight_get_left(crowd->taken, all ? 0 : WEIGHT_SPARED);

        return crowd->n_without > 0 ? left / (uint32_t)crowd->n_without : left;
}

static void count(const struct scheduler *scheduler, bool all, struct crowd crowd[DEVICES_MAX])
{
        const struct scheduler_member *member;
        int i;

        list_for_each(member, &scheduler->members, link)
                for_each_device(i, counts(member, all) ? member->devices : 0) {
                        crowd[i].taken += (uint64_t)member->share * (SCHEDULER_WHOLE / 100);
                        crowd[i].n_without += member->share == 0;
                }
}

/* Each wants its share, or what it may have on the most crowded one of its devices. */
static void set_bases(struct scheduler *scheduler, bool all)
{
        struct crowd crowd[DEVICES_MAX] = { 0 };
        struct scheduler_member *member;
        uint32_t part;
        int i;

        count(scheduler, all, crowd);
        list_for_each(member, &scheduler->members, link) {
                member->base = SCHEDULER_WHOLE;
                if (member->share > 0)
                        member->base = member->share * (SCHEDULER_WHOLE / 100);
                else
                        for_each_device(i, member->devices) {
                                part = part_without_share(&crowd[i], all);
                                member->base = part < member->base ? part : member->base;
                        }
        }
}

/* The rest of a device, and the sum of the wants of members that have no weight yet. */
struct demand {
        uint64_t left, wanted;
};

static void sum_demand(struct scheduler *scheduler, bool all, struct demand demand[DEVICES_MAX])
{
        struct scheduler_member *member;
        int i;

        for (i = 0; i < DEVICES_MAX; i++)
                demand[i] = (struct demand){ .left = SCHEDULER_WHOLE };
        list_for_each(member, &scheduler->members, link) {
                member->fair = 0;
                member->is_settled = !counts(member, all);
                if (!member->is_settled)
                        for_each_device(i, member->devices)
                                demand[i].wanted += member->base;
        }
}

/* The device on which each gets least for what it wants; -1: no weight is open. */
static int find_tightest(const struct demand demand[DEVICES_MAX])
{
        int tightest = -1;

        for (int i = 0; i < DEVICES_MAX; i++)
                if (demand[i].wanted > 0 &&
                    (tightest < 0 || demand[i].left * demand[tightest].wanted <
                                             demand[tightest].left * demand[i].wanted))
                        tightest = i;
        return tightest;
}

static void settle(struct scheduler_member *member, struct demand of,
                   struct demand demand[DEVICES_MAX])
{
        int i;

        member->fair = (uint32_t)(member->base * of.left / of.wanted);
        member->is_settled = true;
        for_each_device(i, member->devices) {
                demand[i].wanted -= member->base;
                demand[i].left -= member->fair < demand[i].left ? member->fair : demand[i].left;
        }
}

/* Device after device, the most crowded one first, is divided among those on it. */
static void divide(struct scheduler *scheduler, bool all)
{
        struct demand demand[DEVICES_MAX];
        struct scheduler_member *member;
        int tightest;

        set_bases(scheduler, all);
        sum_demand(scheduler, all, demand);
        while ((tightest = find_tightest(demand)) >= 0) {
                struct demand of = demand[tightest];

                list_for_each(member, &scheduler->members, link)
                        if ((member->devices >> tightest & 1) && !member->is_settled)
                                settle(member, of, demand);
        }
}

void joint_refresh(struct scheduler *scheduler)
{
        struct scheduler_member *member;

        divide(scheduler, true);
        list_for_each(member, &scheduler->members, link)
                member->entitled = member->fair;
}

void joint_update(struct scheduler *scheduler)
{
        struct scheduler_member *member;

        divide(scheduler, false);
        scheduler->rest.weight = 0;
        list_for_each(member, &scheduler->members, link)
                member->weight = member->fair > 0 ? member->fair : 1;
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

/* Urgent ones first. Of members that are as far behind, the one that has waited for longest. */
static bool comes_before(const struct scheduler_member *one, const struct scheduler_member *other,
                         uint64_t run)
{
        uint64_t progress = get_progress(one, run), of_other = get_progress(other, run);

        if (one->is_urgent || other->is_urgent)
                return credit_comes_before(one, other);
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
                member->has_woken = member->has_woken && !member->is_chosen;
        }
}
