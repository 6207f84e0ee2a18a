/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about a vGPU type.
 *
 * A type is looked for on the devices of the board: there is no type without a device
 * that offers it. The order of checks is that of NVIDIA's library where it was seen.
 */
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/vgpu-type.h"
#include "nvml/view.h"

struct found_type {
        struct vgpu_type type;
        struct board_device device;
};

static nvmlReturn_t find_type(struct found_type *ret_found, nvmlVgpuTypeId_t id, bool has_pointers)
{
        if (!has_pointers || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        for (uint32_t i = 0; view_physical(&ret_found->device, i); i++)
                if (vgpu_type_find(&ret_found->type, &ret_found->device, id))
                        return NVML_SUCCESS;
        return NVML_ERROR_INVALID_ARGUMENT;
}

/* Type 0, then the size, of which @least must be there, then the buffer, then the type. */
static nvmlReturn_t find_named(struct found_type *ret_found, nvmlVgpuTypeId_t id, const char *text,
                               unsigned int *size, unsigned int least)
{
        if (id == 0 || !size)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (*size < least) {
                *size = NVML_VGPU_NAME_BUFFER_SIZE;
                return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        return find_type(ret_found, id, text);
}

/* nvidia-smi gives 16 bytes for the class, so we insist on no more than it needs. */
nvmlReturn_t our_nvmlVgpuTypeGetClass(nvmlVgpuTypeId_t id, char *text, unsigned int *size)
{
        static const char class[] = "Compute";
        struct found_type found;
        nvmlReturn_t r = find_named(&found, id, text, size, sizeof(class));

        return r == NVML_SUCCESS ? answer_text(text, *size, class) : r;
}

nvmlReturn_t our_nvmlVgpuTypeGetName(nvmlVgpuTypeId_t id, char *text, unsigned int *size)
{
        struct found_type found;
        nvmlReturn_t r = find_named(&found, id, text, size, NVML_VGPU_NAME_BUFFER_SIZE);

        if (r == NVML_SUCCESS)
                vgpu_type_format_name(text, &found.type, &found.device);
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t id, char *text, unsigned int size)
{
        struct found_type found;
        nvmlReturn_t r;

        if (!text || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (size < NVML_GRID_LICENSE_BUFFER_SIZE)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        r = find_type(&found, id, true);
        return r == NVML_SUCCESS ? answer_text(text, size, "OpenVGPU," OPENVGPU_VERSION) : r;
}

nvmlReturn_t our_nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t id, unsigned int *profile)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, profile);

        if (r == NVML_SUCCESS)
                *profile = NVML_INVALID_GPU_INSTANCE_PROFILE_ID; /* shares time, not slices */
        return r;
}

/* The device's number without the vendor's: that is what nvidia-smi puts the vendor's behind. */
nvmlReturn_t our_nvmlVgpuTypeGetDeviceID(nvmlVgpuTypeId_t id, unsigned long long *device_id,
                                         unsigned long long *subsystem_id)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, device_id && subsystem_id);

        if (r != NVML_SUCCESS)
                return r;
        *device_id = found.device.pci_device_id >> 16;
        *subsystem_id = found.device.pci_subsystem_id;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetFramebufferSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = found.type.frame_buffer;
        return r;
}

/* Nothing is set aside beside the frame buffer. */
nvmlReturn_t our_nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = 0;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        return our_nvmlVgpuTypeGetGspHeapSize(id, bytes);
}

/* One head, as NVIDIA's types for compute: a client that loops over heads finds one. */
nvmlReturn_t our_nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t id, unsigned int *heads)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, heads);

        if (r == NVML_SUCCESS)
                *heads = 1;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t id, unsigned int head, unsigned int *x,
                                           unsigned int *y)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, x && y && head == 0);

        if (r != NVML_SUCCESS)
                return r;
        *x = 3840;
        *y = 2400;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t id, unsigned int *fps)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, fps);

        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r; /* there is no limiter */
}

nvmlReturn_t our_nvmlVgpuTypeGetMaxInstances(nvmlDevice_t handle, nvmlVgpuTypeId_t id,
                                             unsigned int *count)
{
        struct board_device device;
        struct vgpu_type type;
        nvmlReturn_t r = view_host_device(&device, handle);

        if (r != NVML_SUCCESS)
                return r;
        if (!count || !vgpu_type_find(&type, &device, id))
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = type.max_instances;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetMaxInstancesPerVm(nvmlVgpuTypeId_t id, unsigned int *count)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, count);

        if (r == NVML_SUCCESS)
                *count = found.type.max_instances; /* a tenant may hold all of them */
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetMaxInstancesPerGpuInstance(nvmlVgpuTypeMaxInstance_v1_t *maximum)
{
        struct found_type found;
        nvmlReturn_t r;

        if (!maximum || maximum->vgpuTypeId == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (maximum->version != NVML_VERSION(nvmlVgpuTypeMaxInstance_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = find_type(&found, maximum->vgpuTypeId, true);
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED
                                 : r; /* no type of ours is backed by MIG */
}

/* A vGPU's window is as large as its frame buffer, as on NVIDIA's boards with a resizable one. */
nvmlReturn_t our_nvmlVgpuTypeGetBAR1Info(nvmlVgpuTypeId_t id, nvmlVgpuTypeBar1Info_v1_t *info)
{
        struct found_type found;
        nvmlReturn_t r;

        if (!info || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlVgpuTypeBar1Info_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = find_type(&found, id, true);
        if (r == NVML_SUCCESS)
                info->bar1Size = found.type.frame_buffer >> 20;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t id, nvmlVgpuCapability_t capability,
                                             unsigned int *flag)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, flag && capability < NVML_VGPU_CAP_COUNT);

        if (r == NVML_SUCCESS)
                *flag = 0; /* peer and direct access cross vGPUs; no type excludes another */
        return r;
}
