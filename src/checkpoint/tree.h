/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_TREE_H
#define CHECKPOINT_TREE_H

/* Finds the processes below a process. */

#include "checkpoint/job.h"

/*
 * tree_add_children() - add all processes below those of the job, parents first, unless they are in it.
 * They have no state yet. Returns how many it added, or -1 with the failure noted in the job.
 */
int tree_add_children(struct job *job);

#endif
