/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement: where in the frame buffer a vGPU may lie.
 *
 * Our vGPUs lie nowhere in particular: their memory is mapped page by page, so any mix
 * of sizes fits in any order. That is what NVML calls heterogeneous mode, always on, and
 * no vGPU has a placement id. The lists of placements are answered as if instances of one type
 * stood side by side, one slot a GiB, so that a client that reasons with them gets the right
 * counts: as many supported as the type's most instances, as many creatable as still fit.
 */
#include "base/size.h"
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/vgpu-type.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_t handle,
                                                    nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);

        if (r != NVML_SUCCESS)
                return r;
        if (!mode)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (mode->version != NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        mode->mode = NVML_FEATURE_ENABLED;
        return NVML_SUCCESS;
}

static bool has_active(const struct board_device *device)
{
        struct board_instance instance;
        uint32_t cursor = 0;

        return view_next_instance(&instance, &cursor, device->index);
}

nvmlReturn_t our_nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_t handle,
                                                    const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);

        if (r != NVML_SUCCESS)
                return r;
        if (!mode)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (mode->version != NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (mode->mode > NVML_FEATURE_ENABLED)
                return NVML_ERROR_INVALID_ARGUMENT;
        return has_active(&device) ? NVML_ERROR_IN_USE : answer_change();
}

nvmlReturn_t our_nvmlVgpuInstanceGetPlacementId(nvmlVgpuInstance_t id,
                                                nvmlVgpuPlacementId_v1_t *placement)
{
        struct board_instance instance;

        if (!placement)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (placement->version != NVML_VERSION(nvmlVgpuPlacementId_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!view_instance(&instance, id))
                return NVML_ERROR_NOT_FOUND;
        placement->placementId = NVML_INVALID_VGPU_PLACEMENT_ID;
        return NVML_SUCCESS;
}

static uint32_t count_that_fit(const struct board_device *device, const struct vgpu_type *type)
{
        uint64_t rest = device->memory_total;
        struct board_instance instance;
        uint32_t cursor = 0;

        while (view_next_instance(&instance, &cursor, device->index))
                rest -= instance.frame_buffer_quota < rest ? instance.frame_buffer_quota : rest;
        return (uint32_t)(rest / type->frame_buffer);
}

/* Both generations of the struct begin alike; only the second has a mode to check. */
static nvmlReturn_t check_list(const nvmlVgpuPlacementList_v2_t *list)
{
        if (!list)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (list->version == NVML_VERSION(nvmlVgpuPlacementList_v1_t, 1))
                return NVML_SUCCESS;
        if (list->version != NVML_VERSION(nvmlVgpuPlacementList_v2_t, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        return list->mode > NVML_VGPU_PGPU_HOMOGENEOUS_MODE ? NVML_ERROR_INVALID_ARGUMENT
                                                            : NVML_SUCCESS;
}

static nvmlReturn_t list_placements(nvmlDevice_t handle, nvmlVgpuTypeId_t id,
                                    nvmlVgpuPlacementList_v2_t *list, bool only_creatable)
{
        struct board_device device;
        struct vgpu_type type;
        nvmlReturn_t r = view_host_device(&device, handle);
        uint32_t n, slots;

        if (r == NVML_SUCCESS)
                r = check_list(list);
        if (r != NVML_SUCCESS)
                return r;
        if (!vgpu_type_find(&type, &device, id) || (!list->placementIds && list->count > 0))
                return NVML_ERROR_INVALID_ARGUMENT;

        n = only_creatable ? count_that_fit(&device, &type) : type.max_instances;
        slots = (uint32_t)(type.frame_buffer / GIB);
        r = answer_room(&list->count, n);
        if (r != NVML_SUCCESS)
                return r;
        list->placementSize = slots;
        /* What runs counts as standing in front. */
        for (uint32_t i = 0; i < n; i++)
                list->placementIds[i] = (type.max_instances - n + i) * slots;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_t handle, nvmlVgpuTypeId_t id,
                                                          nvmlVgpuPlacementList_v2_t *list)
{
        return list_placements(handle, id, list, false);
}

nvmlReturn_t our_nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_t handle, nvmlVgpuTypeId_t id,
                                                          nvmlVgpuPlacementList_v2_t *list)
{
        return list_placements(handle, id, list, true);
}
