/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/control/describe.h"

#include <openvgpu/device.h>
#include <openvgpu/instance.h>
#include <openvgpu/manager.h>

#include "base/cleanup.h"
#include "daemon/process.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/launch.h"
#include "manager/model/manager.h"
#include "manager/model/promise-room.h"
#include "manager/model/promise.h"
#include "manager/model/reserve.h"
#include "manager/model/residency-view.h"
#include "manager/model/spill-use.h"
#include "record/records.h"
#include "record/writer.h"

static void get_pool(const struct manager *manager, struct vgpu_pool *ret_record)
{
        struct pool_info info;

        pool_get_info(manager->pool, &info);
        *ret_record = (struct vgpu_pool){
                .limit = info.limit,
                .size = info.size,
                .ready = info.ready,
                .used = info.used,
                .slab_size = info.slab_size,
                .held = info.held,
                .spare = info.spare,
                .saved = info.saved,
                .spilled = spill_use_get_sum(manager),
                .spill_limit = manager->options->spill_limit,
                .reserved = reserve_get_sum(manager),
                .spill_failure = manager->spill_failure,
        };
}

json_t *describe_manager(const struct manager *manager)
{
        struct vgpu_pool pool;
        struct vgpu_manager record = {
                .version = OPENVGPU_VERSION,
                .is_simulated = manager->simulation[0] != '\0',
                .cuda_driver_version = manager->n_devices ? manager->device[0].driver_version : 0,
                .driver_path = manager->driver_path,
                .gate_path = manager->gate_path,
                .nvml_path = manager->nvml_path,
                .run_directory = manager->options->run_directory,
                .pool = &pool,
                .scenario = manager->options->scenario_path,
        };

        get_pool(manager, &pool);
        record.descriptors_used =
                accounts_get_all(manager->accounts, ACCOUNT_DESCRIPTORS, &record.descriptors_limit);
        return record_make(&record_manager, &record);
}

static uint32_t count_instances(const struct device *device)
{
        const struct instance *instance;
        uint32_t n = 0;

        list_for_each(instance, &device->manager->instances, link)
                n += instance_is_on(instance, device);
        return n;
}

json_t *describe_device(const struct device *device)
{
        uint64_t left = promise_get_left(device); /* one vGPU has no more than the device */
        const struct vgpu_device record = {
                .index = device->index,
                .n_vgpus = count_instances(device),
                .uuid = device->uuid,
                .name = device->name,
                .pci_bus_id = device->pci_bus_id,
                .memory_total = device->memory_total,
                .memory_promised = promise_get_sum(device, NULL),
                .memory_used = device_get_used(device),
                .memory_swapped = promise_get_swapped(device),
                .is_overcommitted = promise_is_overcommitted(device),
                .memory_left = left < device->memory_total ? left : device->memory_total,
                .is_left_out = promise_is_left_out(device),
        };

        return record_make(&record_device, &record);
}

static void write_process(struct writer *writer, const struct vgpu_process *process)
{
        writer_begin_object(writer, NULL);
        record_write(&record_process, process, writer);
        writer_end_object(writer);
}

/* A gate may write any number. */
static const char *context_get_word(uint32_t whole)
{
        return whole == INSTANCE_PAGE_MENDED     ? "whole"
               : instance_page_is_unwhole(whole) ? "unwhole"
                                                 : "";
}

static const char *context_get_reason(uint32_t whole)
{
        static const char *const reasons[INSTANCE_PAGE_WHOLES] = {
                [INSTANCE_PAGE_UNWHOLE_UNSEEN] = "the gate has not seen how its context was made",
                [INSTANCE_PAGE_UNWHOLE_RING] =
                        "a channel of its context is busy, or not as expected",
                [INSTANCE_PAGE_UNWHOLE_REFUSED] = "the kernel module refused a call",
        };

        return whole < INSTANCE_PAGE_WHOLES && reasons[whole] ? reasons[whole] : "";
}

