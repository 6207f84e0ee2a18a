/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/tally.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_SECOND 1e9

static const char *const kinds[TALLY_KINDS] = { "suspend", "resume", "migrate", "catch-up" };

static const char *const results[TALLY_RESULTS] = {
        [TALLY_DONE] = "done",
        [TALLY_UNDONE] = "undone",
        [TALLY_FAILED] = "failed",
};

/* Seconds: a small vGPU takes a tenth of one, 100 GiB take two; a drain may wait for ten. */
static const double bounds[TALLY_BUCKETS] = { 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 };

static void add(struct tally_count *count, const struct tally_end *end)
{
        count->n++;
        count->ns += end->ns;
        count->bytes += end->bytes;
        for (size_t b = 0; b < TALLY_BUCKETS; b++)
                count->bucket[b] += (double)end->ns <= bounds[b] * NS_PER_SECOND;
        count->last.ns = end->ns;
        count->last.at_ns = end->at_ns;
        (void)snprintf(count->last.vgpu, sizeof(count->last.vgpu), "%s", end->vgpu);
}

void tally_add(struct tally *tally, const struct tally_end *end)
{
        for (size_t i = 0; i < TALLY_KINDS; i++)
                if (strcmp(kinds[i], end->kind) == 0)
                        add(&tally->count[i][end->result], end);
}

const char *tally_get_kind(size_t kind)
{
        return kinds[kind];
}

const char *tally_get_result(enum tally_result result)
{
        return results[result];
}

double tally_get_bound(size_t bucket)
{
        return bounds[bucket];
}
