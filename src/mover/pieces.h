/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_PIECES_H
#define MOVER_PIECES_H

/* The bytes of a job outside of its target, in slabs or in memory of another device: its pieces. */

#include "mover/device.h"
#include "mover/job.h"

/*
 * pieces_find() - once a job: by staging, or else by the run
 * Errors: -EINVAL, -ENOENT (no such slab), -ENODEV (no such source), -EPROTO (not all has come), -ENOMEM; driver.
 */
int pieces_find(struct job *job, const struct device *device, struct mover_done *done);

#endif
