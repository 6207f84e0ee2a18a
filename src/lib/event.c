/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/event.h>

#include "lib/usage.h"

/* What the caller sees, and behind it what it points to. */
struct event_box {
        struct vgpu_event_list list;
        json_t *json; /* has the texts */
        void **pointers;
};

static const struct json_field fields[] = {
        JSON_FIELD(U64, vgpu_event, id, "id"),
        JSON_FIELD(SECONDS, vgpu_event, time, "time"),
        JSON_FIELD(TEXT, vgpu_event, vgpu, "vgpu"),
        JSON_FIELD(TEXT, vgpu_event, vgpu_uuid, "vgpu_uuid"),
        JSON_FIELD(U32, vgpu_event, owner, "owner"),
        JSON_FIELD(TEXT, vgpu_event, event, "event"),
        JSON_FIELD(U32, vgpu_event, device, "device"),
        USAGE_OPTIONAL(I32, vgpu_event, pid, "pid"),
        USAGE_OPTIONAL(U64, vgpu_event, bytes, "bytes"),
        USAGE_OPTIONAL(SECONDS, vgpu_event, seconds, "seconds"),
        JSON_FIELD(TEXT, vgpu_event, message, "message"),
};

static const struct call call = { .method = "ListEvents", .kind = CALL_READS };

static int add_options(struct vgpu_client *client, json_t *parameters,
                       const struct vgpu_event_options *options)
{
        int r = 0;

        if (!(options->since >= 0))
                return error_set_parameter(&client->error, "since", "a time before 1970");
        if (options->name)
                r = client_add_text(client, parameters, "name", options->name);
        if (r == 0 && options->after > 0)
                r = client_add(client, parameters, "after",
                               json_integer((json_int_t)options->after));
        if (r == 0 && options->since > 0)
                r = client_add(client, parameters, "since", json_real(options->since));
        return r;
}

/* One answer more. 1: there is another one after it. */
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

static struct event_box *box_free(struct event_box *box)
{
        if (!box)
                return NULL;
        free(box->pointers);
        json_decref(box->json);
        free(box);
        return NULL;
}
DEFINE_CLEANUP(struct event_box *, box_free);

static int collect(struct vgpu_client *client, json_t *parameters, struct event_box **ret_box)
{
        CLEANUP(box_freep) struct event_box *box = calloc(1, sizeof(*box));
        int r;

        if (!box || !(box->json = json_array()))
                return error_set_no_memory(&client->error);
        do
                r = collect_one(client, parameters, box->json);
        while (r > 0);
        if (r == 0)
                r = usage_decode_array(client, call.method, "events", box->json, fields,
                                       USAGE_COUNT(fields), sizeof(struct vgpu_event),
                                       &box->pointers, &box->list.n_events);
        if (r < 0)
                return r;
        box->list.events = (const void *)box->pointers;
        *ret_box = TAKE(box);
        return 0;
}

int vgpu_event_lookup(struct vgpu_client *client, const struct vgpu_event_options *options,
                      struct vgpu_event_list **ret_list)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct vgpu_event_options copy;
        struct event_box *box = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r == 0)
                r = add_options(client, parameters, &copy);
        if (r == 0)
                r = collect(client, parameters, &box);
        if (r < 0)
                return r;
        *ret_list = &box->list;
        return 0;
}

struct vgpu_event_list *vgpu_event_list_free(struct vgpu_event_list *list)
{
        (void)box_free((struct event_box *)list);
        return NULL;
}
