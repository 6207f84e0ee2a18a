/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPY_WAY_H
#define MANAGER_COPY_WAY_H

/*
 * A copy takes the steps of its way, one after another: each by all of its jobs at once, or once for the
 * guest. A step has done its work when it returns 0; it returns COPY_WAITS when a callback of its own will
 * call copy_way_end_wait(), or copy_way_go_on() for the guest, and fails with what it returns else.
 */

#include <stdbool.h>

#include "wire/mover.h"

struct guest;
struct guest_job;

#define COPY_WAITS 1

struct copy_step {
        int (*each)(struct guest_job *job);
        int (*once)(struct guest *guest);
        bool is_end; /* taken also after a failure */
};

struct copy_way {
        bool (*is_pooled)(
                const struct guest *guest); /* to or from the pool; else between devices */
        enum mover_job_kind pooled;         /* the kind of job then; else PEER */
        bool is_live; /* the guest runs meanwhile: a failure is none of the operation */
        bool has_job; /* perhaps: what staging has begun goes on */
        const struct copy_step *steps; /* behind the last, one of neither kind */
};

/* copy_way_start() - guest->participant->copy says of what. The guest may be freed by the end of it. */
void copy_way_start(struct guest *guest, const struct copy_way *way);

/* copy_way_go_on() - what was waited for is there, or has failed. Likewise. */
void copy_way_go_on(struct guest *guest);

/* copy_way_fail() - the step has failed for @job, by what its mover said in @done, if that is not NULL. */
void copy_way_fail(struct guest_job *job, int error, const struct mover_done *done);

/* copy_way_end_wait() - @job waits for nothing any more; copy_way_fail() if @error is negative. */
void copy_way_end_wait(struct guest_job *job, int error, const struct mover_done *done);

#endif
