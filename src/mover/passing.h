/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_PASSING_H
#define MOVER_PASSING_H

/* Handing over: memory that is in the slabs is let go while the rest is copied (MOVER_PASSED). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mover/difference.h"
#include "mover/job.h"
#include "mover/plan.h"

/* An empty (zeroed) one passes nothing. */
struct passing {
        struct job *job;
        const struct plan *plan;
        struct difference *difference;
        const struct mover_header *request;
        size_t part;     /* the first of the plan that is not copied */
        uint64_t before; /* bytes of those before it */
        size_t memory;   /* the first memory that is not in the slabs */
        uint64_t end;    /* where it begins, in the target's range */
        bool is_on;
};

/* passing_begin() - nothing of @plan is copied yet. */
void passing_begin(struct passing *passing, struct job *job, const struct plan *plan,
                   struct difference *difference, const struct mover_header *request);

/* passing_go_on() - the first @bytes_done bytes of the parts are copied, in their order. */
void passing_go_on(struct passing *passing, uint64_t bytes_done);

#endif
