/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/passing.h"

#include "base/fault.h"
#include "mover/answer.h"

/* A part of the job at a time: each costs the bus a moment, and the process that waits for the memory another. */
#define HAND_OVER_PARTS 32

static bool are_in_order(const struct plan *plan)
{
        for (size_t i = 1; i < plan->n_parts; i++)
                if (plan->parts[i].device <= plan->parts[i - 1].device)
                        return false;
        return true;
}

void passing_begin(struct passing *passing, struct job *job, const struct plan *plan,
                   struct difference *difference, const struct mover_header *request)
{
        *passing = (struct passing){ .job = job,
                                     .plan = plan,
                                     .difference = difference,
                                     .request = request,
                                     .is_on = job->hands_over && are_in_order(plan) };
}

/* All before it in the target's range is in the slabs, once the first @bytes_done bytes of the parts are. */
static uint64_t find_position(struct passing *passing, uint64_t bytes_done)
{
        CUdeviceptr base = passing->job->target_mapping.base;
        const struct copy_part *part;

        while (passing->part < passing->plan->n_parts) {
                part = &passing->plan->parts[passing->part];
                if (bytes_done - passing->before < part->length)
                        return part->device - base + bytes_done - passing->before;
                passing->before += part->length;
                passing->part++;
        }
        return passing->job->target_mapping.size;
}

/* The hashes are of all memory: they come first. A failure is none of the copy: the job keeps what it has. */
static void pass(struct passing *passing, size_t n)
{
        struct mover_done failure = { 0 };
        struct job *job = passing->job;

        difference_wait(passing->difference);
        passing->is_on = mapping_pass(&job->target_mapping, job->target.sizes, n, &failure) == 0;
        if (!passing->is_on)
                return;
        answer_passed(passing->request, n);
        (void)fault_point("mover.passed"); /* to kill or to wait; it cannot fail */
}

/* @bytes_done: of the parts, in their order. */
void passing_go_on(struct passing *passing, uint64_t bytes_done)
{
        struct job *job = passing->job;
        uint64_t position, end = passing->end;
        size_t n = passing->memory;

        if (!passing->is_on)
                return;
        position = find_position(passing, bytes_done);
        while (n < job->n_memories && end + job->target.sizes[n] <= position)
                end += job->target.sizes[n++];
        if (n == passing->memory ||
            (n < job->n_memories &&
             end - passing->end < job->target_mapping.size / HAND_OVER_PARTS))
                return;
        passing->memory = n;
        passing->end = end;
        pass(passing, n);
}
