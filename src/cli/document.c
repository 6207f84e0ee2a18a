/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/document.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/say.h"

static json_t *from_device(const struct vgpu_device *device)
{
        return json_pack("{si ss ss ss sI sI sI si}", "index", device->index, "uuid", device->uuid,
                         "name", device->name, "pci_bus_id", device->pci_bus_id, "memory_total",
                         (json_int_t)device->memory_total, "memory_promised",
                         (json_int_t)device->memory_promised, "memory_used",
                         (json_int_t)device->memory_used, "vgpus", device->n_vgpus);
}

json_t *document_from_devices(const struct vgpu_device_list *list)
{
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < list->n_devices; i++)
                if (json_array_append_new(array, from_device(list->devices[i])) < 0)
                        return NULL;
        return json_pack("{sO}", "devices", array);
}

static json_t *from_process(const struct vgpu_process *process)
{
        return json_pack("{si ss sI sI sI}", "pid", process->pid, "name", process->name,
                         "memory_used", (json_int_t)process->memory_used, "memory_movable",
                         (json_int_t)process->memory_movable, "launches",
                         (json_int_t)process->n_launches);
}

static json_t *from_instance(const struct vgpu_instance *instance)
{
        CLEANUP(json_decrefp) json_t *processes = json_array();

        for (size_t i = 0; i < instance->n_processes; i++)
                if (json_array_append_new(processes, from_process(instance->processes[i])) < 0)
                        return NULL;
        return json_pack("{si ss ss si ss ss sI sI sb sI sI si sf sb sf ss ss sO}", "id",
                         instance->id, "name", instance->name, "uuid", instance->uuid, "device",
                         instance->device, "device_uuid", instance->device_uuid, "state",
                         vgpu_instance_state_get_name(instance->state), "frame_buffer",
                         (json_int_t)instance->frame_buffer, "frame_buffer_used",
                         (json_int_t)instance->frame_buffer_used, "transient",
                         instance->is_transient, "owner", (json_int_t)instance->owner, "created",
                         (json_int_t)instance->created_seconds, "share", instance->share,
                         "idle_after", instance->idle_after, "idle_keep_context",
                         instance->idle_keeps_context, "idle", instance->idle, "demand",
                         instance->demand, "demand_reason", instance->demand_reason, "processes",
                         processes);
}

json_t *document_from_instance(const struct vgpu_instance *instance)
{
        return json_pack("{so}", "vgpu", from_instance(instance));
}

json_t *document_from_instances(const struct vgpu_instance *const *instances, size_t n)
{
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, from_instance(instances[i])) < 0)
                        return NULL;
        return json_pack("{sO}", "vgpus", array);
}

json_t *document_from_report(const struct vgpu_operation_report *report)
{
        return json_pack(
                "{so sI sf sf sf sf sf si si si ss*}", "vgpu", from_instance(report->instance),
                "bytes", (json_int_t)report->bytes, "seconds", report->seconds, "copy_seconds",
                report->copy_seconds, "context_seconds", report->context_seconds, "drain_seconds",
                report->drain_seconds, "pool_seconds", report->pool_seconds, "processes",
                report->n_processes, "from_device", report->from_device, "to_device",
                report->to_device, "lost", report->lost && *report->lost ? report->lost : NULL);
}

static json_t *from_turns_vgpu(const struct vgpu_time_sharing_vgpu *vgpu)
{
        return json_pack("{ss si si sf sf sb sb sb ss}", "name", vgpu->name, "id", vgpu->id,
                         "share", vgpu->share, "entitled", vgpu->entitled_percent, "received",
                         vgpu->received_seconds, "has_work", vgpu->has_work, "waits", vgpu->waits,
                         "enforced", vgpu->is_enforced, "error", vgpu->error);
}

json_t *document_from_turns(const struct vgpu_time_sharing *turns)
{
        CLEANUP(json_decrefp) json_t *vgpus = json_array();

        for (size_t i = 0; i < turns->n_vgpus; i++)
                if (json_array_append_new(vgpus, from_turns_vgpu(turns->vgpus[i])) < 0)
                        return NULL;
        return json_pack("{si ss ss si sb si si sI sI sb sO}", "device", turns->device, "mode",
                         turns->mode, "reason", turns->reason, "policy", turns->policy, "arr",
                         turns->has_arr, "averaging_factor", turns->average_factor, "frequency",
                         turns->frequency_hz, "time_slice", (json_int_t)turns->timeslice_ns,
                         "turns", (json_int_t)turns->n_turns, "taking_turns", turns->are_taken,
                         "vgpus", vgpus);
}

static json_t *from_entry(const struct vgpu_time_sharing_entry *entry)
{
        return json_pack("{sI sI si ss sI sI sI sI si}", "number", (json_int_t)entry->number,
                         "timestamp", (json_int_t)entry->timestamp_ns, "id", entry->id, "name",
                         entry->name, "run", (json_int_t)entry->run_ns, "run_total",
                         (json_int_t)entry->run_total_ns, "target", (json_int_t)entry->target_ns,
                         "preempted", (json_int_t)entry->preempted_ns, "weight", entry->weight);
}

json_t *document_from_turns_log(const struct vgpu_time_sharing_log *log)
{
        CLEANUP(json_decrefp) json_t *turns = json_array();

        for (size_t i = 0; i < log->n_entries; i++)
                if (json_array_append_new(turns, from_entry(log->entries[i])) < 0)
                        return NULL;
        return json_pack("{sI sO}", "next", (json_int_t)log->next, "turns", turns);
}

static json_t *from_pool(const struct vgpu_pool *pool)
{
        return json_pack("{sI sI sI sI sI sI}", "limit", (json_int_t)pool->limit, "size",
                         (json_int_t)pool->size, "ready", (json_int_t)pool->ready, "used",
                         (json_int_t)pool->used, "slab_size", (json_int_t)pool->slab_size,
                         "huge_pages", (json_int_t)pool->huge_pages);
}

json_t *document_from_manager(const struct vgpu_manager *manager)
{
        return json_pack("{ss sb si ss ss ss ss so sI sI}", "version", manager->version,
                         "simulated", manager->is_simulated, "cuda_driver_version",
                         manager->cuda_driver_version, "driver_path", manager->driver_path,
                         "gate_path", manager->gate_path, "nvml_path", manager->nvml_path,
                         "run_directory", manager->run_directory, "pool", from_pool(manager->pool),
                         "descriptors_used", (json_int_t)manager->descriptors_used,
                         "descriptors_limit", (json_int_t)manager->descriptors_limit);
}

int document_print(const struct arguments *arguments, json_t *document)
{
        CLEANUP(json_decrefp) json_t *owned = document;

        if (!owned || json_dumpf(owned, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "",
                                   "cannot print the result");
        putchar('\n');
        return 0;
}
