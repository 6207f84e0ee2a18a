/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_HOLD_H
#define MOVER_HOLD_H

/*
 * Held memory: unused memory of the mover's device, kept for the restores of processes
 * so that nobody else takes it. It is released right before the driver's call. This
 * needs no current context.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "mover/device.h"
#include "wire/mover.h"

struct hold;

struct holds {
        pthread_mutex_t lock;
        struct hold *first;
};

/*
 * hold_take() - have @bytes in all in hand for @pid; what there is already stays
 * @request: the number of the request that asks; from now on all of it is that one's
 *
 * Errors: -ENOMEM (the device has no room; what was held before is held still), -EIO.
 */
int hold_take(struct holds *holds, struct device *device, int pid, uint64_t bytes, uint32_t request,
              struct mover_done *done);

/* hold_take_within() - likewise, in a freeing window that the caller has open: of what it has made free. */
int hold_take_within(struct holds *holds, struct device *device, int pid, uint64_t bytes,
                     uint32_t request, struct mover_done *done);

/*
 * hold_drop() - let go of all that is held for @pid, but for what a request after @request has
 * taken: requests of several lanes overtake one another. Errors: -EIO, it is not free: the driver
 * is broken.
 */
int hold_drop(struct holds *holds, int pid, uint32_t request, struct mover_done *done);

bool holds_are_empty(struct holds *holds);

#endif
