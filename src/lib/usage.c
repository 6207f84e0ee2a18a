/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/usage.h"

int usage_decode_array(struct vgpu_client *client, const char *method, const char *what,
                       const json_t *array, const struct json_field *fields, size_t n_fields,
                       size_t size, void ***ret_pointers, size_t *ret_n)
{
        size_t n = json_array_size(array);
        CLEANUP(freep) void **pointers = NULL;
        char *structs;

        if (!json_is_array(array))
                return client_set_bad_answer(client, method, what);
        pointers = calloc(n + 1, sizeof(*pointers) + size);
        if (!pointers)
                return error_set_no_memory(&client->error);
        structs = (char *)(pointers + n);
        for (size_t i = 0; i < n; i++) {
                int r;

                pointers[i] = structs + i * size;
                r = client_decode(client, method, pointers[i], json_array_get(array, i), fields,
                                  n_fields);
                if (r < 0)
                        return r;
        }
        *ret_pointers = TAKE(pointers);
        *ret_n = n;
        return 0;
}

/* One answer more. 1: there is another one after it. */
static int collect_one(struct vgpu_client *client, const struct call *call, json_t *parameters,
                       const char *what, json_t *all)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        json_t *part;
        int r = 0;

        if (json_array_size(all) > 0)
                r = client_add(client, parameters, "offset",
                               json_integer((json_int_t)json_array_size(all)));
        if (r == 0)
                r = client_call(client, call, parameters, &answer);
        if (r < 0)
                return r;
        part = json_object_get(answer, what);
        if (!json_is_array(part))
                return client_set_bad_answer(client, call->method, what);
        if (json_array_extend(all, part) < 0)
                return error_set_no_memory(&client->error);
        /* "more" of nothing would go on for ever. */
        return json_is_true(json_object_get(answer, "more")) && json_array_size(part) > 0;
}

static int collect_all(struct vgpu_client *client, const struct call *call, json_t *parameters,
                       const char *what, json_t **ret_all)
{
        CLEANUP(json_decrefp) json_t *all = json_array();
        int r;

        if (!all)
                return error_set_no_memory(&client->error);
        do
                r = collect_one(client, call, parameters, what, all);
        while (r > 0);
        if (r < 0)
                return r;
        *ret_all = TAKE(all);
        return 0;
}

DEFINE_CLEANUP(struct usage_box *, usage_box_free);

int usage_collect(struct vgpu_client *client, const struct call *call, json_t *parameters,
                  const char *what, const struct json_field *fields, size_t n_fields, size_t size,
                  struct usage_box **ret_box)
{
        CLEANUP(usage_box_freep) struct usage_box *box = calloc(1, sizeof(*box));
        int r;

        if (!box)
                return error_set_no_memory(&client->error);
        r = collect_all(client, call, parameters, what, &box->json);
        if (r == 0)
                r = usage_decode_array(client, call->method, what, box->json, fields, n_fields,
                                       size, &box->pointers, &box->n);
        if (r < 0)
                return r;
        *ret_box = TAKE(box);
        return 0;
}

struct usage_box *usage_box_free(struct usage_box *box)
{
        if (!box)
                return NULL;
        free(box->pointers);
        json_decref(box->json);
        free(box);
        return NULL;
}

/* The ledger. */

struct row {
        struct vgpu_usage_row value;
        struct vgpu_usage_seconds seconds;
};

static const struct json_field fields[] = {
        USAGE_OPTIONAL(U32, row, value.tenant, "tenant"),
        USAGE_OPTIONAL(TEXT, row, value.vgpu, "vgpu"),
        USAGE_OPTIONAL(TEXT, row, value.vgpu_uuid, "vgpu_uuid"),
        USAGE_OPTIONAL(I32, row, value.pid, "pid"),
        USAGE_OPTIONAL(TEXT, row, value.name, "name"),
        USAGE_OPTIONAL(SECONDS, row, value.started, "started"),
        USAGE_OPTIONAL(SECONDS, row, value.ended, "ended"),
        USAGE_OPTIONAL(TEXT, row, value.device_uuid, "device_uuid"),
        USAGE_OPTIONAL(TEXT, row, value.device_name, "device_name"),
        USAGE_SECONDS(row),
        JSON_FIELD(SECONDS, row, value.quota_gib_hours, "quota_gib_hours"),
        JSON_FIELD(SECONDS, row, value.used_gib_hours, "used_gib_hours"),
};

static const char *const groups[] = {
        [VGPU_USAGE_BY_VGPU] = "vgpu",
        [VGPU_USAGE_BY_TENANT] = "tenant",
        [VGPU_USAGE_BY_PROCESS] = "process",
        [VGPU_USAGE_BY_DEVICE] = "device",
};

static int add_options(struct vgpu_client *client, json_t *parameters,
                       const struct vgpu_usage_options *options)
{
        int r;

        if ((size_t)options->group >= USAGE_COUNT(groups))
                return error_set_parameter(&client->error, "group", "there is no such group");
        if (!(options->since >= 0) || !(options->until >= 0))
                return error_set_parameter(&client->error, "since", "a time before 1970");
        r = client_add(client, parameters, "since", json_real(options->since));
        if (r == 0 && options->until > 0)
                r = client_add(client, parameters, "until", json_real(options->until));
        return r < 0 ? r : client_add_text(client, parameters, "by", groups[options->group]);
}

int vgpu_usage_lookup(struct vgpu_client *client, const struct vgpu_usage_options *options,
                      struct vgpu_usage_list **ret_list)
{
        static const struct call call = { .method = "GetUsage", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct vgpu_usage_options copy;
        struct usage_box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r == 0)
                r = add_options(client, parameters, &copy);
        if (r < 0)
                return r;
        r = usage_collect(client, &call, parameters, "rows", fields, USAGE_COUNT(fields),
                          sizeof(struct row), &box);
        if (r < 0)
                return r;
        for (size_t i = 0; i < box->n; i++) {
                struct row *row = box->pointers[i];

                row->value.seconds = &row->seconds;
        }
        box->list.rows =
                (struct vgpu_usage_list){ .n_rows = box->n, .rows = (const void *)box->pointers };
        *ret_list = &box->list.rows;
        return 0;
}

struct vgpu_usage_list *vgpu_usage_list_free(struct vgpu_usage_list *list)
{
        (void)usage_box_free((struct usage_box *)list);
        return NULL;
}
