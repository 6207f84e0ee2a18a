/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_PLAN_H
#define MOVER_PLAN_H

/*
 * What copy_run() does for a job. The bytes of a job have an order, that of its pieces. Staging copies them from
 * the first on, one after another, into one memory. The run then copies what is staged within the device,
 * and the rest from where it is.
 *
 * The memories of a job lie in one range of addresses, so neighbours are joined into one copy, whatever the
 * number of allocations that they came from.
 */

#include <stddef.h>
#include <stdint.h>

#include "mover/copy.h"
#include "mover/job.h"

struct difference;

struct plan {
        uint64_t *offsets;       /* of the memories in the target's range */
        struct copy_part *parts; /* what copy_run() does */
        size_t n_parts, n_parts_max;
};

/* plan_locate() - where the memories of @target will be. Before the others but plan_staging(). Errors: -ENOMEM. */
int plan_locate(struct plan *plan, const struct job_memories *target);

/* Errors of all: -ENOMEM. plan_skipped() and plan_rest() forget what was planned before. */

/* plan_staging() - staging takes the bytes of the job as they come. */
int plan_staging(struct plan *plan, const struct job *job);

/* plan_staged() - from staging to the target: the first job->n_staged bytes. */
int plan_staged(struct plan *plan, const struct job *job);

/* plan_skipped() - what is not copied, for it is in the slabs already. */
int plan_skipped(struct plan *plan, const struct job *job, const struct difference *difference);

/* plan_rest() - all else that is not staged, between its own place and the target. */
int plan_rest(struct plan *plan, const struct job *job, const struct difference *difference);

void plan_deinit(struct plan *plan);

#endif
