/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_MEMORY_H
#define CHECKPOINT_MEMORY_H

/*
 * Checks that a restore fits. A restore that finds too little memory loses the process for ever
 * (measured on driver 580), so the helper asks the devices first.
 *
 * NVML says how much a process needs while it runs. The checkpoint notes this in the run directory,
 * under the process' number and start, for the restore. Without the note (another program made the
 * checkpoint) or without NVML nothing is known, and the restore is tried.
 */

#include "checkpoint/job.h"

/*
 * memory_note() - before the checkpoint of process @i, note how much it holds, and where
 *
 * -1 with the failure noted in the job: one of these devices is full to the last. The driver takes some MiB of it
 * for a checkpoint. Without them it fails, and every later one of the process, too (measured on driver 580).
 */
int memory_note(struct job *job, int i);

/* memory_forget() - remove the note: process @i has been restored. */
void memory_forget(const struct job *job, int i);

/*
 * memory_check() - have the devices room for all processes of the job that are checkpointed, where
 * the job's pairs send them? -1 with the failure noted in the job.
 */
int memory_check(struct job *job);

#endif
