/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/weight.h"

/* No turn is shorter than this part of a slice, however small the share: a switch takes time too. */
#define SHORTEST_TURN_PART 2

/* And none is longer, however unequal the shares. */
#define LONGEST_TURN 1000000000ull

static uint32_t percent(uint32_t share)
{
        return share * (SCHEDULER_WHOLE / 100);
}

/* Those without a share have equal parts of what the others leave, and never nothing. */
static uint32_t part_without_share(const struct scheduler *scheduler)
{
        const struct scheduler_member *member;
        uint32_t taken = 0, n_without = 0, left;

        list_for_each(member, &scheduler->members, link) {
                taken += percent(member->share);
                n_without += member->share == 0;
        }
        left = taken < SCHEDULER_WHOLE ? SCHEDULER_WHOLE - taken : 0;
        left = n_without ? left / n_without : 0;
        return left > percent(1) ? left : percent(1);
}

/* What the settings give @member, before anybody is left out; @without: part_without_share(). */
static uint32_t weight_of(const struct scheduler *scheduler, const struct scheduler_member *member,
                          uint32_t without)
{
        switch (scheduler->settings.policy) {
        case SCHEDULER_EQUAL_SHARE:
                return SCHEDULER_WHOLE;
        case SCHEDULER_FIXED_SHARE:
                return member->share ? percent(member->share) : member->portion;
        default:
                return member->share ? percent(member->share) : without;
        }
}

void weight_refresh(struct scheduler *scheduler)
{
        uint32_t without = part_without_share(scheduler);
        struct scheduler_member *member;
        uint64_t sum = 0;

        list_for_each(member, &scheduler->members, link)
                sum += weight_of(scheduler, member, without);
        if (scheduler->settings.policy == SCHEDULER_FIXED_SHARE && sum < SCHEDULER_WHOLE)
                sum = SCHEDULER_WHOLE;
        list_for_each(member, &scheduler->members, link)
                member->entitled =
                        sum ? (uint32_t)((uint64_t)weight_of(scheduler, member, without) *
                                         SCHEDULER_WHOLE / sum)
                            : 0;
}

/* Portions of vGPUs without a share may add up to more than the device has. */
static void update_fixed(struct scheduler *scheduler)
{
        struct scheduler_member *member;
        uint64_t sum = 0;

        list_for_each(member, &scheduler->members, link)
                sum += member->weight = weight_of(scheduler, member, 0);
        scheduler->rest.weight = sum < SCHEDULER_WHOLE ? SCHEDULER_WHOLE - (uint32_t)sum : 0;
        if (sum <= SCHEDULER_WHOLE)
                return;
        list_for_each(member, &scheduler->members, link)
                member->weight = (uint32_t)((uint64_t)member->weight * SCHEDULER_WHOLE / sum);
}

void weight_update(struct scheduler *scheduler)
{
        uint32_t without = part_without_share(scheduler);
        struct scheduler_member *member;
        uint64_t sum = 0;

        if (scheduler->settings.policy == SCHEDULER_FIXED_SHARE) {
                update_fixed(scheduler);
                return;
        }
        scheduler->rest.weight = 0;
        list_for_each(member, &scheduler->members, link) {
                member->weight = weight_of(scheduler, member, without);
                sum += member->has_work ? member->weight : 0;
        }
        list_for_each(member, &scheduler->members, link)
                if (sum > 0)
                        member->weight =
                                (uint32_t)((uint64_t)member->weight * SCHEDULER_WHOLE / sum);
}

bool weight_takes_turns(const struct scheduler *scheduler, const struct scheduler_member *member)
{
        return member->weight > 0 &&
               (member->has_work || scheduler->settings.policy == SCHEDULER_FIXED_SHARE);
}

/* A round is as long as one slice for each that takes turns, on the average. */
uint64_t weight_get_turn(const struct scheduler *scheduler, uint32_t weight)
{
        uint64_t slice = scheduler_settings_get_slice(&scheduler->settings);
        uint64_t shortest = slice / SHORTEST_TURN_PART, turn;
        const struct scheduler_member *member;
        uint64_t n = 0, sum = 0, least = SCHEDULER_WHOLE;

        if (!scheduler->settings.is_adaptive)
                return slice;
        list_for_each(member, &scheduler->members, link) {
                if (!weight_takes_turns(scheduler, member))
                        continue;
                n++;
                sum += member->weight;
                least = member->weight < least ? member->weight : least;
        }
        if (n == 0 || sum == 0)
                return slice;
        turn = slice * n * weight / sum;
        if (slice * n * least / sum < shortest)
                turn = shortest * weight / least;
        return turn < LONGEST_TURN ? turn : LONGEST_TURN;
}
