/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/usage.h"

/* Takes one answer more. 1: another answer follows. */
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

int usage_collect(struct vgpu_client *client, const struct call *call, json_t *parameters,
                  const struct record *record, void *ret_list)
{
        CLEANUP(json_decrefp) json_t *all = NULL, *answer = NULL;
        const char *what = record->fields[0].name;
        int r = collect_all(client, call, parameters, what, &all);

        if (r < 0)
                return r;
        answer = json_pack("{sO}", what, all);
        if (!answer)
                return error_set_no_memory(&client->error);
        return result_new(client, call->method, record, answer, what, ret_list);
}

/* The ledger. */

static const char *const groups[] = {
        [VGPU_USAGE_BY_VGPU] = "vgpu",       [VGPU_USAGE_BY_TENANT] = "tenant",
        [VGPU_USAGE_BY_PROCESS] = "process", [VGPU_USAGE_BY_DEVICE] = "device",
        [VGPU_USAGE_BY_JOB] = "job",         [VGPU_USAGE_BY_CONTAINER] = "container",
        [VGPU_USAGE_BY_PART] = "part",
};

static int add_options(struct vgpu_client *client, json_t *parameters,
                       const struct vgpu_usage_options *options)
{
        int r;

        if ((size_t)options->group >= sizeof(groups) / sizeof(groups[0]))
                return error_set_parameter(&client->error, "group", "there is no such group");
        r = client_add_time(client, parameters, "since", options->since);
        if (r == 0 && options->until != 0)
                r = client_add_time(client, parameters, "until", options->until);
        return r < 0 ? r : client_add_text(client, parameters, "by", groups[options->group]);
}

int vgpu_usage_lookup(struct vgpu_client *client, const struct vgpu_usage_options *options,
                      struct vgpu_usage_list **ret_list)
{
        static const struct call call = { .method = "GetUsage", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct vgpu_usage_options copy;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r == 0)
                r = add_options(client, parameters, &copy);
        if (r < 0)
                return r;
        return usage_collect(client, &call, parameters, &record_usage_list, ret_list);
}

struct vgpu_usage_list *vgpu_usage_list_free(struct vgpu_usage_list *list)
{
        return result_free(list);
}
