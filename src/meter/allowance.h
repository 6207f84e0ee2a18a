/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_ALLOWANCE_H
#define METER_ALLOWANCE_H

/*
 * How many processes of each user the ledger lists one by one; and, counted apart, how many vGPUs that are gone.
 *
 * A program that starts processes (or makes and removes vGPUs) in a loop would otherwise fill the disk with rows. A user may have
 * ALLOWANCE_BURST processes listed at once, and one more for each ALLOWANCE_INTERVAL_MS that passes. What
 * is beyond that is billed as well, but as one sum for each vGPU (or user), device and minute (ledger.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

#define ALLOWANCE_BURST       1000u
#define ALLOWANCE_INTERVAL_MS 10000u

/* Who ran longer is listed in any case: there are only so many at a time. */
#define ALLOWANCE_LIFE_MS 600000u

struct allowance {
        struct list users; /* who have taken some that they have not got back yet */
};

void allowance_init(struct allowance *allowance);
void allowance_deinit(struct allowance *allowance);

/*
 * allowance_take() - one process of @user ended; false: it is not listed
 * @now_ms: of a clock that is never set
 */
bool allowance_take(struct allowance *allowance, uid_t user, uint64_t now_ms);

#endif
