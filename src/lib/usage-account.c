/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/usage.h"

struct account {
        struct vgpu_usage_account value;
        struct vgpu_usage_seconds seconds;
};

static const struct json_field fields[] = {
        JSON_FIELD(U64, account, value.id, "id"),
        JSON_FIELD(I32, account, value.pid, "pid"),
        JSON_FIELD(TEXT, account, value.name, "name"),
        JSON_FIELD(BOOL, account, value.is_running, "running"),
        JSON_FIELD(SECONDS, account, value.started, "started"),
        JSON_FIELD(SECONDS, account, value.life, "seconds"),
        JSON_FIELD(U32, account, value.gpu_utilization, "gpu_utilization"),
        JSON_FIELD(U32, account, value.memory_utilization, "memory_utilization"),
        JSON_FIELD(U64, account, value.memory_peak, "memory_peak"),
        USAGE_SECONDS(account),
};

int vgpu_usage_lookup_accounts(struct vgpu_client *client, const char *name,
                               struct vgpu_usage_account_list **ret_list)
{
        static const struct call call = { .method = "GetAccounting", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct usage_box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r < 0)
                return r;
        r = usage_collect(client, &call, parameters, "records", fields, USAGE_COUNT(fields),
                          sizeof(struct account), &box);
        if (r < 0)
                return r;
        for (size_t i = 0; i < box->n; i++) {
                struct account *account = box->pointers[i];

                account->value.seconds = &account->seconds;
        }
        box->list.accounts =
                (struct vgpu_usage_account_list){ .n_accounts = box->n,
                                                  .accounts = (const void *)box->pointers };
        *ret_list = &box->list.accounts;
        return 0;
}

struct vgpu_usage_account_list *vgpu_usage_account_list_free(struct vgpu_usage_account_list *list)
{
        (void)usage_box_free((struct usage_box *)list);
        return NULL;
}

int vgpu_usage_clear_accounts(struct vgpu_client *client, const char *name, uint32_t *ret_cleared)
{
        static const struct call call = { .method = "ClearVgpuAccounting", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *answer = NULL;
        const json_t *cleared;
        int r;

        r = client_call_with(client, &call, "vgpu", name, &answer);
        if (r < 0)
                return r;
        cleared = json_object_get(answer, "cleared");
        if (!json_is_integer(cleared))
                return client_set_bad_answer(client, call.method, "cleared");
        if (ret_cleared)
                *ret_cleared = (uint32_t)json_integer_value(cleared);
        return 0;
}