static void write_guest(struct writer *writer, const struct guest *guest, bool tells_names)
{
        struct page_use use;

        guest_get_use(guest, &use);
        write_process(writer, &(struct vgpu_process){
                                      .pid = guest->pid,
                                      .name = guest->name,
                                      .memory_used = use.movable + use.fixed,
                                      .memory_movable = use.movable,
                                      .n_launches = use.launches,
                                      .container_name = tells_names ? guest->container_name : "",
                                      .context = context_get_word(use.whole),
                                      .context_reason = context_get_reason(use.whole),
                              });
}

static void write_launch(struct writer *writer, const struct launch *launch)
{
        char name[PROCESS_NAME_MAX];

        process_get_name(launch->pid, name);
        write_process(writer, &(struct vgpu_process){ .pid = launch->pid,
                                                      .name = name,
                                                      .container_name = "",
                                                      .context = "",
                                                      .context_reason = "" });
}

/* One that has ended is not shown while it waits to be buried. */
static bool is_shown(const struct guest *guest)
{
        return !guest_is_dead(guest) && list_is_empty(&guest->burial);
}

int describe_count_processes(const struct instance *instance)
{
        const struct guest *guest;
        int n = (int)list_count(&instance->launches);

        list_for_each(guest, &instance->guests, link)
                n += is_shown(guest);
        return n;
}

static void write_processes(struct writer *writer, const struct instance *instance,
                            bool tells_names)
{
        const struct guest *guest;
        const struct launch *launch;

        writer_begin_array(writer, "processes");
        list_for_each(guest, &instance->guests, link)
                if (is_shown(guest))
                        write_guest(writer, guest, tells_names);
        list_for_each(launch, &instance->launches, link)
                write_launch(writer, launch);
        writer_end_array(writer);
}

enum vgpu_instance_state describe_get_state(const struct instance *instance)
{
        static const enum vgpu_instance_state states[] = {
                [STATE_IDLE] = VGPU_INSTANCE_IDLE,
                [STATE_RUNNING] = VGPU_INSTANCE_RUNNING,
                [STATE_SUSPENDING] = VGPU_INSTANCE_SUSPENDING,
                [STATE_SUSPENDED] = VGPU_INSTANCE_SUSPENDED,
                [STATE_EVICTED] = VGPU_INSTANCE_EVICTED,
                [STATE_RESUMING] = VGPU_INSTANCE_RESUMING,
                [STATE_MIGRATING] = VGPU_INSTANCE_MIGRATING,
                [STATE_FAILED] = VGPU_INSTANCE_FAILED,
        };

        if (instance->state == STATE_IDLE && list_count(&instance->launches) > 0)
                return VGPU_INSTANCE_RUNNING;
        return states[instance->state];
}

uint64_t describe_get_host_memory(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                sum += pool_get_length(guest->reservation);
        return sum;
}

/* Where each member of a vGPU comes from; its processes are written one by one. */
static void get_instance(const struct instance *instance, struct vgpu_instance *ret_record)
{
        struct residency_view view;

        residency_view_get(instance, &view);
        *ret_record = (struct vgpu_instance){
                .id = instance->id,
                .name = instance->name,
                .uuid = instance->uuid,
                .device = instance_home(instance)->index,
                .device_uuid = instance_home(instance)->uuid,
                .state = describe_get_state(instance),
                .frame_buffer = instance->frame_buffer,
                .frame_buffer_used = guests_get_used(instance),
                .is_transient = instance->is_transient,
                .owner = instance->owner,
                .pool_group = instance->pool_group,
                .created_seconds = (int64_t)(instance->created_ns / 1000000000),
                .share = instance->share,
                .idle_after = (double)instance->residency.after_ns / 1e9,
                .idle_keeps_context = instance->residency.keeps_context,
                .idle = view.idle,
                .demand = view.demand,
                .demand_reason = view.reason,
                .host_memory = describe_get_host_memory(instance),
                .spilled_memory = spill_use_get(instance),
                .swap_class = residency_record_get_class(instance->residency.is_interactive),
                .resident_seconds = (double)residency_view_get_resident(instance) / 1e9,
                .swapped_bytes = instance->residency.sums.swapped_bytes,
                .n_waits = instance->residency.sums.n_waits,
                .waited_seconds = (double)instance->residency.sums.waited_ns / 1e9,
                .n_swaps = instance->residency.sums.n_swaps,
                .demand_percent = view.percent,
                .outside = instance->outside,
                .gone = instance->gone,
        };
}

