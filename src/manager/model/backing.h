/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_BACKING_H
#define MANAGER_BACKING_H

/*
 * Where the vGPUs of overcommitted devices can go, all at once.
 *
 * Each of them has a place of its own: in the pool, as much of it as its quota on all of its devices together, or on the disk of the spill
 * (reserve.h). Those with a place on the disk get there through the pool. So of the pool there is also a window,
 * as large as the largest of them: whoever has to leave finds it free, or what is in it goes to its place on the disk.
 *
 * A vGPU gets a place in the pool as long as there is room. After that it gets one on the disk, and perhaps others have
 * to give theirs in the pool for one there, for the window. A device whose quotas fit into its memory needs nothing
 * of that.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"

struct device;
struct instance;
struct manager;
struct place;

/* backing_get_left() - how large may one vGPU more be on @device, which is overcommitted, without @except? */
uint64_t backing_get_left(const struct device *device, const struct instance *except);

/* backing_check() - may one have @bytes on each device of @place? NoRoom. */
int backing_check(const struct place *place, uint64_t bytes, const struct instance *except,
                  struct failure *failure);

/*
 * backing_hold() - hold what @instance needs to be at @place with a quota of @frame_buffer on each device
 * It need not be there yet, and no device need be overcommitted. Errors: NoRoom, and what was held before still is.
 */
int backing_hold(struct instance *instance, const struct place *place, uint64_t frame_buffer,
                 struct failure *failure);

/* backing_hold_all() - after loading: for those that are there. Errors: NoRoom: more is promised than can be held. */
int backing_hold_all(struct manager *manager, struct failure *failure);

/* backing_get_held() - of the pool, for vGPUs that are not there yet: @asks may not have it. */
uint64_t backing_get_held(const struct manager *manager, const struct instance *asks);

/* backing_is_needed() - has @instance a place in the pool or on the disk, wherever its memory is? */
bool backing_is_needed(const struct instance *instance);

/* backing_get_surplus() - what those with a place on the disk have in the pool beyond their window: others may have it. */
uint64_t backing_get_surplus(const struct manager *manager);

#endif
