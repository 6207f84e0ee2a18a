/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPY_JOB_H
#define MANAGER_COPY_JOB_H

/*
 * The jobs of a copy (copy-way.h): one for each device that has some of the memory that is copied, in the
 * mover of that device. What copy_job_is_there() not is gone with its mover.
 */

#include <stdbool.h>
#include <stddef.h>

struct guest_job;
struct mover_done;

bool copy_job_is_there(const struct guest_job *job);

/* copy_job_count() - allocations that it copies. */
size_t copy_job_count(const struct guest_job *job);

/* copy_job_stop() - of a way that is live: its run ends where it is. */
void copy_job_stop(struct guest_job *job);

/* copy_job_begin_in() - without a way: the mover knows what of the pool goes where. */
int copy_job_begin_in(struct guest_job *job);

/* copy_job_note_run() - it has run: to the log, and for the operation's report. */
void copy_job_note_run(struct guest_job *job, const struct mover_done *done);

/* Steps. */

/* copy_job_begin() - the mover knows what goes where. */
int copy_job_begin(struct guest_job *job);

/* copy_job_stage() - begin to copy ahead of the target, into the guest's part of what the operation may take. */
int copy_job_stage(struct guest_job *job);

/* copy_job_run() - all of it is copied. */
int copy_job_run(struct guest_job *job);

/* copy_job_let_go() - copy_job_end() unless somebody may still need the job, who ends it by copies_end(). */
int copy_job_let_go(struct guest_job *job);

/* copy_job_drop() - the same, and nobody waits for it. */
void copy_job_drop(struct guest_job *job);

/* copy_job_end() - the mover holds nothing of it any more. */
int copy_job_end(struct guest_job *job);

/* copy_job_make_context() - nothing else. */
int copy_job_make_context(struct guest_job *job);

#endif
