/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/device.h>

#include "lib/result.h"

int vgpu_device_lookup_all(struct vgpu_client *client, struct vgpu_device_list **ret_list)
{
        static const struct call call = { .method = "ListDevices", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r < 0)
                return r;
        return result_call(client, &call, parameters, &record_device_list, ret_list);
}

struct vgpu_device_list *vgpu_device_list_free(struct vgpu_device_list *list)
{
        return result_free(list);
}
