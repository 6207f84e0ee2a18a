/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/placement.h>

#include "lib/answer.h"

/* What is asked, of which place. */
struct question {
        uint32_t device, gpu_instance, type;
        enum vgpu_placement_mode mode;
        bool creatable;
        nvmlDevice_t handle;
        nvmlGpuInstance_t part;
};

static int ask_v2(struct vgpu_host *host, const struct question *question, struct growing *ids,
                  uint32_t *slots)
{
        nvmlVgpuPlacementList_v2_t list = { .version = NVML_VERSION(nvmlVgpuPlacementList_v2_t, 2),
                                            .count = ids->room,
                                            .placementIds = ids->items,
                                            .mode = (unsigned int)question->mode };
        struct about about = ABOUT_TYPE(question->type);
        int r;

        r = question->creatable ? HOST_CALL(host, about, nvmlDeviceGetVgpuTypeCreatablePlacements,
                                            question->handle, question->type, &list)
                                : HOST_CALL(host, about, nvmlDeviceGetVgpuTypeSupportedPlacements,
                                            question->handle, question->type, &list);
        ids->count = list.count;
        *slots = list.placementSize;
        return r;
}

/* R550 to R565 know one mode only, and a shorter struct, whose version word is all that we change. */
static int ask_v1(struct vgpu_host *host, const struct question *question, struct growing *ids,
                  uint32_t *slots)
{
        nvmlVgpuPlacementList_v2_t list = { .version = NVML_VERSION(nvmlVgpuPlacementList_v1_t, 1),
                                            .count = ids->room,
                                            .placementIds = ids->items };
        struct about about = ABOUT_TYPE(question->type);
        int r;

        if (question->mode != VGPU_PLACEMENT_HETEROGENEOUS)
                return host_set_needs(host, about, "the list of homogeneous placements", "R570");
        r = question->creatable ? HOST_CALL(host, about, nvmlDeviceGetVgpuTypeCreatablePlacements,
                                            question->handle, question->type, &list)
                                : HOST_CALL(host, about, nvmlDeviceGetVgpuTypeSupportedPlacements,
                                            question->handle, question->type, &list);
        ids->count = list.count;
        *slots = list.placementSize;
        return r;
}

_Static_assert(offsetof(nvmlVgpuPlacementList_v1_t, placementIds) ==
                               offsetof(nvmlVgpuPlacementList_v2_t, placementIds) &&
                       sizeof(nvmlVgpuPlacementList_v1_t) ==
                               offsetof(nvmlVgpuPlacementList_v2_t, mode),
               "the first form is the beginning of the second");

static int ask_gpu_instance(struct vgpu_host *host, const struct question *question,
                            struct growing *ids, uint32_t *slots)
{
        nvmlVgpuCreatablePlacementInfo_v1_t info = {
                .version = NVML_VERSION(nvmlVgpuCreatablePlacementInfo_v1_t, 1),
                .vgpuTypeId = question->type,
                .count = ids->room,
                .placementIds = ids->items
        };
        int r;

        r = HOST_CALL(host, ABOUT_GPU_INSTANCE(question->gpu_instance, question->device),
                      nvmlGpuInstanceGetVgpuTypeCreatablePlacements, question->part, &info);
        ids->count = info.count;
        *slots = info.placementSize;
        return r;
}

