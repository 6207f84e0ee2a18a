/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_REFRESH_H
#define MOVER_REFRESH_H

/* Refreshing: what has changed is copied beside other work, as far as that comes. */

#include "mover/device.h"
#include "mover/job.h"
#include "mover/plan.h"

/*
 * refresh_run() - the run of a job with a rate, whose target is mapped and whose pieces are found
 * Fills @done and tells the hashes of what the slabs have then. Errors: -ECANCELED, -ENOMEM; driver.
 */
int refresh_run(struct plan *plan, struct job *job, struct device *device,
                const struct mover_header *request, struct mover_done *done);

#endif
