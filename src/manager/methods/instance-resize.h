/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_INSTANCE_RESIZE_H
#define MANAGER_INSTANCE_RESIZE_H

#include <stdint.h>

#include "daemon/failure.h"

struct instance;

/*
 * instance_resize() - its quota is @frame_buffer from now on; its programs run on
 *
 * It is never less than what its programs hold, also when they ask for more at this moment, nor more than
 * its device has left. Errors: InvalidParameter, NoRoom, Unsupported, InUse (its programs hold more), Busy.
 */
int instance_resize(struct instance *instance, uint64_t frame_buffer, struct failure *failure);

#endif
