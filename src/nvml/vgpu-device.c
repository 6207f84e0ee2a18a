/* SPDX-License-Identifier: Apache-2.0 */
/* Tells of a device as a host of vGPUs: its modes, and its capabilities. */
#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle,
                                                 nvmlGpuVirtualizationMode_t *mode)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute() && !view_knows(handle))
                return NVML_REAL(nvmlDeviceGetVirtualizationMode)(handle, mode);
        r = view_device(&device, handle, mode);
        if (r == NVML_SUCCESS)
                *mode = (nvmlGpuVirtualizationMode_t)device.virtualization;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetHostVgpuMode(nvmlDevice_t handle, nvmlHostVgpuMode_t *mode)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, mode);

        if (r == NVML_SUCCESS)
                *mode = site.device.is_sriov ? NVML_HOST_VGPU_MODE_SRIOV
                                             : NVML_HOST_VGPU_MODE_NON_SRIOV;
        return r;
}

nvmlReturn_t our_nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t capability,
                                               unsigned int *flag)
{
        struct state_host host;

        if (!flag || capability >= NVML_VGPU_DRIVER_CAP_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (view_is_guest() || !state_read_host(view_state_page(), 0, &host))
                return NVML_ERROR_NOT_SUPPORTED;
        *flag = capability == NVML_VGPU_DRIVER_CAP_WARM_UPDATE ? host.can_warm_update
                                                               : host.can_mix_sizes;
        return NVML_SUCCESS;
}

_Static_assert((int)NVML_DEVICE_VGPU_CAP_COUNT == (int)STATE_CAPABILITIES,
               "the numbers are NVML's");

nvmlReturn_t our_nvmlDeviceGetVgpuCapabilities(nvmlDevice_t handle,
                                               nvmlDeviceVgpuCapability_t capability,
                                               unsigned int *value)
{
        struct state_device_detail detail;
        struct site site;
        nvmlReturn_t r;

        if (!value || capability >= NVML_DEVICE_VGPU_CAP_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = site_of_device(&site, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        if (!state_read_device_detail(site.state_page, site.device.index, &detail))
                return NVML_ERROR_NOT_SUPPORTED;
        *value = detail.capability[capability];
        return NVML_SUCCESS;
}

static nvmlReturn_t get_heterogeneous(const struct site *site, nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        if (mode->version != NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (site->is_heterogeneous == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        mode->mode = site->is_heterogeneous;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_t handle,
                                                    nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, true);

        if (r != NVML_SUCCESS)
                return r; /* before the pointer */
        return mode ? get_heterogeneous(&site, mode) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuHeterogeneousMode(nvmlGpuInstance_t handle,
                                                         nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, mode);

        return r == NVML_SUCCESS ? get_heterogeneous(&site, mode) : r;
}
