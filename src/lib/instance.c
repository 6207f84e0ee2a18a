/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/instance.h"

#include <string.h>

#include "lib/result.h"

const char *vgpu_instance_state_get_name(enum vgpu_instance_state state)
{
        const struct record_words *words = &record_words_instance_state;

        return words->word[(size_t)state < words->n ? state : VGPU_INSTANCE_UNKNOWN];
}

int instance_read(struct vgpu_client *client, const char *method, json_t *json,
                  struct vgpu_instance **ret_instance)
{
        return result_new(client, method, &record_instance, json, "vgpu", ret_instance);
}

struct vgpu_instance *vgpu_instance_free(struct vgpu_instance *instance)
{
        return result_free(instance);
}

static const struct call call_list = { .method = "ListVgpus", .kind = CALL_READS };

int vgpu_instance_lookup_all(struct vgpu_client *client, struct vgpu_instance_list **ret_list)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r < 0)
                return r;
        return result_call(client, &call_list, parameters, &record_instance_list, ret_list);
}

struct vgpu_instance_list *vgpu_instance_list_free(struct vgpu_instance_list *list)
{
        return result_free(list);
}

int vgpu_instance_lookup(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r;

        r = client_call_with(client, &call_list, "name", name, &answer);
        if (r < 0)
                return r;

        return instance_read(client, call_list.method,
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
        if (r == 0 && options->n_devices)
                r = client_add(client, parameters, "devices", json_integer(options->n_devices));
        if (r == 0)
                r = client_add(client, parameters, "frame_buffer",
                               json_integer((json_int_t)options->frame_buffer));
        if (r == 0 && options->is_transient)
                r = client_add(client, parameters, "transient", json_true());
        if (r == 0 && options->share)
                r = client_add(client, parameters, "share", json_integer(options->share));
        if (r == 0 && options->has_owner)
                r = client_add(client, parameters, "owner", json_integer(options->owner));
        if (r == 0 && options->swap_class)
                r = client_add_text(client, parameters, "swap_class", options->swap_class);
        if (r == 0 && options->pool_group)
                r = client_add_text(client, parameters, "pool_group", options->pool_group);
        if (r == 0 && options->is_dry)
                r = client_add(client, parameters, "dry", json_true());
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

        if (copy.is_dry) {
                if (ret_instance)
                        *ret_instance = NULL;
                return 0;
        }
        return instance_read(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
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
        if (r < 0)
                return r;
        return instance_read(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}

int vgpu_instance_set_class(struct vgpu_client *client, const char *name, const char *swap_class,
                            struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "SetVgpuClass", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0)
                r = client_add_text(client, parameters, "swap_class", swap_class);
        if (r == 0)
                r = client_call(client, &call, parameters, &answer);
        if (r < 0)
                return r;
        return instance_read(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}

int vgpu_instance_remove(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "RemoveVgpu", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r;

        r = client_call_with(client, &call, "name", name, &answer);
        if (r < 0)
                return r;

        return instance_read(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}

int vgpu_instance_resize(struct vgpu_client *client, const char *name, uint64_t frame_buffer,
                         struct vgpu_instance **ret_instance)
{
        static const struct call call = { .method = "ResizeVgpu", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0)
                r = client_add(client, parameters, "frame_buffer",
                               json_integer((json_int_t)frame_buffer));
        if (r == 0)
                r = client_call(client, &call, parameters, &answer);
        if (r < 0)
                return r;

        return instance_read(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
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
        if (r < 0)
                return r;

        return instance_read(client, call.method, json_object_get(answer, "vgpu"), ret_instance);
}
