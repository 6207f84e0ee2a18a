/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STORAGE_H
#define CHECKPOINT_STORAGE_H

/*
 * Custom storage, the way of CUDA 13.4: at a checkpoint the driver maps the process' device memory
 * here, we copy it into a store (store.h), and tell the driver that it is done; a restore mirrors
 * it.
 *
 * There is no way back once the driver has mapped the memory, because it cannot abort the
 * operation. All checks therefore come first (room, contexts, pinned memory; at a restore, whether
 * the store is complete). If a check fails, the driver's own way is still open. A later failure
 * costs the process its life: the operation is completed so that the driver releases the process,
 * and the process is marked lost, so that nobody continues it with memory that is not its own.
 */

#include "checkpoint/job.h"

/* storage_sweep() - remove what former actions left of processes that have ended. */
void storage_sweep(void);

/* storage_look() - find where the memory of process @i is, and what is stale. Its state was just read. */
void storage_look(struct job *job, int i);

/* storage_check_kept() - fail if the driver is to keep memory that is stored elsewhere already. */
int storage_check_kept(struct job *job, int i);

/*
 * storage_prepare() - before the checkpoint of the locked process @i, choose where its memory goes, and
 * reserve the room. Returns -1, with the failure noted, only if the caller asked for something that
 * cannot be done.
 */
int storage_prepare(struct job *job, int i);

/*
 * storage_prepare_restore() - before the restore of a checkpointed process, check that its memory is
 * there, and take what the restore needs. This takes device memory for contexts, so call it before you
 * count what is left.
 */
int storage_prepare_restore(struct job *job, int i);

/* storage_check_lost() - fail if process @i lost its device memory in an earlier action. */
int storage_check_lost(struct job *job, int i);

/*
 * storage_checkpoint(), storage_restore() - use a store or the driver's own way. If this costs the process
 * its life, the failure is noted in the job, and the process' @is_lost is set.
 */
CUresult storage_checkpoint(struct job *job, int i);
CUresult storage_restore(struct job *job, int i, CUcheckpointGpuPair *pairs, unsigned int n_pairs);

/* storage_drop() - give up unused reservations, before others may have the process again. */
void storage_drop(struct job *job);

/* storage_end() - at the end of the job, release contexts and pinned memory, too. */
void storage_end(struct job *job);

#endif
