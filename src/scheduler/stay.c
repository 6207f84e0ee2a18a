/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/stay.h"

#include <stdlib.h>

static uint64_t add(uint64_t a, uint64_t b)
{
        return b < STAY_NEVER - a ? a + b : STAY_NEVER;
}

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

uint64_t stay_get_guaranteed(uint64_t cost, uint32_t percent)
{
        uint64_t rest = 100 - percent;

        if (rest > 0 && cost > STAY_NEVER / rest)
                return STAY_NEVER;
        return cost * rest / percent;
}

/* The end of a stay whose vGPU must have had no work for @idle. */
static uint64_t get_end(const struct stay *stay, uint64_t idle)
{
        if (stay->after == 0 || stay->is_held)
                return STAY_NEVER;
        return later(later(add(stay->last_work, idle), add(stay->since, stay->guaranteed)),
                     stay->not_before);
}

uint64_t stay_get_end(const struct stay *stay)
{
        return get_end(stay, stay->after);
}

uint64_t stay_get_early_end(const struct stay *stay)
{
        uint64_t idle = later(stay->after / STAY_EARLY_PART, STAY_EARLY_MIN);

        return get_end(stay, idle < stay->after ? idle : stay->after);
}

static int compare_use(const void *a, const void *b)
{
        const struct stay *left = *(struct stay *const *)a, *right = *(struct stay *const *)b;

        return (left->last_work > right->last_work) - (left->last_work < right->last_work);
}

/* Of those that were taken for their age some may stay: the most recently used first. */
static void spare(struct stay **stays, size_t n, uint64_t surplus)
{
        while (n-- > 0)
                if (stays[n]->is_chosen && stays[n]->bytes <= surplus) {
                        stays[n]->is_chosen = false;
                        surplus -= stays[n]->bytes;
                }
}

bool stay_choose(struct stay **stays, size_t n, uint64_t bytes, uint64_t now)
{
        uint64_t sum = 0;

        if (n > 0)
                qsort(stays, n, sizeof(*stays), compare_use);
        for (size_t i = 0; i < n; i++) {
                stays[i]->is_chosen = sum < bytes && stay_get_early_end(stays[i]) <= now;
                if (stays[i]->is_chosen)
                        sum = add(sum, stays[i]->bytes);
        }
        if (sum >= bytes) {
                spare(stays, n, sum - bytes);
                return true;
        }
        for (size_t i = 0; i < n; i++)
                stays[i]->is_chosen = false;
        return false;
}
