/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/describe.h"

#include "daemon/process.h"
#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/launch.h"
#include "manager/manager.h"

static json_t *describe_pool(const struct pool *pool)
{
        struct pool_info info;

        pool_get_info(pool, &info);
        return json_pack("{sI, sI, sI, sI, sI, sI, sI}", "limit", (json_int_t)info.limit, "size",
                         (json_int_t)info.size, "ready", (json_int_t)info.ready, "used",
                         (json_int_t)info.used, "held", (json_int_t)info.held, "slab_size",
                         (json_int_t)info.slab_size, "huge_pages", (json_int_t)info.huge);
}

json_t *describe_manager(const struct manager *manager)
{
        return json_pack("{ss, sb, si, ss, ss, ss, ss, so}", "version", OPENVGPU_VERSION,
                         "simulated", manager->simulation[0] != '\0', "cuda_driver_version",
                         manager->n_devices ? (int)manager->device[0].driver_version : 0,
                         "driver_path", manager->driver_path, "gate_path", manager->gate_path,
                         "nvml_path", manager->nvml_path, "run_directory",
                         manager->options->run_directory, "pool", describe_pool(manager->pool));
}

static int count_instances(const struct device *device)
{
        const struct instance *instance;
        int n = 0;

        list_for_each(instance, &device->manager->instances, link)
                n += instance->device == device;
        return n;
}

json_t *describe_device(const struct device *device)
{
        return json_pack("{si, ss, ss, ss, sI, sI, sI, si}", "index", (int)device->index, "uuid",
                         device->uuid, "name", device->name, "pci_bus_id", device->pci_bus_id,
                         "memory_total", (json_int_t)device->memory_total, "memory_promised",
                         (json_int_t)device_get_promised(device, NULL), "memory_used",
                         (json_int_t)device_get_used(device), "vgpus", count_instances(device));
}

static json_t *describe_guest(const struct guest *guest)
{
        struct page_use use = { 0 };

        if (guest->slot != UINT32_MAX)
                page_read(&guest->instance->page, guest->slot, guest->instance->frame_buffer, &use);
        return json_pack("{si, ss, sI, sI, sI}", "pid", (int)guest->pid, "name", guest->name,
                         "memory_used", (json_int_t)(use.movable + use.fixed), "memory_movable",
                         (json_int_t)use.movable, "launches", (json_int_t)use.launches);
}

static json_t *describe_launch(const struct launch *launch)
{
        char name[PROCESS_NAME_MAX];

        process_get_name(launch->pid, name);
        return json_pack("{si, ss, si, si, si}", "pid", (int)launch->pid, "name", name,
                         "memory_used", 0, "memory_movable", 0, "launches", 0);
}

static json_t *describe_guests(const struct instance *instance)
{
        json_t *processes = json_array();
        const struct guest *guest;
        const struct launch *launch;

        list_for_each(guest, &instance->guests, link)
                if (!guest->is_dead)
                        json_array_append_new(processes, describe_guest(guest));
        list_for_each(launch, &instance->launches, link)
                json_array_append_new(processes, describe_launch(launch));
        return processes;
}

/* A program that has not come to CUDA yet runs as well. */
static const char *describe_state(const struct instance *instance)
{
        if (instance->state == BOARD_IDLE && list_count(&instance->launches) > 0)
                return instance_state_name(BOARD_RUNNING);
        return instance_state_name(instance->state);
}

json_t *describe_instance(const struct instance *instance)
{
        return json_pack("{sI, ss, ss, si, ss, ss, sI, sI, sb, sI, sf, si, so}", "id",
                         (json_int_t)instance->id, "name", instance->name, "uuid", instance->uuid,
                         "device", (int)instance->device->index, "device_uuid",
                         instance->device->uuid, "state", describe_state(instance), "frame_buffer",
                         (json_int_t)instance->frame_buffer, "frame_buffer_used",
                         (json_int_t)instance_get_used(instance), "transient",
                         instance->is_transient, "owner", (json_int_t)instance->owner, "created",
                         (double)instance->created_ns / 1e9, "share", (int)instance->share,
                         "processes", describe_guests(instance));
}
