/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/usage.h>

#include "lib/result.h"

int vgpu_usage_take_snapshot(struct vgpu_client *client, struct vgpu_usage_snapshot **ret_snapshot)
{
        return vgpu_usage_take_snapshot_with(client, NULL, ret_snapshot);
}

int vgpu_usage_take_snapshot_with(struct vgpu_client *client,
                                  const struct vgpu_usage_snapshot_options *options,
                                  struct vgpu_usage_snapshot **ret_snapshot)
{
        struct vgpu_usage_snapshot_options copy = VGPU_USAGE_SNAPSHOT_OPTIONS_INIT;
        static const struct call call = { .method = "GetUtilization", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0 && options)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r == 0 && copy.is_without_processes)
                r = client_add(client, parameters, "short", json_true());
        if (r < 0)
                return r;
        return result_call(client, &call, parameters, &record_snapshot, ret_snapshot);
}

struct vgpu_usage_snapshot *vgpu_usage_snapshot_free(struct vgpu_usage_snapshot *snapshot)
{
        return result_free(snapshot);
}
