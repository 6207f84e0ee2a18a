/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_LIVE_H
#define MOVER_LIVE_H

/*
 * A copy out of memory that is written to meanwhile (MOVER_JOB_LIVE). What arrives is of no one moment, so its
 * hash is not the memory's: each piece is first copied to memory of our own on the device, which no program
 * changes, and from there both hashed and copied to the slabs.
 */

#include <stddef.h>
#include <stdint.h>

#include "mover/copy.h"
#include "mover/device.h"
#include "mover/job.h"

/*
 * live_run() - until it is through or is to stop; the hashes of @job are those of what the slabs have then
 * @ret_copied: bytes that have arrived. Errors: driver, and some hashes are unknown.
 */
int live_run(const struct copy_part *parts, size_t n_parts, struct job *job, struct device *device,
             uint64_t *ret_copied, struct mover_done *done);

#endif
