/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PROMISE_ROOM_H
#define MANAGER_PROMISE_ROOM_H

/* What devices can promise beyond what they have promised (promise.h). */

#include <stdint.h>

#include "daemon/failure.h"

struct device;
struct instance;

/* promise_get_left() - what it may promise more. */
uint64_t promise_get_left(const struct device *device);

/* promise_check_room() - can it promise @bytes more, without what @except has? NoRoom. */
int promise_check_room(const struct device *device, uint64_t bytes, const struct instance *except,
                       struct failure *failure);

#endif
