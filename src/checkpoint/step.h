/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STEP_H
#define CHECKPOINT_STEP_H

/*
 * Makes the driver's calls on process @i of a job, one step each.
 *
 * All return 0, or -1 with the failure noted in the job: what the driver's code means in this call,
 * and what the user can do.
 */

#include "checkpoint/job.h"

/* step_read_state() - read the process' @state, and set @state_before if it is not known yet. */
int step_read_state(struct job *job, int i);

/* step_read_thread() - read the number of its restore thread. */
int step_read_thread(struct job *job, int i);

/*
 * Each step begins in one state only. step_check() - may process @i take @step from its state? Ask for
 * every process of a group before you touch the first.
 */
enum step { STEP_LOCK, STEP_CHECKPOINT, STEP_RESTORE, STEP_UNLOCK };
int step_check(struct job *job, int i, enum step step);

int step_lock(struct job *job, int i);
int step_checkpoint(struct job *job, int i);
int step_restore(struct job *job, int i); /* with the job's pairs, unless it undoes */
int step_unlock(struct job *job, int i);

/* step_walk() - take steps from the present state to @goal; fail in a state that allows no step. */
int step_walk(struct job *job, int i, CUprocessState goal);

#endif
