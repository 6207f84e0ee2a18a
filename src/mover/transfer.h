/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_TRANSFER_H
#define MOVER_TRANSFER_H

/* The copying of a job (mover/job.h): staging ahead of the target, and the run. */

#include "mover/device.h"
#include "mover/job.h"

/*
 * transfer_begin_taking() - staging will be asked to begin: the windows that are opened from now on wait until it has
 * its memory, for as long as it is copied they are open. Where one is open already it waits for that.
 * transfer_give_up_taking() - or it will not be asked.
 */
void transfer_begin_taking(struct job *job, struct device *device);
void transfer_give_up_taking(struct job *job, struct device *device);

/*
 * transfer_stage() - copy the beginning of the job into at most @limit bytes of new memory, until
 * that is full or job_stop_staging(). No room is no failure; any other is told by the run.
 */
void transfer_stage(struct job *job, struct device *device, const struct mover_header *request,
                    uint64_t limit);

/*
 * transfer_run() - everything, and fill @done. On failure the job holds nothing any more.
 * Errors: -EPROTO (not all of the job has come), -EINVAL (a segment is not inside its memory or
 * slab, or source and target differ in size), -ENOENT (no such slab), -ENODEV (no such source),
 * -ECANCELED, -ENOMEM, -EIO.
 */
int transfer_run(struct job *job, struct device *device, const struct mover_header *request,
                 struct mover_done *done);

#endif
