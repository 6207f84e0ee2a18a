/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/manager.h>

#include "lib/result.h"

int vgpu_manager_lookup(struct vgpu_client *client, struct vgpu_manager **ret_manager)
{
        static const struct call call = { .method = "GetInfo", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r < 0)
                return r;
        return result_call(client, &call, parameters, &record_manager, ret_manager);
}

struct vgpu_manager *vgpu_manager_free(struct vgpu_manager *manager)
{
        return result_free(manager);
}
