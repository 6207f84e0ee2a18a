/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/control/describe.h"

#include "base/cleanup.h"
#include "daemon/process.h"
#include "record/writer.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/launch.h"
#include "manager/model/manager.h"
#include "manager/model/residency-view.h"

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
        uint64_t limit, used = accounts_get_all(manager->accounts, ACCOUNT_DESCRIPTORS, &limit);

        return json_pack("{ss, sb, si, ss, ss, ss, ss, so, sI, sI}", "version", OPENVGPU_VERSION,
                         "simulated", manager->simulation[0] != '\0', "cuda_driver_version",
                         manager->n_devices ? (int)manager->device[0].driver_version : 0,
                         "driver_path", manager->driver_path, "gate_path", manager->gate_path,
                         "nvml_path", manager->nvml_path, "run_directory",
                         manager->options->run_directory, "pool", describe_pool(manager->pool),
                         "descriptors_used", (json_int_t)used, "descriptors_limit",
                         (json_int_t)limit);
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

static void write_guest(struct writer *writer, const struct guest *guest)
{
        struct page_use use = { 0 };

        if (guest->slot != UINT32_MAX)
                page_read(&guest->instance->page, guest->slot, guest->instance->frame_buffer, &use);
        writer_begin_object(writer, NULL);
        writer_integer(writer, "pid", guest->pid);
        writer_text(writer, "name", guest->name);
        writer_integer(writer, "memory_used", (int64_t)(use.movable + use.fixed));
        writer_integer(writer, "memory_movable", (int64_t)use.movable);
        writer_integer(writer, "launches", (int64_t)use.launches);
        writer_end_object(writer);
}

static void write_launch(struct writer *writer, const struct launch *launch)
{
        char name[PROCESS_NAME_MAX];

        process_get_name(launch->pid, name);
        writer_begin_object(writer, NULL);
        writer_integer(writer, "pid", launch->pid);
        writer_text(writer, "name", name);
        writer_integer(writer, "memory_used", 0);
        writer_integer(writer, "memory_movable", 0);
        writer_integer(writer, "launches", 0);
        writer_end_object(writer);
}

/* One that has ended is not shown while it waits to be buried. */
static bool is_shown(const struct guest *guest)
{
        return !guest->is_dead && list_is_empty(&guest->burial);
}

int describe_count_processes(const struct instance *instance)
{
        const struct guest *guest;
        int n = (int)list_count(&instance->launches);

        list_for_each(guest, &instance->guests, link)
                n += is_shown(guest);
        return n;
}

static void write_processes(struct writer *writer, const struct instance *instance)
{
        const struct guest *guest;
        const struct launch *launch;

        writer_begin_array(writer, "processes");
        list_for_each(guest, &instance->guests, link)
                if (is_shown(guest))
                        write_guest(writer, guest);
        list_for_each(launch, &instance->launches, link)
                write_launch(writer, launch);
        writer_end_array(writer);
}

const char *describe_state(const struct instance *instance)
{
        if (instance->state == STATE_IDLE && list_count(&instance->launches) > 0)
                return instance_state_name(STATE_RUNNING);
        return instance_state_name(instance->state);
}

/* "idle" only where it is known: it is on its device, and has no work. */
void describe_write_residency(struct writer *writer, const struct instance *instance)
{
        struct residency_view view;

        residency_view_get(instance, &view);
        writer_real(writer, "idle_after", (double)instance->residency.after_ns / 1e9);
        writer_boolean(writer, "idle_keep_context", instance->residency.keeps_context);
        if (view.idle >= 0)
                writer_real(writer, "idle", view.idle);
        writer_text(writer, "demand", view.demand);
        writer_text(writer, "demand_reason", view.reason);
}

void describe_write_instance(struct writer *writer, const struct instance *instance)
{
        writer_begin_object(writer, NULL);
        writer_integer(writer, "id", instance->id);
        writer_text(writer, "name", instance->name);
        writer_text(writer, "uuid", instance->uuid);
        writer_integer(writer, "device", instance->device->index);
        writer_text(writer, "device_uuid", instance->device->uuid);
        writer_text(writer, "state", describe_state(instance));
        writer_integer(writer, "frame_buffer", (int64_t)instance->frame_buffer);
        writer_integer(writer, "frame_buffer_used", (int64_t)guests_get_used(instance));
        writer_boolean(writer, "transient", instance->is_transient);
        writer_integer(writer, "owner", instance->owner);
        writer_real(writer, "created", (double)instance->created_ns / 1e9);
        writer_integer(writer, "share", instance->share);
        describe_write_residency(writer, instance);
        write_processes(writer, instance);
        writer_end_object(writer);
}

json_t *describe_instance(const struct instance *instance)
{
        struct writer writer = { 0 };
        CLEANUP(freep) char *text = NULL;

        describe_write_instance(&writer, instance);
        text = writer_take(&writer);
        return text ? json_loads(text, 0, NULL) : NULL;
}

/* Operations. */

static void write_count(struct writer *writer, const char *kind, const char *result,
                        const struct tally_count *count)
{
        writer_begin_object(writer, NULL);
        writer_text(writer, "operation", kind);
        writer_text(writer, "result", result);
        writer_integer(writer, "count", (int64_t)count->n);
        writer_real(writer, "seconds", (double)count->ns / 1e9);
        writer_integer(writer, "bytes", (int64_t)count->bytes);
        writer_begin_array(writer, "buckets");
        for (size_t b = 0; b < TALLY_BUCKETS; b++)
                writer_integer(writer, NULL, (int64_t)count->bucket[b]);
        writer_end_array(writer);
        writer_end_object(writer);
}

void describe_write_tally(struct writer *writer, const struct tally *tally)
{
        writer_begin_array(writer, "buckets");
        for (size_t b = 0; b < TALLY_BUCKETS; b++)
                writer_real(writer, NULL, tally_get_bound(b));
        writer_end_array(writer);
        writer_begin_array(writer, "operations");
        for (size_t kind = 0; kind < TALLY_KINDS; kind++)
                for (enum tally_result result = 0; result < TALLY_RESULTS; result++)
                        write_count(writer, tally_get_kind(kind), tally_get_result(result),
                                    &tally->count[kind][result]);
        writer_end_array(writer);
}
