/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/promise-room.h"

#include <errno.h>

#include "base/size.h"
#include "manager/model/backing.h"
#include "manager/model/device.h"
#include "manager/model/place.h"
#include "manager/model/promise.h"

uint64_t promise_get_left(const struct device *device)
{
        uint64_t promised;

        if (device->meter.is_lost || promise_is_left_out(device))
                return 0;
        if (promise_is_overcommitted(device))
                return backing_get_left(device, NULL);
        promised = promise_get_sum(device, NULL);
        return promised < device->memory_total ? device->memory_total - promised : 0;
}

static int check_device(const struct device *device, uint64_t bytes, const struct instance *except,
                        struct failure *failure)
{
        uint64_t promised = promise_get_sum(device, except);
        uint64_t left = promised < device->memory_total ? device->memory_total - promised : 0;
        char left_text[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];

        if (device->meter.is_lost)
                return failure_set(failure, -ENODEV, "NoRoom", "choose another device",
                                   "device %u fell off the bus", device->index);
        if (promise_is_left_out(device))
                return failure_set(failure, -ENOSPC, "NoRoom", "choose another device",
                                   "device %u is for programs without a vGPU (vgpud --leave-out)",
                                   device->index);
        if (promise_is_overcommitted(device) || bytes <= left)
                return 0;
        size_format(left_text, left);
        return failure_set(failure, -ENOSPC, "NoRoom",
                           "ask for less, choose another device, or suspend or remove a vGPU there",
                           "device %u has %s left to promise, not %s", device->index, left_text,
                           size_format(wanted, bytes));
}

int promise_check_room(const struct place *place, uint64_t bytes, const struct instance *except,
                       struct failure *failure)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < place_count(place); i++)
                r = check_device(place->device[i], bytes, except, failure);
        return r < 0 ? r : backing_check(place, bytes, except, failure);
}
