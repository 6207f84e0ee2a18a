/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_TRICKLE_H
#define MOVER_TRICKLE_H

/* A copy out beside other work: small pieces, with rests between them, so that others that want the bus have it. */

#include <stddef.h>
#include <stdint.h>

#include "mover/copy.h"

struct job;

/*
 * trickle_run() - at the rate of @job at most, until it is to stop
 * @ret_copied: bytes from the beginning that have arrived; nothing behind them was written.
 */
int trickle_run(const struct copy_part *parts, size_t n_parts, struct job *job,
                struct device *device, uint64_t *ret_copied, struct mover_done *done);

#endif