struct parts {
        struct vgpu_instance_part part[INSTANCE_PARTS_MAX];
        const struct vgpu_instance_part *list[INSTANCE_PARTS_MAX];
};

static void get_parts(const struct instance *instance, struct parts *parts)
{
        for (size_t i = 0; i < instance->n_parts; i++) {
                const struct instance_part *part = &instance->part[i];

                parts->part[i] = (struct vgpu_instance_part){
                        .id = part->id,
                        .device = part->device->index,
                        .device_uuid = part->device->uuid,
                        .frame_buffer_used = guests_get_used_of(instance, part),
                        .gpu_seconds_total = (double)part->meter.busy_ns / 1e9,
                };
                parts->list[i] = &parts->part[i];
        }
}

void describe_write_instance(struct writer *writer, const struct instance *instance,
                             bool tells_names)
{
        struct vgpu_instance record;
        struct parts parts;

        get_instance(instance, &record);
        get_parts(instance, &parts);
        record.n_parts = instance->n_parts;
        record.parts = parts.list;
        writer_begin_object(writer, NULL);
        record_write(&record_instance, &record, writer);
        write_processes(writer, instance, tells_names);
        writer_end_object(writer);
}

json_t *describe_instance(const struct instance *instance)
{
        struct writer writer = { 0 };
        CLEANUP(freep) char *text = NULL;

        describe_write_instance(&writer, instance, false);
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
        writer_begin_array(writer, "byte_buckets");
        for (size_t b = 0; b < TALLY_BYTE_BUCKETS; b++)
                writer_integer(writer, NULL, (int64_t)count->byte_bucket[b]);
        writer_end_array(writer);
        writer_integer(writer, "pre_copies", (int64_t)count->ahead.n);
        writer_integer(writer, "pre_copy_rounds", (int64_t)count->ahead.n_rounds);
        writer_integer(writer, "pre_copy_bytes", (int64_t)count->ahead.bytes);
        writer_real(writer, "pre_copy_seconds", (double)count->ahead.ns / 1e9);
        writer_real(writer, "pre_copy_stopped_seconds", (double)count->ahead.stopped_ns / 1e9);
        writer_text(writer, "last_vgpu", count->last.vgpu);
        writer_real(writer, "last_seconds", (double)count->last.ns / 1e9);
        writer_integer(writer, "last_bytes", (int64_t)count->last.bytes);
        writer_real(writer, "last_time", (double)count->last.at_ns / 1e9);
        writer_end_object(writer);
}

void describe_write_tally(struct writer *writer, const struct tally *tally)
{
        writer_begin_array(writer, "buckets");
        for (size_t b = 0; b < TALLY_BUCKETS; b++)
                writer_real(writer, NULL, tally_get_bound(b));
        writer_end_array(writer);
        writer_begin_array(writer, "byte_buckets");
        for (size_t b = 0; b < TALLY_BYTE_BUCKETS; b++)
                writer_integer(writer, NULL, (int64_t)tally_get_byte_bound(b));
        writer_end_array(writer);
        writer_begin_array(writer, "operations");
        for (size_t kind = 0; kind < TALLY_KINDS; kind++)
                for (enum tally_result result = 0; result < TALLY_RESULTS; result++)
                        write_count(writer, tally_get_kind(kind), tally_get_result(result),
                                    &tally->count[kind][result]);
        writer_end_array(writer);
}
