/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_SLAB_H
#define MOVER_SLAB_H

/*
 * Slabs: the manager's memfds, mapped here and registered with the driver, so
 * that the device reads and writes them at the speed of the bus.
 *
 * A slab may hold data when it comes (another mover, or a former one, put it
 * there), so touching its pages must not change them.
 *
 * Threads: any; slab_add() and its kin run one at a time, in the slab lane. A job
 * holds the slabs that it uses.
 */

#include <pthread.h>
#include <stdint.h>

#include "mover/device.h"
#include "wire/mover.h"

struct slab;

struct slabs {
        pthread_mutex_t lock;
        struct slab *first;
};

/*
 * slab_add() - map, touch and register; @fd stays the caller's. Errors: -EEXIST; -EINVAL (a
 * file that is smaller); mmap(); driver.
 */
int slab_add(struct slabs *slabs, struct device *device, uint32_t id, int fd, uint64_t size,
             struct mover_done *done);

/* slab_zero() - Errors: -ENOENT; -EBUSY, a job uses it. */
int slab_zero(struct slabs *slabs, uint32_t id);

/* slab_remove() - Errors: -ENOENT; -EBUSY, a job uses it; the driver. */
int slab_remove(struct slabs *slabs, struct device *device, uint32_t id, struct mover_done *done);

/*
 * slab_hold() - where @length bytes from @offset are, until slab_release(). Errors: -ENOENT; -ERANGE
 * (not inside).
 */
int slab_hold(struct slabs *slabs, uint32_t id, uint64_t offset, uint64_t length,
              char **ret_address);
void slab_release(struct slabs *slabs, uint32_t id);

/* slabs_are_empty() - none is registered, so the device context can be dropped. */
bool slabs_are_empty(struct slabs *slabs);

#endif
