/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/tally.h"

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

void tally_add(struct tally *tally, const char *kind, enum tally_result result, uint64_t ns,
               uint64_t bytes)
{
        for (size_t i = 0; i < TALLY_KINDS; i++) {
                struct tally_count *count = &tally->count[i][result];

                if (strcmp(kinds[i], kind) != 0)
                        continue;
                count->n++;
                count->ns += ns;
                count->bytes += bytes;
                for (size_t b = 0; b < TALLY_BUCKETS; b++)
                        count->bucket[b] += (double)ns <= bounds[b] * NS_PER_SECOND;
        }
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
