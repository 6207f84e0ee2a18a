/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/manager.h>

#include "base/cleanup.h"
#include "lib/client.h"

/* What the caller sees, and behind it what it points to. */
struct box {
        struct vgpu_manager manager;
        struct vgpu_pool pool;
        json_t *json; /* has the texts */
};

DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);

static const struct json_field fields[] = {
        JSON_FIELD(TEXT, vgpu_manager, version, "version"),
        JSON_FIELD(BOOL, vgpu_manager, is_simulated, "simulated"),
        JSON_FIELD(U32, vgpu_manager, cuda_driver_version, "cuda_driver_version"),
        JSON_FIELD(TEXT, vgpu_manager, driver_path, "driver_path"),
        JSON_FIELD(TEXT, vgpu_manager, gate_path, "gate_path"),
        JSON_FIELD(TEXT, vgpu_manager, nvml_path, "nvml_path"),
        JSON_FIELD(TEXT, vgpu_manager, run_directory, "run_directory"),
        { .name = "descriptors_used",
          .type = JSON_FIELD_U64,
          .offset = offsetof(struct vgpu_manager, descriptors_used),
          .is_optional = true },
        { .name = "descriptors_limit",
          .type = JSON_FIELD_U64,
          .offset = offsetof(struct vgpu_manager, descriptors_limit),
          .is_optional = true },
};

static const struct json_field pool_fields[] = {
        JSON_FIELD(U64, vgpu_pool, limit, "limit"),
        JSON_FIELD(U64, vgpu_pool, size, "size"),
        JSON_FIELD(U64, vgpu_pool, ready, "ready"),
        JSON_FIELD(U64, vgpu_pool, used, "used"),
        JSON_FIELD(U64, vgpu_pool, slab_size, "slab_size"),
        JSON_FIELD(U64, vgpu_pool, huge_pages, "huge_pages"),
};

#define N_FIELDS      (sizeof(fields) / sizeof(fields[0]))
#define N_POOL_FIELDS (sizeof(pool_fields) / sizeof(pool_fields[0]))

int vgpu_manager_lookup(struct vgpu_client *client, struct vgpu_manager **ret_manager)
{
        static const struct call call = { .method = "GetInfo", .kind = CALL_READS };
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r < 0)
                return r;
        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        manager = &box->manager;
        manager->pool = &box->pool;

        r = client_call(client, &call, parameters, &box->json);
        if (r < 0)
                return r;
        r = client_decode(client, call.method, manager, box->json, fields, N_FIELDS);
        if (r < 0)
                return r;
        r = client_decode(client, call.method, &box->pool, json_object_get(box->json, "pool"),
                          pool_fields, N_POOL_FIELDS);
        if (r < 0)
                return r;

        *ret_manager = TAKE(manager);
        return 0;
}

struct vgpu_manager *vgpu_manager_free(struct vgpu_manager *manager)
{
        struct box *box = (struct box *)manager;

        if (!box)
                return NULL;

        json_decref(box->json);
        free(box);
        return NULL;
}
