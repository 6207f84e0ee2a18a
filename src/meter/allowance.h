/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_ALLOWANCE_H
#define METER_ALLOWANCE_H

/*
 * The allowance says how many processes of each user the ledger lists one by one and, counted apart,
 * how many vGPUs that are gone.
 *
 * A program that starts processes (or makes and removes vGPUs) in a loop would otherwise fill the disk with
 * rows. A user may have ALLOWANCE_BURST processes listed at once, and one more for each
 * ALLOWANCE_INTERVAL_MS that passes. All further processes are billed as one sum for each vGPU (or user),
 * device and minute (ledger.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

#define ALLOWANCE_BURST       1000u
#define ALLOWANCE_INTERVAL_MS 10000u

/* A process that ran longer is always listed: few such processes can exist at a time. */
#define ALLOWANCE_LIFE_MS 600000u

struct allowance {
        struct list users; /* who have not got back all that they took */
};

void allowance_init(struct allowance *allowance);
void allowance_deinit(struct allowance *allowance);

/*
 * allowance_take() - take one place for a process of @user that ended; false: it is not listed
 * @now_ms:  time of a clock that nobody sets
 */
bool allowance_take(struct allowance *allowance, uid_t user, uint64_t now_ms);

#endif
