/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/weight.h"

/* No turn is shorter than this part of a slice, however small the share: a switch takes time too. */
#define SHORTEST_TURN_PART 2

/* Members with less than this part do not make a round longer, which the others would wait for. */
#define SMALL_PART (SCHEDULER_WHOLE / 200)

static uint32_t percent(uint32_t share)
{
        return share * (SCHEDULER_WHOLE / 100);
}

/* How a device is divided among the members that count. */
struct division {
        uint64_t shares;    /* parts: the sum of the shares that were given */
        uint64_t portions;  /* and of the portions of those without one */
        uint64_t n_without; /* members without a share */
        uint32_t spared;    /* so much is left for them at least */
};

static struct division divide(const struct scheduler *scheduler, bool all)
{
        const struct scheduler_member *member;
        struct division division = { 0 };

        list_for_each(member, &scheduler->members, link) {
                if (!all && !member->has_work)
                        continue;
                division.shares += percent(member->share);
                division.portions += member->share ? 0 : member->portion;
                division.n_without += member->share == 0;
        }
        return division;
}

uint32_t weight_get_left(uint64_t shares, uint32_t spared)
{
        return shares < SCHEDULER_WHOLE - spared ? SCHEDULER_WHOLE - (uint32_t)shares : spared;
}

static uint32_t get_left(const struct division *division)
{
        return weight_get_left(division->shares, division->spared);
}

/* A share is what it says. Members without one divide the rest, which may be nothing. */
static uint32_t get_best_effort(const struct division *division,
                                const struct scheduler_member *member)
{
        if (member->share)
                return percent(member->share);
        return division->n_without ? get_left(division) / (uint32_t)division->n_without : 0;
}

/* Portions of those without a share may add up to more than is left. */
static uint32_t get_fixed(const struct division *division, const struct scheduler_member *member)
{
        uint32_t left = get_left(division);

        if (member->share)
                return percent(member->share);
        if (division->portions <= left)
                return member->portion;
        return (uint32_t)((uint64_t)member->portion * left / division->portions);
}

/* The settings give @member so much, before any member is left out. */
static uint32_t get_part(const struct scheduler *scheduler, const struct division *division,
                         const struct scheduler_member *member)
{
        switch (scheduler->settings.policy) {
        case SCHEDULER_EQUAL_SHARE:
                return SCHEDULER_WHOLE;
        case SCHEDULER_FIXED_SHARE:
                return get_fixed(division, member);
        default:
                return get_best_effort(division, member);
        }
}

static uint32_t scale(uint32_t part, uint64_t sum)
{
        return sum > 0 ? (uint32_t)((uint64_t)part * SCHEDULER_WHOLE / sum) : 0;
}

void weight_refresh(struct scheduler *scheduler)
{
        const struct division division = divide(scheduler, true);
        struct scheduler_member *member;
        uint64_t sum = 0;

        list_for_each(member, &scheduler->members, link)
                sum += member->entitled = get_part(scheduler, &division, member);
        if (scheduler->settings.policy == SCHEDULER_FIXED_SHARE && sum < SCHEDULER_WHOLE)
                sum = SCHEDULER_WHOLE;
        list_for_each(member, &scheduler->members, link)
                member->entitled = scale(member->entitled, sum);
}

/* For members that have work, as if there were no others: time that the others do not use is left, too. */
void weight_update(struct scheduler *scheduler)
{
        bool is_fixed = scheduler->settings.policy == SCHEDULER_FIXED_SHARE;
        struct division division = divide(scheduler, is_fixed);
        struct scheduler_member *member;
        uint64_t sum = 0;

        division.spared = WEIGHT_SPARED;
        list_for_each(member, &scheduler->members, link) {
                member->weight = get_part(scheduler, &division, member);
                sum += is_fixed || member->has_work ? member->weight : 0;
        }
        scheduler->rest.weight =
                is_fixed && sum < SCHEDULER_WHOLE ? SCHEDULER_WHOLE - (uint32_t)sum : 0;
        sum += scheduler->rest.weight;
        list_for_each(member, &scheduler->members, link)
                if (sum > 0)
                        member->weight = scale(member->weight, sum);
}

bool weight_takes_turns(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        return member->weight > 0 &&
               (member->has_work || scheduler->settings.policy == SCHEDULER_FIXED_SHARE);
}

uint64_t weight_get_shortest(const struct scheduler *scheduler)
{
        return scheduler_settings_get_slice(&scheduler->settings) / SHORTEST_TURN_PART;
}

struct round {
        uint64_t n, sum, least;
};

static struct round look_at_round(const struct scheduler *scheduler, uint32_t small_part)
{
        struct round round = { .least = SCHEDULER_WHOLE };
        const struct scheduler_member *member;

        list_for_each(member, &scheduler->members, link) {
                if (!weight_takes_turns(scheduler, member) || member->weight < small_part)
                        continue;
                round.n++;
                round.sum += member->weight;
                round.least = member->weight < round.least ? member->weight : round.least;
        }
        return round;
}

/* A round is as long as one slice for each that takes turns, on the average. */
uint64_t weight_get_turn(const struct scheduler *scheduler, uint32_t weight)
{
        uint64_t slice = scheduler_settings_get_slice(&scheduler->settings);
        uint64_t shortest = weight_get_shortest(scheduler);
        struct round round;

        if (!scheduler->settings.is_adaptive)
                return slice;
        round = look_at_round(scheduler, SMALL_PART);
        if (round.n == 0)
                round = look_at_round(scheduler, 0);
        if (round.n == 0)
                return slice;
        if (slice * round.n * round.least / round.sum < shortest)
                return shortest * weight / round.least;
        return slice * round.n * weight / round.sum;
}
