/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/usage.h"

int vgpu_usage_lookup_accounts(struct vgpu_client *client, const char *name,
                               struct vgpu_usage_account_list **ret_list)
{
        static const struct call call = { .method = "GetAccounting", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r < 0)
                return r;
        return usage_collect(client, &call, parameters, &record_account_list, ret_list);
}

struct vgpu_usage_account_list *vgpu_usage_account_list_free(struct vgpu_usage_account_list *list)
{
        return result_free(list);
}

int vgpu_usage_clear_accounts(struct vgpu_client *client, const char *name, uint32_t *ret_cleared)
{
        static const struct call call = { .method = "ClearVgpuAccounting", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *answer = NULL;
        const json_t *cleared;
        int r;

        r = client_call_with(client, &call, "name", name, &answer);
        if (r < 0)
                return r;
        cleared = json_object_get(answer, "cleared");
        if (!json_is_integer(cleared))
                return client_set_bad_answer(client, call.method, "cleared");
        if (ret_cleared)
                *ret_cleared = (uint32_t)json_integer_value(cleared);
        return 0;
}
