/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/job-lists.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "manager/model/guest.h"
#include "manager/operation/participant.h"
#include "pool/pool.h"

bool job_lists_has(const struct guest_job *job, size_t memory)
{
        const struct guest *guest = job->guest;

        return memory >= job->first && memory - job->first < job->n &&
               guest->memory[memory].part == job->part;
}

void job_lists_deinit(struct job_lists *lists)
{
        free(lists->sizes);
        free(lists->sources);
        free(lists->targets);
}

int job_lists_make(struct job_lists *lists, const struct guest_job *job)
{
        const struct guest *guest = job->guest;
        size_t n = guest->n_memory;

        lists->sizes = calloc(n + 1, sizeof(*lists->sizes));
        lists->sources = calloc(n + 1, sizeof(*lists->sources));
        lists->targets = calloc(n + 1, sizeof(*lists->targets));
        if (!lists->sizes || !lists->sources || !lists->targets)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const struct guest_memory *memory = &guest->memory[i];

                if (!job_lists_has(job, i))
                        continue;
                lists->sizes[lists->n] = memory->size;
                lists->sources[lists->n] = memory->source;
                lists->targets[lists->n++] = memory->target;
        }
        return 0;
}

/* Of the job's memory, which it counts by itself: the reservation is for all of the guest's. */
static int keep_segments(const struct guest_job *job, struct mover_segment *segments, size_t *n)
{
        CLEANUP(freep) uint32_t *numbers = calloc(job->guest->n_memory + 1, sizeof(*numbers));
        uint32_t number = 0;
        size_t n_kept = 0;

        if (!numbers)
                return -ENOMEM;
        for (size_t i = 0; i < job->guest->n_memory; i++)
                numbers[i] = job_lists_has(job, i) ? number++ : UINT32_MAX;
        for (size_t i = 0; i < *n; i++) {
                if (numbers[segments[i].memory] == UINT32_MAX)
                        continue;
                segments[n_kept] = segments[i];
                segments[n_kept].memory = numbers[segments[i].memory];
                n_kept++;
        }
        *n = n_kept;
        return 0;
}

int job_lists_make_segments(const struct guest_job *job, struct mover_segment **ret_segments,
                            size_t *ret_n)
{
        const struct guest *guest = job->guest;
        CLEANUP(freep) uint64_t *sizes = calloc(guest->n_memory + 1, sizeof(*sizes));
        const struct pool_extent *extents;
        size_t n_extents;
        int r;

        if (!sizes)
                return -ENOMEM;
        for (size_t i = 0; i < guest->n_memory; i++)
                sizes[i] = guest->memory[i].size;
        extents = pool_get_extents(guest->reservation, &n_extents);
        r = pool_make_segments(ret_segments, ret_n, sizes, guest->n_memory, extents, n_extents);
        return r < 0 ? r : keep_segments(job, *ret_segments, ret_n);
}
