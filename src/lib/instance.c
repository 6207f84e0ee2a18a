/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/instance.h"

#include <string.h>

/* What the caller sees, and behind it what it points to. */
struct box {
        struct vgpu_instance instance;
        json_t *json; /* has the texts */
        struct vgpu_process *processes;
        const struct vgpu_process **pointers;
};

struct list_box {
        struct vgpu_instance_list list;
        struct vgpu_instance **instances;
};

DEFINE_CLEANUP(struct vgpu_instance_list *, vgpu_instance_list_free);

/* What younger managers tell. */
#define OPTIONAL(type_, member_, name_)                                                \
        {                                                                              \
                .name = (name_), .type = JSON_FIELD_##type_,                           \
                .offset = offsetof(struct vgpu_instance, member_), .is_optional = true \
        }

static const struct json_field fields[] = {
        JSON_FIELD(U32, vgpu_instance, id, "id"),
        JSON_FIELD(TEXT, vgpu_instance, name, "name"),
        JSON_FIELD(TEXT, vgpu_instance, uuid, "uuid"),
        JSON_FIELD(U32, vgpu_instance, device, "device"),
        JSON_FIELD(TEXT, vgpu_instance, device_uuid, "device_uuid"),
        JSON_FIELD(U64, vgpu_instance, frame_buffer, "frame_buffer"),
        JSON_FIELD(U64, vgpu_instance, frame_buffer_used, "frame_buffer_used"),
        JSON_FIELD(BOOL, vgpu_instance, is_transient, "transient"),
        JSON_FIELD(U32, vgpu_instance, owner, "owner"),
        JSON_FIELD(TIME, vgpu_instance, created_seconds, "created"),
        { .name = "share",
          .type = JSON_FIELD_U32,
          .offset = offsetof(struct vgpu_instance, share),
          .is_optional = true },
        OPTIONAL(SECONDS, idle_after, "idle_after"),
        OPTIONAL(BOOL, idle_keeps_context, "idle_keep_context"),
        OPTIONAL(SECONDS, idle, "idle"),
        OPTIONAL(TEXT, demand, "demand"),
        OPTIONAL(TEXT, demand_reason, "demand_reason"),
};

static const struct json_field process_fields[] = {
        JSON_FIELD(I32, vgpu_process, pid, "pid"),
        JSON_FIELD(TEXT, vgpu_process, name, "name"),
        JSON_FIELD(U64, vgpu_process, memory_used, "memory_used"),
        JSON_FIELD(U64, vgpu_process, memory_movable, "memory_movable"),
        JSON_FIELD(U64, vgpu_process, n_launches, "launches"),
};

#define N_FIELDS         (sizeof(fields) / sizeof(fields[0]))
#define N_PROCESS_FIELDS (sizeof(process_fields) / sizeof(process_fields[0]))

static const char *const state_names[] = {
        [VGPU_INSTANCE_UNKNOWN] = "unknown",     [VGPU_INSTANCE_IDLE] = "idle",
        [VGPU_INSTANCE_RUNNING] = "running",     [VGPU_INSTANCE_SUSPENDING] = "suspending",
        [VGPU_INSTANCE_SUSPENDED] = "suspended", [VGPU_INSTANCE_EVICTED] = "evicted",
        [VGPU_INSTANCE_RESUMING] = "resuming",   [VGPU_INSTANCE_MIGRATING] = "migrating",
        [VGPU_INSTANCE_FAILED] = "failed",
};

#define N_STATES (sizeof(state_names) / sizeof(state_names[0]))

const char *vgpu_instance_state_get_name(enum vgpu_instance_state state)
{
        return (size_t)state < N_STATES ? state_names[state] : state_names[VGPU_INSTANCE_UNKNOWN];
}

enum vgpu_instance_state instance_state_from_name(const char *name)
{
        for (size_t i = 0; i < N_STATES; i++)
                if (strcmp(state_names[i], name) == 0)
                        return (enum vgpu_instance_state)i;
        return VGPU_INSTANCE_UNKNOWN;
}

static int fill_processes(struct vgpu_client *client, const char *method, struct box *box)
{
        const json_t *array = json_object_get(box->json, "processes");
        size_t n = json_array_size(array);

        if (!json_is_array(array))
                return client_set_bad_answer(client, method, "processes");

        box->processes = calloc(n + 1, sizeof(*box->processes));
        box->pointers = calloc(n + 1, sizeof(*box->pointers));
        if (!box->processes || !box->pointers)
                return error_set_no_memory(&client->error);

        for (size_t i = 0; i < n; i++) {
                int r = client_decode(client, method, &box->processes[i], json_array_get(array, i),
                                      process_fields, N_PROCESS_FIELDS);

                if (r < 0)
                        return r;
                box->pointers[i] = &box->processes[i];
        }
        box->instance.n_processes = n;
        box->instance.processes = box->pointers;
        return 0;
}

int instance_decode(struct vgpu_client *client, const char *method, json_t *json,
                    struct vgpu_instance **ret_instance)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        const char *state = json_string_value(json_object_get(json, "state"));
        struct box *box;
        int r;

        if (!state)
                return client_set_bad_answer(client, method, json ? "state" : "vgpu");

        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        instance = &box->instance;
        box->json = json_incref(json);

        r = client_decode(client, method, instance, json, fields, N_FIELDS);
        if (r < 0)
                return r;
        r = fill_processes(client, method, box);
        if (r < 0)
                return r;
        instance->state = instance_state_from_name(state);

        *ret_instance = TAKE(instance);
        return 0;
}

