/* SPDX-License-Identifier: Apache-2.0 */
/* Usage as JSON, in the names and shapes of docs/control-protocol.md. */

#include "cli/usage.h"

static int set_percents(json_t *object, const struct vgpu_usage_percents *percents)
{
        return json_object_update_new(
                object, json_pack("{si si si si si si}", "gpu", percents->gpu, "memory",
                                  percents->memory, "encoder", percents->encoder, "decoder",
                                  percents->decoder, "jpeg", percents->jpeg, "ofa", percents->ofa));
}

static int set_seconds(json_t *object, const struct vgpu_usage_seconds *seconds)
{
        return json_object_update_new(
                object, json_pack("{sf sf sf sf sf sf}", "gpu_seconds", seconds->gpu,
                                  "memory_seconds", seconds->memory, "encoder_seconds",
                                  seconds->encoder, "decoder_seconds", seconds->decoder,
                                  "jpeg_seconds", seconds->jpeg, "ofa_seconds", seconds->ofa));
}

/* An array of objects, each made by @make of one of the @n pointers; NULL when out of memory. */
static json_t *make_array(const void *pointers, size_t n, json_t *(*make)(const void *))
{
        const void *const *items = pointers;
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, make(items[i])) < 0)
                        return NULL;
        return json_incref(array);
}

static json_t *from_process(const void *item)
{
        const struct vgpu_usage_process *process = item;
        CLEANUP(json_decrefp)
        json_t *object = json_pack("{si ss sI}", "pid", process->pid, "name", process->name,
                                   "memory_used", (json_int_t)process->memory_used);

        if (set_percents(object, process->percents) < 0 ||
            set_seconds(object, process->seconds) < 0)
                return NULL;
        return json_incref(object);
}

static json_t *from_instance(const void *item)
{
        const struct vgpu_usage_instance *instance = item;
        CLEANUP(json_decrefp)
        json_t *object = json_pack(
                "{ss ss si ss sI sI si sf so}", "name", instance->name, "uuid", instance->uuid,
                "device", instance->device, "state", vgpu_instance_state_get_name(instance->state),
                "frame_buffer", (json_int_t)instance->frame_buffer, "frame_buffer_used",
                (json_int_t)instance->frame_buffer_used, "share", instance->share, "entitled",
                instance->entitled, "processes",
                make_array(instance->processes, instance->n_processes, from_process));

        if (set_percents(object, instance->percents) < 0 ||
            set_seconds(object, instance->seconds) < 0)
                return NULL;
        return json_incref(object);
}

static json_t *from_device(const void *item)
{
        const struct vgpu_usage_device *device = item;
        CLEANUP(json_decrefp)
        json_t *object = json_pack("{si ss ss ss sI sI}", "index", device->index, "uuid",
                                   device->uuid, "name", device->name, "source", device->source,
                                   "memory_total", (json_int_t)device->memory_total, "memory_used",
                                   (json_int_t)device->memory_used);

        return set_percents(object, device->percents) < 0 ? NULL : json_incref(object);
}

json_t *usage_document_snapshot(const struct vgpu_usage_snapshot *snapshot)
{
        return json_pack("{so so}", "devices",
                         make_array(snapshot->devices, snapshot->n_devices, from_device), "vgpus",
                         make_array(snapshot->instances, snapshot->n_instances, from_instance));
}

static json_t *from_account(const void *item)
{
        const struct vgpu_usage_account *account = item;
        CLEANUP(json_decrefp)
        json_t *object = json_pack("{sI si ss sb sf sf si si sI}", "id", (json_int_t)account->id,
                                   "pid", account->pid, "name", account->name, "running",
                                   account->is_running, "started", account->started, "seconds",
                                   account->life, "gpu_utilization", account->gpu_utilization,
                                   "memory_utilization", account->memory_utilization, "memory_peak",
                                   (json_int_t)account->memory_peak);

        return set_seconds(object, account->seconds) < 0 ? NULL : json_incref(object);
}

json_t *usage_document_accounts(const struct vgpu_usage_account_list *list)
{
        return json_pack("{so}", "records",
                         make_array(list->accounts, list->n_accounts, from_account));
}

static json_t *from_row(const struct vgpu_usage_row *row, enum vgpu_usage_group group)
{
        CLEANUP(json_decrefp)
        json_t *object = json_pack("{sf sf}", "quota_gib_hours", row->quota_gib_hours,
                                   "used_gib_hours", row->used_gib_hours);
        int r = set_seconds(object, row->seconds);

        if (r == 0 && group == VGPU_USAGE_BY_DEVICE)
                r = json_object_update_new(object,
                                           json_pack("{ss ss}", "device_uuid", row->device_uuid,
                                                     "device_name", row->device_name));
        else if (r == 0)
                r = json_object_set_new(object, "tenant", json_integer(row->tenant));
        if (r == 0 && (group == VGPU_USAGE_BY_VGPU || group == VGPU_USAGE_BY_PROCESS))
                r = json_object_update_new(object, json_pack("{ss ss}", "vgpu", row->vgpu,
                                                             "vgpu_uuid", row->vgpu_uuid));
        if (r == 0 && group == VGPU_USAGE_BY_PROCESS)
                r = json_object_update_new(object, json_pack("{si ss sf sf}", "pid", row->pid,
                                                             "name", row->name, "started",
                                                             row->started, "ended", row->ended));
        return r < 0 ? NULL : json_incref(object);
}

json_t *usage_document_rows(const struct vgpu_usage_list *list, enum vgpu_usage_group group)
{
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < list->n_rows; i++)
                if (json_array_append_new(array, from_row(list->rows[i], group)) < 0)
                        return NULL;
        return json_pack("{sO}", "rows", array);
}
