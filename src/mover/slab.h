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
 * A slab comes in three steps, and from the first on jobs can hold it: what they copy goes to those that are
 * registered already while others are being filled and registered.
 *
 * Threads: any; slab_add() and its kin run one at a time, in the slab lane. A job
 * holds the slabs that it uses.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "mover/device.h"
#include "wire/mover.h"

struct slab;

struct slabs {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct slab *first;
};

void slabs_init(struct slabs *slabs);

/*
 * slab_begin() - map it; @fd stays the caller's. Then slab_fill() and slab_add(), each once. Errors: -EEXIST;
 * -EINVAL (a file that is smaller); mmap().
 */
int slab_begin(struct slabs *slabs, uint32_t id, int fd, uint64_t size);

/* slab_fill() - give it all of its pages, huge ones where the kernel has them. Needs no device; any thread. */
void slab_fill(struct slabs *slabs, uint32_t id);

/* slab_add() - register it. After a failure it is gone; a job that wants it, now or already, fails like this. */
int slab_add(struct slabs *slabs, struct device *device, uint32_t id, struct mover_done *done);

/*
 * slab_wait() - for a slab that the caller holds: until it is registered, or @stop and then slabs_wake().
 * Errors: as slab_add(), with its @done.
 */
int slab_wait(struct slabs *slabs, uint32_t id, const atomic_bool *stop, struct mover_done *done);
void slabs_wake(struct slabs *slabs);

/* slab_zero() - Errors: -ENOENT; -EBUSY, a job uses it, or it is coming. */
int slab_zero(struct slabs *slabs, uint32_t id);

/* slab_remove() - Errors: -ENOENT; -EBUSY, a job uses it, or it is coming; the driver. */
int slab_remove(struct slabs *slabs, struct device *device, uint32_t id, struct mover_done *done);

/*
 * slab_hold() - where @length bytes from @offset are, until slab_release(). Errors: -ENOENT; -ERANGE
 * (not inside); as slab_add(), with its @done.
 */
int slab_hold(struct slabs *slabs, uint32_t id, uint64_t offset, uint64_t length,
              char **ret_address, struct mover_done *done);
void slab_release(struct slabs *slabs, uint32_t id);

/* slabs_are_empty() - is none registered? */
bool slabs_are_empty(struct slabs *slabs);

#endif
