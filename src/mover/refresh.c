/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/refresh.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "mover/answer.h"
#include "mover/difference.h"
#include "mover/driver.h"
#include "mover/live.h"
#include "mover/trickle.h"

/* How much of each block was copied, if the first @n_copied bytes of the parts were. */
static int count_copied(const struct plan *plan, const struct job *job, uint64_t n_copied,
                        uint32_t **ret_counts)
{
        CLEANUP(freep) uint32_t *counts = calloc(job->n_hashes, sizeof(*counts));

        if (!counts)
                return -ENOMEM;
        for (size_t i = 0; i < plan->n_parts && n_copied > 0; i++) {
                const struct copy_part *part = &plan->parts[i];
                uint64_t offset = part->device - job->target_mapping.base;
                uint64_t rest = part->length < n_copied ? part->length : n_copied;

                n_copied -= rest;
                while (rest > 0) {
                        uint64_t in_block = HASH_BLOCK - offset % HASH_BLOCK;
                        uint64_t n = rest < in_block ? rest : in_block;

                        counts[offset / HASH_BLOCK] += (uint32_t)n;
                        offset += n;
                        rest -= n;
                }
        }
        *ret_counts = TAKE(counts);
        return 0;
}

/* The contents of the slabs now. Pieces that were not reached are as they were. */
static int note_copied(const struct plan *plan, struct job *job,
                       const struct difference *difference, uint64_t n_copied)
{
        CLEANUP(freep) uint32_t *counts = NULL;
        int r = count_copied(plan, job, n_copied, &counts);

        for (size_t i = 0; i < job->n_hashes && r == 0; i++)
                if (counts[i] == HASH_BLOCK)
                        job->hashes[i] = difference->hashing.values[i];
                else if (counts[i] > 0)
                        job->hashes[i] = HASH_UNKNOWN;
        return r;
}

static int copy_found(const struct plan *plan, struct job *job, struct device *device,
                      const struct difference *difference, uint64_t *ret_copied,
                      struct mover_done *done)
{
        int r;

        if (job->is_live)
                return live_run(plan->parts, plan->n_parts, job, device, ret_copied, done);
        r = trickle_run(plan->parts, plan->n_parts, job, device, ret_copied, done);
        return r < 0 ? r : note_copied(plan, job, difference, *ret_copied);
}

static int refresh_found(struct plan *plan, struct job *job, struct device *device,
                         const struct difference *difference, const struct mover_header *request,
                         struct mover_done *done)
{
        uint64_t n_copied = 0;
        int r = plan_rest(plan, job, difference);

        if (r == 0)
                r = driver_fault_point(done, "mover.refreshing");
        done->is_torn = r == 0;
        if (r == 0)
                r = copy_found(plan, job, device, difference, &n_copied, done);
        if (r == 0 && job->is_cancelled)
                r = -ECANCELED;
        if (r == 0)
                answer_hashes(request, job->hashes, job->n_hashes);
        done->unchanged = difference->n_unchanged * HASH_BLOCK;
        done->bytes = done->unchanged + n_copied;
        return r;
}

int refresh_run(struct plan *plan, struct job *job, struct device *device,
                const struct mover_header *request, struct mover_done *done)
{
        struct difference difference = { 0 };
        int r;

        difference_begin(&difference, job, device);
        difference_find(&difference);
        difference_wait(&difference); /* where no block was known */
        r = difference.error;
        if (r < 0) {
                *done = difference.failure;
                difference_log(&difference);
        }
        done->hash_ns = difference.wait_ns;
        if (r == 0)
                r = refresh_found(plan, job, device, &difference, request, done);
        difference_deinit(&difference);
        return r;
}
