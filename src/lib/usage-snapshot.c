/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/instance.h"
#include "lib/usage.h"

#define METHOD "GetUtilization"

struct box {
        struct vgpu_usage_snapshot snapshot;
        json_t *json; /* has the texts */
        void **devices, **instances;
};

struct device {
        struct vgpu_usage_device value;
        struct vgpu_usage_percents percents;
};

struct process {
        struct vgpu_usage_process value;
        struct vgpu_usage_percents percents;
        struct vgpu_usage_seconds seconds;
};

struct instance {
        struct vgpu_usage_instance value;
        struct vgpu_usage_percents percents;
        struct vgpu_usage_seconds seconds;
        void **processes;
};

DEFINE_CLEANUP(struct vgpu_usage_snapshot *, vgpu_usage_snapshot_free);

static const struct json_field device_fields[] = {
        JSON_FIELD(U32, device, value.index, "index"),
        JSON_FIELD(TEXT, device, value.uuid, "uuid"),
        JSON_FIELD(TEXT, device, value.name, "name"),
        JSON_FIELD(TEXT, device, value.source, "source"),
        JSON_FIELD(U64, device, value.memory_total, "memory_total"),
        JSON_FIELD(U64, device, value.memory_used, "memory_used"),
        USAGE_OPTIONAL(U64, device, value.memory_promised, "memory_promised"),
        USAGE_PERCENTS(device),
};

static const struct json_field instance_fields[] = {
        JSON_FIELD(TEXT, instance, value.name, "name"),
        JSON_FIELD(TEXT, instance, value.uuid, "uuid"),
        JSON_FIELD(U32, instance, value.device, "device"),
        JSON_FIELD(U64, instance, value.frame_buffer, "frame_buffer"),
        JSON_FIELD(U64, instance, value.frame_buffer_used, "frame_buffer_used"),
        JSON_FIELD(SECONDS, instance, value.entitled, "entitled"),
        USAGE_OPTIONAL(U32, instance, value.share, "share"),
        USAGE_OPTIONAL(U32, instance, value.id, "id"),
        USAGE_OPTIONAL(U32, instance, value.owner, "owner"),
        USAGE_OPTIONAL(U32, instance, value.n_programs, "process_count"),
        USAGE_OPTIONAL(SECONDS, instance, value.gpu_seconds_total, "gpu_seconds_total"),
        USAGE_OPTIONAL(SECONDS, instance, value.idle, "idle"),
        USAGE_OPTIONAL(TEXT, instance, value.demand, "demand"),
        USAGE_PERCENTS(instance),
        USAGE_SECONDS(instance),
};

static const struct json_field process_fields[] = {
        JSON_FIELD(I32, process, value.pid, "pid"),
        JSON_FIELD(TEXT, process, value.name, "name"),
        JSON_FIELD(U64, process, value.memory_used, "memory_used"),
        USAGE_PERCENTS(process),
        USAGE_SECONDS(process),
};

/* What the table of fields cannot say. */
static int fill_instance(struct vgpu_client *client, struct instance *instance, const json_t *json)
{
        const char *state = json_string_value(json_object_get(json, "state"));
        int r;

        if (!state)
                return client_set_bad_answer(client, METHOD, "state");
        instance->value.state = instance_state_from_name(state);
        instance->value.percents = &instance->percents;
        instance->value.seconds = &instance->seconds;
        r = usage_decode_array(client, METHOD, "processes", json_object_get(json, "processes"),
                               process_fields, USAGE_COUNT(process_fields), sizeof(struct process),
                               &instance->processes, &instance->value.n_processes);
        if (r < 0)
                return r;
        for (size_t i = 0; i < instance->value.n_processes; i++) {
                struct process *process = instance->processes[i];

                process->value.percents = &process->percents;
                process->value.seconds = &process->seconds;
        }
        instance->value.processes = (const void *)instance->processes;
        return 0;
}

static int fill_devices(struct vgpu_client *client, struct box *box)
{
        int r = usage_decode_array(client, METHOD, "devices", json_object_get(box->json, "devices"),
                                   device_fields, USAGE_COUNT(device_fields), sizeof(struct device),
                                   &box->devices, &box->snapshot.n_devices);

        for (size_t i = 0; r == 0 && i < box->snapshot.n_devices; i++) {
                struct device *device = box->devices[i];

                device->value.percents = &device->percents;
        }
        box->snapshot.devices = (const void *)box->devices;
        return r;
}

static int fill(struct vgpu_client *client, struct box *box)
{
        const json_t *vgpus = json_object_get(box->json, "vgpus");
        int r = fill_devices(client, box);

        if (r == 0)
                r = usage_decode_array(client, METHOD, "vgpus", vgpus, instance_fields,
                                       USAGE_COUNT(instance_fields), sizeof(struct instance),
                                       &box->instances, &box->snapshot.n_instances);
        box->snapshot.instances = (const void *)box->instances;
        for (size_t i = 0; r == 0 && i < box->snapshot.n_instances; i++)
                r = fill_instance(client, box->instances[i], json_array_get(vgpus, i));
        return r;
}

int vgpu_usage_take_snapshot(struct vgpu_client *client, struct vgpu_usage_snapshot **ret_snapshot)
{
        return vgpu_usage_take_snapshot_with(client, NULL, ret_snapshot);
}

int vgpu_usage_take_snapshot_with(struct vgpu_client *client,
                                  const struct vgpu_usage_snapshot_options *options,
                                  struct vgpu_usage_snapshot **ret_snapshot)
{
        struct vgpu_usage_snapshot_options copy = VGPU_USAGE_SNAPSHOT_OPTIONS_INIT;
        static const struct call call = { .method = METHOD, .kind = CALL_READS };
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *snapshot = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0 && options)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r == 0 && copy.is_without_processes)
                r = client_add(client, parameters, "short", json_true());
        if (r < 0)
                return r;
        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        snapshot = &box->snapshot;
        r = client_call(client, &call, parameters, &box->json);
        if (r == 0)
                r = fill(client, box);
        if (r < 0)
                return r;
        *ret_snapshot = TAKE(snapshot);
        return 0;
}

struct vgpu_usage_snapshot *vgpu_usage_snapshot_free(struct vgpu_usage_snapshot *snapshot)
{
        struct box *box = (struct box *)snapshot;

        if (!box)
                return NULL;
        for (size_t i = 0; box->instances && i < snapshot->n_instances; i++)
                free(((struct instance *)box->instances[i])->processes);
        free(box->devices);
        free(box->instances);
        json_decref(box->json);
        free(box);
        return NULL;
}
