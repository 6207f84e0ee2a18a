/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/event.h>

#include "lib/result.h"

static const struct call call = { .method = "ListEvents", .kind = CALL_READS };

static int add_options(struct vgpu_client *client, json_t *parameters,
                       const struct vgpu_event_options *options)
{
        int r = 0;

        if (options->name)
                r = client_add_text(client, parameters, "name", options->name);
        if (r == 0 && options->after > 0)
                r = client_add(client, parameters, "after",
                               json_integer((json_int_t)options->after));
        if (r == 0 && options->since != 0)
                r = client_add_time(client, parameters, "since", options->since);
        return r;
}

/* Takes one answer more. 1: another answer follows. */
static int collect_one(struct vgpu_client *client, json_t *parameters, json_t *all)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        json_t *part, *last;
        int r = client_call(client, &call, parameters, &answer);

        if (r < 0)
                return r;
        part = json_object_get(answer, "events");
        if (!json_is_array(part))
                return client_set_bad_answer(client, call.method, "events");
        if (json_array_extend(all, part) < 0)
                return error_set_no_memory(&client->error);
        last = json_object_get(json_array_get(part, json_array_size(part) - 1), "id");
        if (!json_is_true(json_object_get(answer, "more")) || !json_is_integer(last))
                return 0;
        r = client_add(client, parameters, "after", json_incref(last));
        return r < 0 ? r : 1;
}

static int collect(struct vgpu_client *client, json_t *parameters,
                   struct vgpu_event_list **ret_list)
{
        CLEANUP(json_decrefp)
        json_t *all = json_array(), *answer = json_pack("{sO?}", "events", all);
        int r;

        if (!all || !answer)
                return error_set_no_memory(&client->error);
        do
                r = collect_one(client, parameters, all);
        while (r > 0);
        if (r < 0)
                return r;
        return result_new(client, call.method, &record_event_list, answer, "events", ret_list);
}

int vgpu_event_lookup(struct vgpu_client *client, const struct vgpu_event_options *options,
                      struct vgpu_event_list **ret_list)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct vgpu_event_options copy;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r == 0)
                r = add_options(client, parameters, &copy);
        return r < 0 ? r : collect(client, parameters, ret_list);
}

struct vgpu_event_list *vgpu_event_list_free(struct vgpu_event_list *list)
{
        return result_free(list);
}
