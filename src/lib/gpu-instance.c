/* SPDX-License-Identifier: Apache-2.0 */
/* NVML lists GPU instances by profile only, so all profiles are asked. */
#include <openvgpu/gpu-instance.h>

#include "lib/answer.h"

struct found {
        size_t n;
        struct vgpu_gpu_instance *list;
};

static int add(struct vgpu_host *host, struct found *found, uint32_t device,
               nvmlGpuInstance_t handle)
{
        nvmlGpuInstanceInfo_t info = { .id = 0 };
        struct vgpu_gpu_instance *list;
        int r;

        r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlGpuInstanceGetInfo, handle, &info);
        if (r < 0)
                return r;
        for (size_t i = 0; i < found->n; i++)
                if (found->list[i].id == info.id)
                        return 0; /* profiles of the same number */
        list = reallocarray(found->list, found->n + 1, sizeof(*list));
        if (!list)
                return host_set_no_memory(host);
        found->list = list;
        list[found->n++] = (struct vgpu_gpu_instance){ .id = info.id,
                                                       .profile = info.profileId,
                                                       .start = info.placement.start,
                                                       .slices = info.placement.size };
        return 0;
}

/* The number of the profile with the index @index; or that there is none. */
static int get_profile(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                       unsigned int index, nvmlGpuInstanceProfileInfo_t *ret_info)
{
        int r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetGpuInstanceProfileInfo, handle,
                          index, ret_info);

        if (r < 0 &&
            (host->code == NVML_ERROR_NOT_SUPPORTED || host->code == NVML_ERROR_INVALID_ARGUMENT))
                return -ENOENT;
        return r;
}

static int add_profile(struct vgpu_host *host, struct found *found, uint32_t device,
                       nvmlDevice_t handle, const nvmlGpuInstanceProfileInfo_t *info)
{
        CLEANUP(growing_deinit)
        struct growing handles = GROWING(nvmlGpuInstance_t, info->instanceCount + 1);
        int r;

        r = growing_start(host, &handles);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetGpuInstances, handle,
                              info->id, handles.items, &handles.count);
        while (growing_again(host, &handles, &r));
        for (unsigned int i = 0; r == 0 && i < handles.count; i++)
                r = add(host, found, device, ((nvmlGpuInstance_t *)handles.items)[i]);
        return r;
}

int vgpu_gpu_instance_lookup_all(struct vgpu_host *host, uint32_t device,
                                 struct vgpu_gpu_instance_list **ret_list)
{
        struct vgpu_gpu_instance_list *list;
        struct vgpu_gpu_instance *items, **pointers;
        struct found found = { 0, NULL };
        CLEANUP(freep) struct vgpu_gpu_instance *owned = NULL;
        bool has_profiles = false;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        for (unsigned int i = 0; r == 0 && i < NVML_GPU_INSTANCE_PROFILE_COUNT; i++) {
                nvmlGpuInstanceProfileInfo_t info = { .id = 0 };

                r = get_profile(host, device, handle, i, &info);
                if (r == 0) {
                        has_profiles = true;
                        r = add_profile(host, &found, device, handle, &info);
                        owned = found.list;
                } else if (r == -ENOENT) {
                        r = 0;
                }
        }
        if (r < 0)
                return r;
        if (!has_profiles)
                return host_set_error(host, ABOUT_DEVICE(device), VGPU_ERROR_NOT_SUPPORTED, "",
                                      "it has no GPU instances (MIG)");

        list = answer_records(host, sizeof(*list), found.n, sizeof(*items), &items, &pointers);
        if (!list)
                return -ENOMEM;
        error_clear(&host->error);
        if (found.n > 0)
                memcpy(items, found.list, found.n * sizeof(*items));
        list->n_gpu_instances = found.n;
        list->gpu_instances = (const void *)pointers;
        *ret_list = list;
        return 0;
}