struct vgpu_instance *vgpu_instance_free(struct vgpu_instance *instance)
{
        struct box *box = (struct box *)instance;

        if (!box)
                return NULL;

        free(box->processes);
        free(box->pointers);
        json_decref(box->json);
        free(box);
        return NULL;
}

static int fill_list(struct vgpu_client *client, struct list_box *box, const json_t *array)
{
        size_t n = json_array_size(array);

        if (!json_is_array(array))
                return client_set_bad_answer(client, "ListVgpus", "vgpus");

        box->instances = calloc(n + 1, sizeof(*box->instances));
        if (!box->instances)
                return error_set_no_memory(&client->error);
        box->list.instances = (const struct vgpu_instance *const *)box->instances;

        for (size_t i = 0; i < n; i++) {
                int r = instance_decode(client, "ListVgpus", json_array_get(array, i),
                                        &box->instances[i]);

                if (r < 0)
                        return r;
                box->list.n_instances++;
        }
        return 0;
}

static const struct call call_list = { .method = "ListVgpus", .kind = CALL_READS };

int vgpu_instance_lookup_all(struct vgpu_client *client, struct vgpu_instance_list **ret_list)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        struct list_box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r < 0)
                return r;
        r = client_call(client, &call_list, parameters, &answer);
        if (r < 0)
                return r;

        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        list = &box->list;
        r = fill_list(client, box, json_object_get(answer, "vgpus"));
        if (r < 0)
                return r;

        *ret_list = TAKE(list);
        return 0;
}

struct vgpu_instance_list *vgpu_instance_list_free(struct vgpu_instance_list *list)
{
        struct list_box *box = (struct list_box *)list;

        if (!box)
                return NULL;

        for (size_t i = 0; i < box->list.n_instances; i++)
                vgpu_instance_free(box->instances[i]);
        free(box->instances);
        free(box);
        return NULL;
}

int vgpu_instance_lookup(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r;

        r = client_call_with(client, &call_list, "name", name, &answer);
        if (r < 0)
                return r;

        return instance_decode(client, call_list.method,
                               json_array_get(json_object_get(answer, "vgpus"), 0), ret_instance);
}

static int add_idle(struct vgpu_client *client, json_t *parameters, double after,
                    bool keeps_context)
{
        int r = 0;

        if (!(after >= 0 && after <= 86400))
                return error_set_parameter(&client->error, "idle_after",
                                           "a vGPU leaves after 0.1 to 86400 seconds without work");
        if (after > 0)
                r = client_add(client, parameters, "idle_after", json_real(after));
        if (r == 0 && keeps_context)
                r = client_add(client, parameters, "idle_keep_context", json_true());
        return r;
}

static int add_options(struct vgpu_client *client, json_t *parameters,
                       const struct vgpu_instance_options *options)
{
        int r = 0;

        if (options->frame_buffer == 0 || options->frame_buffer > INT64_MAX)
                return error_set_parameter(&client->error, "frame_buffer",
                                           "a vGPU needs a frame buffer of 1 byte to 8 EiB");
        if (options->name)
                r = client_add_text(client, parameters, "name", options->name);
        if (r == 0 && options->device)
                r = client_add_text(client, parameters, "device", options->device);
        if (r == 0)
                r = client_add(client, parameters, "frame_buffer",
                               json_integer((json_int_t)options->frame_buffer));
        if (r == 0 && options->is_transient)
                r = client_add(client, parameters, "transient", json_true());
        if (r == 0 && options->share)
                r = client_add(client, parameters, "share", json_integer(options->share));
        if (r == 0 && options->has_owner)
                r = client_add(client, parameters, "owner", json_integer(options->owner));
        if (r == 0)
                r = add_idle(client, parameters, options->idle_after, options->idle_keeps_context);
        return r;
}

int vgpu_instance_create(struct vgpu_client *client, const struct vgpu_instance_options *options,
                         struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "CreateVgpu", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        struct vgpu_instance_options copy;
        int r;

        r = client_begin(client, &parameters);
        if (r < 0)
                return r;
        r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r < 0)
                return r;
        r = add_options(client, parameters, &copy);
        if (r < 0)
                return r;
        r = client_call(client, &call, parameters, &answer);
        if (r < 0)
                return r;

        return instance_decode(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}

int vgpu_instance_set_idle(struct vgpu_client *client, const char *name, double after,
                           bool keeps_context, struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "SetVgpuIdle", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0)
                r = add_idle(client, parameters, after, keeps_context);
        if (r == 0)
                r = client_call(client, &call, parameters, &answer);
        if (r < 0 || !ret_instance)
                return r;
        return instance_decode(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}

int vgpu_instance_remove(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "RemoveVgpu", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r;

        r = client_call_with(client, &call, "name", name, &answer);
        if (r < 0 || !ret_instance)
                return r;

        return instance_decode(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}

int vgpu_instance_rename(struct vgpu_client *client, const char *name, const char *to,
                         struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "RenameVgpu", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0)
                r = client_add_text(client, parameters, "to", to);
        if (r == 0)
                r = client_call(client, &call, parameters, &answer);
        if (r < 0 || !ret_instance)
                return r;

        return instance_decode(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}
