/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/promise.h"

#include <errno.h>

#include "daemon/options.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/pool-group.h"
#include "manager/model/spill-use.h"

bool promise_is_overcommitted(const struct device *device)
{
        return device->manager->options->overcommit >> device->index & 1;
}

bool promise_is_any_overcommitted(const struct instance *instance)
{
        bool is = false;

        for (size_t i = 0; i < instance->n_parts; i++)
                is |= promise_is_overcommitted(instance->part[i].device);
        return is;
}

bool promise_is_left_out(const struct device *device)
{
        return device->manager->options->leave_out >> device->index & 1;
}

static bool is_of(const struct instance *instance, const struct device *device)
{
        return instance_is_on(instance, device) || instance_is_bound_for(instance, device);
}

static uint64_t get_quotas(const struct device *device, const struct instance *except)
{
        const struct instance *instance;
        uint64_t sum = device->virtual_promised;

        list_for_each(instance, &device->manager->instances, link)
                if (instance != except && is_of(instance, device))
                        sum += instance->frame_buffer;
        return sum;
}

/* What it has on other devices is not of this one. */
static uint64_t get_swapped_part(const struct instance *instance, const struct device *device)
{
        const struct guest *guest;
        uint64_t sum = 0;

        for (size_t i = 0; i < instance->n_parts; i++) {
                if (instance->part[i].device != device)
                        continue;
                list_for_each(guest, &instance->guests, link)
                        sum += guest_sum_memory(guest, i);
        }
        return sum;
}

uint64_t promise_get_swapped(const struct device *device)
{
        const struct instance *instance;
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link) {
                if (!instance_is_on(instance, device) || !instance_is_off(instance))
                        continue;
                if (instance->n_parts > 1) {
                        sum += get_swapped_part(instance, device);
                        continue;
                }
                sum += spill_use_get(instance);
                list_for_each(guest, &instance->guests, link)
                        sum += pool_get_length(guest->reservation);
        }
        return sum;
}

/* Of any device. */

uint64_t promise_get_sum(const struct device *device, const struct instance *except)
{
        const struct instance *instance;
        uint64_t sum = device->virtual_promised;

        if (promise_is_overcommitted(device))
                return get_quotas(device, except);
        list_for_each(instance, &device->manager->instances, link) {
                if (instance == except)
                        continue;
                if (instance_is_on(instance, device) && !instance_is_off(instance))
                        sum += instance->frame_buffer;
                else if (instance_is_bound_for(instance, device))
                        sum += instance->frame_buffer;
        }
        return sum;
}

int promise_check_place(const struct place *place, struct failure *failure)
{
        const struct device *first = place->device[0];

        for (size_t i = 1; i < place_count(place); i++) {
                const struct device *other = place->device[i];
                bool is = promise_is_overcommitted(other);

                if (is != promise_is_overcommitted(first))
                        return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                                           "choose devices that are all overcommitted, or none",
                                           "device %u is overcommitted and device %u is not: a "
                                           "vGPU takes turns on all of its devices, or on none",
                                           is ? other->index : first->index,
                                           is ? first->index : other->index);
        }
        return 0;
}
