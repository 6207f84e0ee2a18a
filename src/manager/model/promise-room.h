/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PROMISE_ROOM_H
#define MANAGER_PROMISE_ROOM_H

/* What devices can promise beyond what they have promised (promise.h). */

#include <stdint.h>

#include "daemon/failure.h"

struct device;
struct instance;
struct place;

/* promise_get_left() - what it may promise more. */
uint64_t promise_get_left(const struct device *device);

/*
 * promise_check_room() - can each device of @place promise @bytes more, and all of them what that is together,
 * without what @except has? NoRoom.
 */
int promise_check_room(const struct place *place, uint64_t bytes, const struct instance *except,
                       struct failure *failure);

#endif
