/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/instance.h"
#include "lib/usage.h"

#define METHOD "GetUtilization"

struct box {
        struct vgpu_usage_snapshot snapshot;
        json_t *json; /* has the texts */
        void *devices, *instances;
};

DEFINE_CLEANUP(struct vgpu_usage_snapshot *, vgpu_usage_snapshot_free);

static const struct json_field device_fields[] = {
        JSON_FIELD(U32, vgpu_usage_device, index, "index"),
        JSON_FIELD(TEXT, vgpu_usage_device, uuid, "uuid"),
        JSON_FIELD(TEXT, vgpu_usage_device, name, "name"),
        JSON_FIELD(TEXT, vgpu_usage_device, source, "source"),
        JSON_FIELD(U64, vgpu_usage_device, memory_total, "memory_total"),
        JSON_FIELD(U64, vgpu_usage_device, memory_used, "memory_used"),
        USAGE_PERCENTS(vgpu_usage_device),
};

static const struct json_field instance_fields[] = {
        JSON_FIELD(TEXT, vgpu_usage_instance, name, "name"),
        JSON_FIELD(TEXT, vgpu_usage_instance, uuid, "uuid"),
        JSON_FIELD(U32, vgpu_usage_instance, device, "device"),
        JSON_FIELD(U64, vgpu_usage_instance, frame_buffer, "frame_buffer"),
        JSON_FIELD(U64, vgpu_usage_instance, frame_buffer_used, "frame_buffer_used"),
        JSON_FIELD(SECONDS, vgpu_usage_instance, entitled, "entitled"),
        USAGE_OPTIONAL(U32, vgpu_usage_instance, share, "share"),
        USAGE_PERCENTS(vgpu_usage_instance),
        USAGE_SECONDS(vgpu_usage_instance),
};

static const struct json_field process_fields[] = {
        JSON_FIELD(I32, vgpu_usage_process, pid, "pid"),
        JSON_FIELD(TEXT, vgpu_usage_process, name, "name"),
        JSON_FIELD(U64, vgpu_usage_process, memory_used, "memory_used"),
        USAGE_PERCENTS(vgpu_usage_process),
        USAGE_SECONDS(vgpu_usage_process),
};

/* What the table of fields cannot say. */
static int fill_instance(struct vgpu_client *client, struct vgpu_usage_instance *instance,
                         const json_t *json)
{
        const char *state = json_string_value(json_object_get(json, "state"));
        void *processes;
        int r;

        if (!state)
                return client_set_bad_answer(client, METHOD, "state");
        instance->state = instance_state_from_name(state);
        r = usage_decode_array(client, METHOD, "processes", json_object_get(json, "processes"),
                               process_fields, USAGE_COUNT(process_fields),
                               sizeof(struct vgpu_usage_process), &processes,
                               &instance->n_processes);
        if (r == 0)
                instance->processes = processes;
        return r;
}

static int fill(struct vgpu_client *client, struct box *box)
{
        const json_t *vgpus = json_object_get(box->json, "vgpus");
        int r = usage_decode_array(client, METHOD, "devices", json_object_get(box->json, "devices"),
                                   device_fields, USAGE_COUNT(device_fields),
                                   sizeof(struct vgpu_usage_device), &box->devices,
                                   &box->snapshot.n_devices);

        if (r == 0)
                r = usage_decode_array(client, METHOD, "vgpus", vgpus, instance_fields,
                                       USAGE_COUNT(instance_fields),
                                       sizeof(struct vgpu_usage_instance), &box->instances,
                                       &box->snapshot.n_instances);
        box->snapshot.devices = box->devices;
        box->snapshot.instances = box->instances;
        for (size_t i = 0; r == 0 && i < box->snapshot.n_instances; i++)
                r = fill_instance(client, (struct vgpu_usage_instance *)box->instances + i,
                                  json_array_get(vgpus, i));
        return r;
}

int vgpu_usage_take_snapshot(struct vgpu_client *client, struct vgpu_usage_snapshot **ret_snapshot)
{
        static const struct call call = { .method = METHOD, .kind = CALL_READS };
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *snapshot = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct box *box;
        int r;

        r = client_begin(client, &parameters);
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
                free((void *)(uintptr_t)snapshot->instances[i].processes);
        free(box->devices);
        free(box->instances);
        json_decref(box->json);
        free(box);
        return NULL;
}
