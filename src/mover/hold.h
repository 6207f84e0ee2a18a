/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_HOLD_H
#define MOVER_HOLD_H

/*
 * Held memory: unused memory of the mover's device, kept for the restores of processes
 * so that no other takes it. It is released right before the driver's call. This
 * needs no current context.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "mover/device.h"
#include "wire/mover.h"

/*
 * So long one with windows open waits for those of others, which may wait for ours: without its hold a process is as
 * it was, and the caller tries again.
 */
#define HOLD_WITHIN_MS 1000

struct hold;

struct holds {
        pthread_mutex_t lock;
        struct hold *first;
};

/*
 * hold_take() - have @bytes in all in hand for @pid; what there is already stays
 * @request: the number of the request that asks; from now on all of it is that one's
 * @wait_ms: so long it waits for windows (mover/room.h), if something is lacking
 *
 * Errors: -ENOMEM (the device has no room, or what is free was that of a window all that time; what was held before
 * is held still), -EIO.
 */
int hold_take(struct holds *holds, struct device *device, int pid, uint64_t bytes, uint32_t request,
              uint32_t wait_ms, struct mover_done *done);

/*
 * hold_take_within() - the same in a freeing window that the caller has open: of what it has made free, but for what calls
 * of the driver beside it, and those after it, need of the device.
 */
int hold_take_within(struct holds *holds, struct device *device, int pid, uint64_t bytes,
                     uint32_t request, uint32_t wait_ms, struct mover_done *done);

/*
 * hold_drop() - let go of all that is held for @pid, but for what a request after @request has
 * taken: requests of several lanes overtake one another. Errors: -EIO, it is not free: the driver
 * is broken.
 */
int hold_drop(struct holds *holds, int pid, uint32_t request, struct mover_done *done);

/* hold_get() - what is held for @pid. */
uint64_t hold_get(struct holds *holds, int pid);

bool holds_are_empty(struct holds *holds);

#endif
