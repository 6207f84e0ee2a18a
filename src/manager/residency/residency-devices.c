/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a vGPU, and whether it can be known what is free on them. */
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/promise.h"
#include "manager/residency/residency-internal.h"

/* Devices that are decided together. */

uint64_t residency_get_devices(const struct instance *instance)
{
        uint64_t devices = 0;

        for (size_t i = 0; i < instance->n_parts; i++)
                devices |= 1ull << instance->part[i].device->index;
        return devices;
}

bool residency_is_known(const struct residency *residency, const struct device *device)
{
        return !device->meter.is_lost &&
               (!promise_is_overcommitted(device) || !residency->look[device->index].is_blind);
}
