/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_JOB_LISTS_H
#define MANAGER_JOB_LISTS_H

/* What a mover's job is told of a guest's memory: its allocations, and where in the pool their bytes are. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest_job;
struct mover_segment;

/* job_lists_has() - does the copy under way move that allocation by @job? */
bool job_lists_has(const struct guest_job *job, size_t memory);

/* An empty (zeroed) one is fine for deinit. */
struct job_lists {
        size_t n;
        uint64_t *sizes;
        int *sources, *targets; /* borrowed */
};

int job_lists_make(struct job_lists *lists, const struct guest_job *job);
void job_lists_deinit(struct job_lists *lists);

/* job_lists_make_segments() - their places in the guest's reservation, which is for all of its memory. */
int job_lists_make_segments(const struct guest_job *job, struct mover_segment **ret_segments,
                            size_t *ret_n);

#endif
