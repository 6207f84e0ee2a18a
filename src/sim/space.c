/* SPDX-License-Identifier: Apache-2.0 */
/* A space: ranges of addresses that do not overlap, sorted. */

#include "sim/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The index of the first range that begins at @address or above. */
static size_t lower_bound(const struct space *space, uint64_t address)
{
        size_t low = 0, high = space->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (space->ranges[middle]->address < address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int reserve_one(struct space *space)
{
        size_t capacity = space->capacity ? space->capacity * 2 : 64;
        struct range **ranges;

        if (space->n < space->capacity)
                return 0;
        ranges = reallocarray(space->ranges, capacity, sizeof(struct range *));
        if (!ranges)
                return -ENOMEM;
        space->ranges = ranges;
        space->capacity = capacity;
        return 0;
}

int space_insert(struct space *space, struct range *range)
{
        size_t i = lower_bound(space, range->address);

        if (i < space->n && space->ranges[i]->address < range->address + range->size)
                return -EEXIST;
        if (i > 0 && space->ranges[i - 1]->address + space->ranges[i - 1]->size > range->address)
                return -EEXIST;
        if (reserve_one(space) < 0)
                return -ENOMEM;

        memmove(&space->ranges[i + 1], &space->ranges[i], (space->n - i) * sizeof(struct range *));
        space->ranges[i] = range;
        space->n++;
        return 0;
}

void space_remove(struct space *space, struct range *range)
{
        size_t i = lower_bound(space, range->address);

        if (i >= space->n || space->ranges[i] != range)
                return;
        space->n--;
        memmove(&space->ranges[i], &space->ranges[i + 1], (space->n - i) * sizeof(struct range *));
}

struct range *space_find(const struct space *space, uint64_t address)
{
        size_t i = lower_bound(space, address + 1); /* the one before begins at or below */
        struct range *range = i > 0 ? space->ranges[i - 1] : NULL;

        return range && address - range->address < range->size ? range : NULL;
}

struct range *space_next(const struct space *space, uint64_t address)
{
        size_t i = lower_bound(space, address);

        return i < space->n ? space->ranges[i] : NULL;
}
