/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/tally.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const char *const kinds[TALLY_KINDS] = { "suspend", "resume", "migrate", "catch-up" };

static const char *const results[TALLY_RESULTS] = {
        [TALLY_DONE] = "done",
        [TALLY_UNDONE] = "undone",
        [TALLY_FAILED] = "failed",
};

/* Seconds: a small vGPU takes a tenth of one, 100 GiB take two; a drain may wait for ten. */
static const double bounds[TALLY_BUCKETS] = { 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 };

/* From nothing to all of a large GPU; most vGPUs have between 1 and 128 GiB. */
static const uint64_t byte_bounds[TALLY_BYTE_BUCKETS] = {
        0,
        (uint64_t)1 << 20, /* 1 MiB */
        (uint64_t)1 << 24,
        (uint64_t)1 << 28,
        (uint64_t)1 << 30, /* 1 GiB */
        (uint64_t)1 << 32,
        (uint64_t)1 << 34,
        (uint64_t)1 << 35,
        (uint64_t)1 << 36,
        (uint64_t)1 << 37, /* 128 GiB */
};

static void add_ahead(struct tally_ahead *sum, const struct tally_ahead *ahead)
{
        sum->n += ahead->n;
        sum->n_rounds += ahead->n_rounds;
        sum->bytes += ahead->bytes;
        sum->ns += ahead->ns;
        sum->stopped_ns += ahead->stopped_ns;
}

static void add(struct tally_count *count, const struct tally_end *end)
{
        count->n++;
        count->ns += end->ns;
        count->bytes += end->bytes;
        for (size_t b = 0; b < TALLY_BUCKETS; b++)
                count->bucket[b] += (double)end->ns <= bounds[b] * NS_PER_S;
        for (size_t b = 0; b < TALLY_BYTE_BUCKETS; b++)
                count->byte_bucket[b] += end->bytes <= byte_bounds[b];
        add_ahead(&count->ahead, &end->ahead);
        count->last.bytes = end->bytes;
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

uint64_t tally_get_byte_bound(size_t bucket)
{
        return byte_bounds[bucket];
}
