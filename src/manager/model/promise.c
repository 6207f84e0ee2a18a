/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/promise.h"

#include <errno.h>

#include "base/size.h"
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

/* In the pool a vGPU has whole slabs. */
static uint64_t round_up(uint64_t bytes, uint64_t slab_size)
{
        return (bytes + slab_size - 1) / slab_size * slab_size;
}

static uint64_t sum_slabs(const struct device *device, const struct instance *except,
                          uint64_t slab_size)
{
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                if (instance != except && is_of(instance, device))
                        sum += round_up(instance->frame_buffer, slab_size);
        return sum;
}

/* What the vGPUs of @device need of the pool to be away all at once; 0: they all fit on it. */
static uint64_t get_need(const struct device *device, const struct instance *except,
                         uint64_t slab_size)
{
        if (!promise_is_overcommitted(device) || get_quotas(device, except) <= device->memory_total)
                return 0;
        return sum_slabs(device, except, slab_size);
}

static uint64_t get_owned(const struct instance *instance)
{
        uint64_t room;

        return pool_get_owned(instance->manager->pool, instance->uuid, &room);
}

/* What others have of the pool: vGPUs that were suspended elsewhere, clients that have kept slabs. */
static uint64_t get_taken_by_others(const struct device *device, const struct instance *except)
{
        const struct manager *manager = device->manager;
        const struct instance *instance;
        struct pool_info info;
        uint64_t sum;

        pool_get_info(manager->pool, &info);
        sum = info.held;
        list_for_each(instance, &manager->instances, link)
                if (instance != except &&
                    !get_need(instance_home(instance), NULL, info.slab_size) &&
                    !is_of(instance, device))
                        sum += get_owned(instance);
        list_for_each(instance, &manager->instances, link)
                sum += pool_group_get_owned(instance); /* none of an overcommitted device's */
        for (size_t i = 0; i < manager->n_devices; i++)
                if (&manager->device[i] != device)
                        sum += get_need(&manager->device[i], except, info.slab_size);
        return sum;
}

static uint64_t get_overcommit_left(const struct device *device, const struct instance *except)
{
        uint64_t promised = get_quotas(device, except), taken, by_pool;
        uint64_t by_device = promised < device->memory_total ? device->memory_total - promised : 0;
        struct pool_info info;

        pool_get_info(device->manager->pool, &info);
        taken = get_taken_by_others(device, except) + sum_slabs(device, except, info.slab_size);
        by_pool = taken < info.limit ? (info.limit - taken) / info.slab_size * info.slab_size : 0;
        return by_pool > by_device ? by_pool : by_device;
}

static int check_overcommit(const struct device *device, uint64_t bytes,
                            const struct instance *except, struct failure *failure)
{
        uint64_t left = get_overcommit_left(device, except);
        char left_text[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];

        if (bytes <= left)
                return 0;
        size_format(left_text, left);
        return failure_set(failure, -ENOSPC, "NoRoom",
                           "ask for less, remove a vGPU there, or start vgpud with a larger "
                           "--pool-limit",
                           "device %u is overcommitted as far as the pool has room for all of its "
                           "vGPUs at once: it has %s left to promise, not %s",
                           device->index, left_text, size_format(wanted, bytes));
}

uint64_t promise_get_held(const struct manager *manager)
{
        const struct instance *instance;
        struct pool_info info;
        uint64_t sum = 0;

        pool_get_info(manager->pool, &info);
        list_for_each(instance, &manager->instances, link) {
                uint64_t need = round_up(instance->frame_buffer, info.slab_size), own;

                if (get_need(instance_home(instance), NULL, info.slab_size) == 0)
                        continue;
                own = get_owned(instance);
                sum += own < need ? need - own : 0;
        }
        return sum;
}

bool promise_is_held_for(const struct instance *instance)
{
        struct pool_info info;

        pool_get_info(instance->manager->pool, &info);
        return get_need(instance_home(instance), NULL, info.slab_size) > 0;
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

uint64_t promise_get_left(const struct device *device)
{
        uint64_t promised;

        if (device->meter.is_lost)
                return 0;
        if (promise_is_overcommitted(device))
                return get_overcommit_left(device, NULL);
        promised = promise_get_sum(device, NULL);
        return promised < device->memory_total ? device->memory_total - promised : 0;
}

int promise_check_room(const struct device *device, uint64_t bytes, const struct instance *except,
                       struct failure *failure)
{
        uint64_t promised = promise_get_sum(device, except);
        uint64_t left = promised < device->memory_total ? device->memory_total - promised : 0;
        char left_text[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];

        if (device->meter.is_lost)
                return failure_set(failure, -ENODEV, "NoRoom", "choose another device",
                                   "device %u fell off the bus", device->index);
        if (promise_is_overcommitted(device))
                return check_overcommit(device, bytes, except, failure);
        if (bytes <= left)
                return 0;
        size_format(left_text, left);
        return failure_set(failure, -ENOSPC, "NoRoom",
                           "ask for less, choose another device, or suspend or remove a vGPU there",
                           "device %u has %s left to promise, not %s", device->index, left_text,
                           size_format(wanted, bytes));
}

int promise_check_several(const struct device *device, struct failure *failure)
{
        if (!promise_is_overcommitted(device))
                return 0;
        return failure_set(failure, -EOPNOTSUPP, "Unsupported", "choose other devices",
                           "device %u is overcommitted: its vGPUs make room for each other, and "
                           "one of several devices cannot",
                           device->index);
}