static int ask(struct vgpu_host *host, const struct question *question, struct growing *ids,
               uint32_t *slots)
{
        int r;

        if (question->part)
                return ask_gpu_instance(host, question, ids, slots);
        r = ask_v2(host, question, ids, slots);
        if (r < 0 && host->code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
                r = ask_v1(host, question, ids, slots);
        return r;
}

static int lookup(struct vgpu_host *host, struct question *question,
                  struct vgpu_placement_list **ret_list)
{
        CLEANUP(growing_deinit) struct growing ids = GROWING(unsigned int, 0);
        struct vgpu_placement_list *list;
        uint32_t slots = 0, *placements;
        int r;

        error_clear(&host->error);
        /* The driver has one code for a wrong mode and a wrong type. */
        if ((unsigned int)question->mode > VGPU_PLACEMENT_HOMOGENEOUS)
                return host_set_parameter(host, ABOUT_DEVICE(question->device), "mode",
                                          "there is no mode %d", (int)question->mode);
        r = host_device(host, question->device, &question->handle);
        if (r == 0 && question->gpu_instance != VGPU_WHOLE_DEVICE)
                r = host_gpu_instance(host, question->device, question->gpu_instance,
                                      &question->part);
        if (r < 0)
                return r;
        do
                r = ask(host, question, &ids, &slots);
        while (growing_again(host, &ids, &r));
        if (r < 0)
                return r;

        list = answer_list(host, sizeof(*list), ids.count, sizeof(*placements), &placements);
        if (!list)
                return -ENOMEM;
        for (unsigned int i = 0; i < ids.count; i++)
                placements[i] = ((const unsigned int *)ids.items)[i];
        list->slots = slots;
        list->n_placements = ids.count;
        list->placements = placements;
        *ret_list = list;
        return 0;
}

int vgpu_placement_lookup_possible(struct vgpu_host *host, uint32_t device, uint32_t type,
                                   enum vgpu_placement_mode mode,
                                   struct vgpu_placement_list **ret_list)
{
        struct question question = {
                .device = device, .gpu_instance = VGPU_WHOLE_DEVICE, .type = type, .mode = mode
        };

        return lookup(host, &question, ret_list);
}

int vgpu_placement_lookup_creatable(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                    uint32_t type, enum vgpu_placement_mode mode,
                                    struct vgpu_placement_list **ret_list)
{
        struct question question = { .device = device,
                                     .gpu_instance = gpu_instance,
                                     .type = type,
                                     .mode = mode,
                                     .creatable = true };

        return lookup(host, &question, ret_list);
}

int vgpu_placement_get_heterogeneous(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                     bool *ret_is_on)
{
        nvmlVgpuHeterogeneousMode_v1_t mode = { .version = NVML_VERSION(
                                                        nvmlVgpuHeterogeneousMode_v1_t, 1) };
        struct about about = ABOUT_PLACE(device, gpu_instance);
        nvmlGpuInstance_t part;
        nvmlDevice_t handle;
        int r;

        if (gpu_instance == VGPU_WHOLE_DEVICE) {
                r = host_device(host, device, &handle);
                if (r == 0)
                        r = HOST_CALL(host, about, nvmlDeviceGetVgpuHeterogeneousMode, handle,
                                      &mode);
        } else {
                r = host_gpu_instance(host, device, gpu_instance, &part);
                if (r == 0)
                        r = HOST_CALL(host, about, nvmlGpuInstanceGetVgpuHeterogeneousMode, part,
                                      &mode);
        }
        if (r == 0)
                *ret_is_on = mode.mode == NVML_FEATURE_ENABLED;
        return r;
}

int vgpu_placement_set_heterogeneous(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                     bool is_on)
{
        const nvmlVgpuHeterogeneousMode_v1_t mode = {
                .version = NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1), .mode = is_on
        };
        struct about about = ABOUT_PLACE(device, gpu_instance);
        nvmlGpuInstance_t part;
        nvmlDevice_t handle;
        int r;

        if (gpu_instance != VGPU_WHOLE_DEVICE) {
                r = host_gpu_instance(host, device, gpu_instance, &part);
                return r < 0 ? r
                             : HOST_CALL(host, about, nvmlGpuInstanceSetVgpuHeterogeneousMode, part,
                                         &mode);
        }
        r = host_device(host, device, &handle);
        return r < 0 ? r
                     : HOST_CALL(host, about, nvmlDeviceSetVgpuHeterogeneousMode, handle, &mode);
}
