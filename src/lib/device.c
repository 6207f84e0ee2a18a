/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/device.h>

#include "base/cleanup.h"
#include "lib/client.h"

/* What the caller sees, and behind it what it points to. */
struct box {
        struct vgpu_device_list list;
        json_t *json; /* has the texts */
        struct vgpu_device *devices;
        const struct vgpu_device **pointers;
};

DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);

static const struct json_field fields[] = {
        JSON_FIELD(U32, vgpu_device, index, "index"),
        JSON_FIELD(U32, vgpu_device, n_vgpus, "vgpus"),
        JSON_FIELD(TEXT, vgpu_device, uuid, "uuid"),
        JSON_FIELD(TEXT, vgpu_device, name, "name"),
        JSON_FIELD(TEXT, vgpu_device, pci_bus_id, "pci_bus_id"),
        JSON_FIELD(U64, vgpu_device, memory_total, "memory_total"),
        JSON_FIELD(U64, vgpu_device, memory_promised, "memory_promised"),
        JSON_FIELD(U64, vgpu_device, memory_used, "memory_used"),
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static int fill(struct vgpu_client *client, struct box *box, const json_t *array)
{
        size_t n = json_array_size(array);

        if (!json_is_array(array))
                return client_set_bad_answer(client, "ListDevices", "devices");

        box->devices = calloc(n + 1, sizeof(*box->devices));
        box->pointers = calloc(n + 1, sizeof(*box->pointers));
        if (!box->devices || !box->pointers)
                return error_set_no_memory(&client->error);

        for (size_t i = 0; i < n; i++) {
                int r = client_decode(client, "ListDevices", &box->devices[i],
                                      json_array_get(array, i), fields, N_FIELDS);

                if (r < 0)
                        return r;
                box->pointers[i] = &box->devices[i];
        }
        box->list.n_devices = n;
        box->list.devices = box->pointers;
        return 0;
}

int vgpu_device_lookup_all(struct vgpu_client *client, struct vgpu_device_list **ret_list)
{
        static const struct call call = { .method = "ListDevices", .kind = CALL_READS };
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r < 0)
                return r;
        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        list = &box->list;

        r = client_call(client, &call, parameters, &box->json);
        if (r < 0)
                return r;
        r = fill(client, box, json_object_get(box->json, "devices"));
        if (r < 0)
                return r;

        *ret_list = TAKE(list);
        return 0;
}

struct vgpu_device_list *vgpu_device_list_free(struct vgpu_device_list *list)
{
        struct box *box = (struct box *)list;

        if (!box)
                return NULL;

        free(box->devices);
        free(box->pointers);
        json_decref(box->json);
        free(box);
        return NULL;
}
