/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices take their turns together, and in which schedule a vGPU is. */
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule-internal.h"

static uint64_t bit_of(const struct device *device)
{
        return UINT64_C(1) << device->index;
}

uint64_t schedule_get_devices_of(const struct instance *instance)
{
        uint64_t devices = 0;

        for (size_t i = 0; i < instance->n_parts; i++)
                devices |= bit_of(instance->part[i].device);
        return devices;
}

/* Those that vGPUs of several devices join with @device, while there are such vGPUs: also suspended ones. */
static uint64_t find_joined(const struct device *device)
{
        uint64_t joined = bit_of(device), before;
        const struct instance *instance;

        do {
                before = joined;
                list_for_each(instance, &device->manager->instances, link)
                        if (instance->n_parts > 1 && (schedule_get_devices_of(instance) & joined))
                                joined |= schedule_get_devices_of(instance);
        } while (joined != before);
        return joined;
}

static struct schedule *get_first(const struct manager *manager, uint64_t devices)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                if (devices & bit_of(&manager->device[i]))
                        return manager->device[i].schedule;
        return NULL;
}

struct schedule *schedule_of(const struct device *device)
{
        return get_first(device->manager, find_joined(device));
}

uint64_t schedule_get_devices(const struct schedule *schedule)
{
        uint64_t joined = find_joined(schedule->device);

        return get_first(schedule->device->manager, joined) == schedule ? joined : 0;
}

/*
 * Finding: a vGPU is in one schedule, and in that of a device that it has left until all its processes are
 * let on there.
 */

struct schedule_vgpu *schedule_find_vgpu(const struct schedule *schedule,
                                         const struct instance *instance)
{
        struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &instance->turns, of_instance)
                if (vgpu->schedule == schedule)
                        return vgpu;
        return NULL;
}

struct schedule *schedule_find(const struct instance *instance, struct schedule_vgpu **ret_vgpu)
{
        struct schedule *schedule;

        if (list_count(&instance->turns) == 1) { /* as nearly always */
                *ret_vgpu = list_entry(instance->turns.next, struct schedule_vgpu, of_instance);
                return (*ret_vgpu)->schedule;
        }
        schedule = schedule_of(instance_home(instance));
        *ret_vgpu = schedule ? schedule_find_vgpu(schedule, instance) : NULL;
        if (*ret_vgpu)
                return schedule;
        if (list_is_empty(&instance->turns))
                return NULL;
        *ret_vgpu = list_entry(instance->turns.next, struct schedule_vgpu, of_instance);
        return (*ret_vgpu)->schedule;
}
