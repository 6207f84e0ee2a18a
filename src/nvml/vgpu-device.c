/* SPDX-License-Identifier: Apache-2.0 */
/* A device as a host of vGPUs: its mode, what it can do, what it offers, what runs on it. */
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/vgpu-type.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle,
                                                 nvmlGpuVirtualizationMode_t *mode)
{
        struct board_device device;

        if (!view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetVirtualizationMode)(handle, mode);
        if (!mode)
                return NVML_ERROR_INVALID_ARGUMENT;
        *mode = view_is_guest() ? NVML_GPU_VIRTUALIZATION_MODE_VGPU
                                : NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU;
        return NVML_SUCCESS;
}

/* The manager decides that by having the device. */
nvmlReturn_t our_nvmlDeviceSetVirtualizationMode(nvmlDevice_t handle,
                                                 nvmlGpuVirtualizationMode_t mode)
{
        struct board_device device;

        if (!view_device(&device, handle))
                return NVML_REAL(nvmlDeviceSetVirtualizationMode)(handle, mode);
        return mode > NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA ? NVML_ERROR_INVALID_ARGUMENT
                                                             : answer_change();
}

nvmlReturn_t our_nvmlDeviceGetHostVgpuMode(nvmlDevice_t handle, nvmlHostVgpuMode_t *mode)
{
        struct board_device device;
        nvmlReturn_t r = mode ? view_host_device(&device, handle) : NVML_ERROR_INVALID_ARGUMENT;

        if (r == NVML_SUCCESS)
                *mode = NVML_HOST_VGPU_MODE_NON_SRIOV;
        return r;
}

nvmlReturn_t our_nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t capability,
                                               unsigned int *flag)
{
        if (!flag || capability >= NVML_VGPU_DRIVER_CAP_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        *flag = capability == NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuCapabilities(nvmlDevice_t handle,
                                               nvmlDeviceVgpuCapability_t capability,
                                               unsigned int *value)
{
        static const unsigned int values[NVML_DEVICE_VGPU_CAP_COUNT] = {
                [NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU] = 1,
                [NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_PROFILES] = 1,
                [NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_SIZES] = 1,
        };
        struct board_device device;
        nvmlReturn_t r;

        if (!value || capability >= NVML_DEVICE_VGPU_CAP_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = view_host_device(&device, handle);
        if (r == NVML_SUCCESS)
                *value = values[capability];
        return r;
}

static bool can_be_set(nvmlDeviceVgpuCapability_t capability)
{
        return capability == NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU ||
               capability == NVML_DEVICE_VGPU_CAP_COMPUTE_MEDIA_ENGINE_GPU ||
               capability == NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_ENABLED;
}

nvmlReturn_t our_nvmlDeviceSetVgpuCapabilities(nvmlDevice_t handle,
                                               nvmlDeviceVgpuCapability_t capability,
                                               nvmlEnableState_t state)
{
        struct board_device device;
        nvmlReturn_t r;

        if (capability >= NVML_DEVICE_VGPU_CAP_COUNT || state > NVML_FEATURE_ENABLED)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = view_host_device(&device, handle);
        if (r != NVML_SUCCESS)
                return r;
        return can_be_set(capability) ? answer_change() : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlDeviceVgpuForceGspUnload(nvmlDevice_t handle)
{
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);

        return r == NVML_SUCCESS ? answer_change() : r;
}

static uint64_t get_free_quota(const struct board_device *device)
{
        uint64_t rest = device->memory_total;
        struct board_instance instance;
        uint32_t cursor = 0;

        while (view_next_instance(&instance, &cursor, device->index))
                rest -= instance.frame_buffer_quota < rest ? instance.frame_buffer_quota : rest;
        return rest;
}

/* The types of @device whose frame buffer is at most @limit. */
static nvmlReturn_t list_types(nvmlDevice_t handle, unsigned int *count, nvmlVgpuTypeId_t *ids,
                               bool only_creatable)
{
        struct vgpu_type types[VGPU_TYPES_MAX];
        nvmlVgpuTypeId_t chosen[VGPU_TYPES_MAX];
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);
        uint64_t limit;
        uint32_t n, n_chosen = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!count || (!ids && *count > 0))
                return NVML_ERROR_INVALID_ARGUMENT;

        limit = only_creatable ? get_free_quota(&device) : UINT64_MAX;
        n = vgpu_type_list(types, &device);
        for (uint32_t i = 0; i < n; i++)
                if (types[i].frame_buffer <= limit)
                        chosen[n_chosen++] = types[i].id;

        r = answer_room(count, n_chosen);
        for (uint32_t i = 0; r == NVML_SUCCESS && i < n_chosen; i++)
                ids[i] = chosen[i];
        return r;
}

nvmlReturn_t our_nvmlDeviceGetSupportedVgpus(nvmlDevice_t handle, unsigned int *count,
                                             nvmlVgpuTypeId_t *types)
{
        return list_types(handle, count, types, false);
}

nvmlReturn_t our_nvmlDeviceGetCreatableVgpus(nvmlDevice_t handle, unsigned int *count,
                                             nvmlVgpuTypeId_t *types)
{
        return list_types(handle, count, types, true);
}

nvmlReturn_t our_nvmlDeviceGetActiveVgpus(nvmlDevice_t handle, unsigned int *count,
                                          nvmlVgpuInstance_t *instances)
{
        nvmlVgpuInstance_t ids[BOARD_INSTANCES_MAX];
        struct board_instance instance;
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);
        uint32_t cursor = 0;
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!count || (!instances && *count > 0))
                return NVML_ERROR_INVALID_ARGUMENT;

        while (n < BOARD_INSTANCES_MAX && view_next_instance(&instance, &cursor, device.index))
                ids[n++] = instance.id;
        r = answer_room(count, n);
        for (unsigned int i = 0; r == NVML_SUCCESS && i < n; i++)
                instances[i] = ids[i];
        return r;
}
