/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "mover/difference.h"

static uint64_t min(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

int plan_locate(struct plan *plan, const struct job_memories *target)
{
        uint64_t offset = 0;

        plan->offsets = calloc(target->n + 1, sizeof(*plan->offsets));
        if (!plan->offsets)
                return -ENOMEM;
        for (size_t i = 0; i < target->n; i++) {
                plan->offsets[i] = offset;
                offset += target->sizes[i];
        }
        return 0;
}

void plan_deinit(struct plan *plan)
{
        free(plan->offsets);
        free(plan->parts);
}

static bool continues(const struct copy_part *part, const struct copy_part *next)
{
        return part->region == next->region && part->device + part->length == next->device &&
               (part->host ? part->host + part->length == next->host
                           : !next->host && part->from + part->length == next->from);
}

static int add_part(struct plan *plan, const struct copy_part *part)
{
        if (plan->n_parts > 0 && continues(&plan->parts[plan->n_parts - 1], part)) {
                plan->parts[plan->n_parts - 1].length += part->length;
                return 0;
        }
        if (plan->n_parts == plan->n_parts_max) {
                size_t n = plan->n_parts_max > 0 ? 2 * plan->n_parts_max : 64;
                struct copy_part *parts = reallocarray(plan->parts, n, sizeof(*parts));

                if (!parts)
                        return -ENOMEM;
                plan->parts = parts;
                plan->n_parts_max = n;
        }
        plan->parts[plan->n_parts++] = *part;
        return 0;
}

/* @n bytes of @piece from @skip on, between its place outside and @device. */
static int add_piece(struct plan *plan, const struct job_piece *piece, uint64_t skip, uint64_t n,
                     CUdeviceptr device)
{
        const struct copy_part part = { .region = piece->slab,
                                        .device = device,
                                        .host = piece->host ? piece->host + skip : NULL,
                                        .from = piece->host ? 0 : piece->source + skip,
                                        .length = n };

        return add_part(plan, &part);
}

/* Staging takes the bytes of the job as they come. */
int plan_staging(struct plan *plan, const struct job *job)
{
        uint64_t room = min(job->staging.size, job->n_bytes), n_planned = 0;
        int r = 0;

        for (size_t i = 0; i < job->n_pieces && n_planned < room && r == 0; i++) {
                uint64_t n = min(job->pieces[i].length, room - n_planned);

                r = add_piece(plan, &job->pieces[i], 0, n, job->staging.base + n_planned);
                n_planned += n;
        }
        return r;
}

static CUdeviceptr target_of(const struct plan *plan, const struct job *job,
                             const struct job_piece *piece)
{
        return job->target_mapping.base + plan->offsets[piece->memory] + piece->memory_offset;
}

/* From staging to the target: the first job->n_staged bytes. */
int plan_staged(struct plan *plan, const struct job *job)
{
        uint64_t n_planned = 0;
        int r = 0;

        for (size_t i = 0; i < job->n_pieces && n_planned < job->n_staged && r == 0; i++) {
                struct copy_part part = { .device = target_of(plan, job, &job->pieces[i]),
                                          .from = job->staging.base + n_planned,
                                          .length = min(job->pieces[i].length,
                                                        job->n_staged - n_planned) };

                r = add_part(plan, &part);
                n_planned += part.length;
        }
        return r;
}

/* The bytes of @piece from @skip on in blocks that are in the slabs already, or the others. */
static int add_blocks(struct plan *plan, const struct job *job, const struct difference *difference,
                      const struct job_piece *piece, uint64_t skip, bool are_skipped)
{
        CUdeviceptr device = target_of(plan, job, piece);
        uint64_t in_mapping = device - job->target_mapping.base;
        int r = 0;

        while (skip < piece->length && r == 0) {
                uint64_t offset = in_mapping + skip;
                uint64_t n = min(piece->length - skip, HASH_BLOCK - offset % HASH_BLOCK);

                if (difference_skips(difference, offset) == are_skipped)
                        r = add_piece(plan, piece, skip, n, device + skip);
                skip += n;
        }
        return r;
}

int plan_skipped(struct plan *plan, const struct job *job, const struct difference *difference)
{
        int r = 0;

        plan->n_parts = 0;
        for (size_t i = 0; i < job->n_pieces && r == 0; i++)
                r = add_blocks(plan, job, difference, &job->pieces[i], 0, true);
        return r;
}

/* The others, between their own place and the target. */
int plan_rest(struct plan *plan, const struct job *job, const struct difference *difference)
{
        uint64_t to_skip = job->n_staged;
        int r = 0;

        plan->n_parts = 0;
        for (size_t i = 0; i < job->n_pieces && r == 0; i++) {
                const struct job_piece *piece = &job->pieces[i];
                uint64_t skip = min(to_skip, piece->length);

                to_skip -= skip;
                r = add_blocks(plan, job, difference, piece, skip, false);
        }
        return r;
}
