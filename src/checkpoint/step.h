/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STEP_H
#define CHECKPOINT_STEP_H

/*
 * The driver's calls on process @i of a job, one step each.
 *
 * All return 0, or -1 with the failure noted in the job: what the driver's code means in this call,
 * and what can be done.
 */

#include "checkpoint/job.h"

/* step_read_state() - into the process' @state, and into @state_before when that is not known. */
int step_read_state(struct job *job, int i);

/* step_read_thread() - its restore thread. */
int step_read_thread(struct job *job, int i);

/*
 * The steps, each from one state only. step_check() - may process @i take @step from where it is? Ask for
 * every process of a group before the first of them is touched.
 */
enum step { STEP_LOCK, STEP_CHECKPOINT, STEP_RESTORE, STEP_UNLOCK };
int step_check(struct job *job, int i, enum step step);

int step_lock(struct job *job, int i);
int step_checkpoint(struct job *job, int i);
int step_restore(struct job *job, int i); /* with the job's pairs, unless it undoes */
int step_unlock(struct job *job, int i);

/* step_walk() - by steps to @goal, from where it is; a state in which no step is possible fails. */
int step_walk(struct job *job, int i, CUprocessState goal);

#endif
