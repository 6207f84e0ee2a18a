/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/usage.h"

struct box {
        struct vgpu_usage_account_list list;
        json_t *json; /* has the texts */
        void *accounts;
};

DEFINE_CLEANUP(struct vgpu_usage_account_list *, vgpu_usage_account_list_free);

static const struct json_field fields[] = {
        JSON_FIELD(U64, vgpu_usage_account, id, "id"),
        JSON_FIELD(I32, vgpu_usage_account, pid, "pid"),
        JSON_FIELD(TEXT, vgpu_usage_account, name, "name"),
        JSON_FIELD(BOOL, vgpu_usage_account, is_running, "running"),
        JSON_FIELD(SECONDS, vgpu_usage_account, started, "started"),
        JSON_FIELD(SECONDS, vgpu_usage_account, life, "seconds"),
        JSON_FIELD(U32, vgpu_usage_account, gpu_utilization, "gpu_utilization"),
        JSON_FIELD(U32, vgpu_usage_account, memory_utilization, "memory_utilization"),
        JSON_FIELD(U64, vgpu_usage_account, memory_peak, "memory_peak"),
        USAGE_SECONDS(vgpu_usage_account),
};

int vgpu_usage_lookup_accounts(struct vgpu_client *client, const char *name,
                               struct vgpu_usage_account_list **ret_list)
{
        static const struct call call = { .method = "GetAccounting", .kind = CALL_READS };
        CLEANUP(vgpu_usage_account_list_freep) struct vgpu_usage_account_list *list = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r < 0)
                return r;
        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        list = &box->list;
        r = usage_collect(client, &call, parameters, "records", &box->json);
        if (r == 0)
                r = usage_decode_array(client, call.method, "records", box->json, fields,
                                       USAGE_COUNT(fields), sizeof(struct vgpu_usage_account),
                                       &box->accounts, &list->n_accounts);
        if (r < 0)
                return r;
        list->accounts = box->accounts;
        *ret_list = TAKE(list);
        return 0;
}

struct vgpu_usage_account_list *vgpu_usage_account_list_free(struct vgpu_usage_account_list *list)
{
        struct box *box = (struct box *)list;

        if (!box)
                return NULL;
        free(box->accounts);
        json_decref(box->json);
        free(box);
        return NULL;
}

int vgpu_usage_clear_accounts(struct vgpu_client *client, const char *name, uint32_t *ret_cleared)
{
        static const struct call call = { .method = "ClearVgpuAccounting", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        const json_t *cleared;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add_text(client, parameters, "vgpu", name);
        if (r == 0)
                r = client_call(client, &call, parameters, &answer);
        if (r < 0)
                return r;
        cleared = json_object_get(answer, "cleared");
        if (!json_is_integer(cleared))
                return client_set_bad_answer(client, call.method, "cleared");
        if (ret_cleared)
                *ret_cleared = (uint32_t)json_integer_value(cleared);
        return 0;
}
