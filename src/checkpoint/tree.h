/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_TREE_H
#define CHECKPOINT_TREE_H

/* The processes below a process. */

#include "checkpoint/job.h"

/*
 * tree_add_children() - add all processes below those of the job that are not in it yet, parents
 * first; those that are not in it yet have no state
 *
 * Returns how many were added, or -1 with the failure noted in the job.
 */
int tree_add_children(struct job *job);

#endif
