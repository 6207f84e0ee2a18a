/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about a vGPU type.
 *
 * Types are on the board. The order of checks is that of NVIDIA's library where it was seen.
 */
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/vgpu-type.h"
#include "nvml/view.h"

struct found_type {
        struct board_type type;
        uint32_t slot;
};

static nvmlReturn_t find_type(struct found_type *ret_found, nvmlVgpuTypeId_t id, bool has_pointers)
{
        if (!has_pointers || id == 0 || !board_find_type(view_board(), id, &ret_found->slot) ||
            !board_read_type(view_board(), ret_found->slot, &ret_found->type))
                return NVML_ERROR_INVALID_ARGUMENT;
        return NVML_SUCCESS;
}

static nvmlReturn_t read_text(struct board_type_text *ret_text, const struct found_type *found)
{
        return board_read_type_text(view_board(), found->slot, ret_text) ? NVML_SUCCESS
                                                                         : NVML_ERROR_UNKNOWN;
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
        struct board_type_text found_text;
        struct found_type found;
        nvmlReturn_t r = find_named(&found, id, text, size, 1);

        if (r == NVML_SUCCESS)
                r = read_text(&found_text, &found);
        if (r != NVML_SUCCESS)
                return r;
        r = answer_text(text, *size, found_text.class);
        if (r == NVML_ERROR_INSUFFICIENT_SIZE)
                *size = NVML_VGPU_NAME_BUFFER_SIZE;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetName(nvmlVgpuTypeId_t id, char *text, unsigned int *size)
{
        struct board_type_text found_text;
        struct found_type found;
        nvmlReturn_t r = find_named(&found, id, text, size, NVML_VGPU_NAME_BUFFER_SIZE);

        if (r == NVML_SUCCESS)
                r = read_text(&found_text, &found);
        return r == NVML_SUCCESS ? answer_text(text, *size, found_text.name) : r;
}

nvmlReturn_t our_nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t id, char *text, unsigned int size)
{
        struct board_type_text found_text;
        struct found_type found;
        nvmlReturn_t r;

        if (!text || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (size < NVML_GRID_LICENSE_BUFFER_SIZE)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        r = find_type(&found, id, true);
        if (r == NVML_SUCCESS)
                r = read_text(&found_text, &found);
        return r == NVML_SUCCESS ? answer_text(text, size, found_text.licence) : r;
}

nvmlReturn_t our_nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t id, unsigned int *profile)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, profile);

        if (r == NVML_SUCCESS)
                *profile = found.type.profile_id;
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
        *device_id = found.type.pci_device_id >> 16;
        *subsystem_id = found.type.pci_subsystem_id;
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

nvmlReturn_t our_nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = found.type.gsp_heap;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = found.type.reservation;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t id, unsigned int *heads)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, heads);

        if (r == NVML_SUCCESS)
                *heads = found.type.n_heads;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t id, unsigned int head, unsigned int *x,
                                           unsigned int *y)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, x && y);

        if (r != NVML_SUCCESS)
                return r;
        if (head >= found.type.n_heads)
                return NVML_ERROR_INVALID_ARGUMENT;
        *x = found.type.width;
        *y = found.type.height;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t id, unsigned int *fps)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, fps);

        if (r != NVML_SUCCESS)
                return r;
        if (found.type.frame_rate_limit == 0)
                return NVML_ERROR_NOT_SUPPORTED;
        *fps = found.type.frame_rate_limit;
        return NVML_SUCCESS;
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
                *count = found.type.max_instances_vm;
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
        if (r != NVML_SUCCESS)
                return r;
        if (found.type.max_instances_gpu_instance == 0)
                return NVML_ERROR_NOT_SUPPORTED; /* not backed by MIG */
        maximum->maxInstancePerGI = found.type.max_instances_gpu_instance;
        return NVML_SUCCESS;
}

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
                info->bar1Size = found.type.bar1 >> 20;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t id, nvmlVgpuCapability_t capability,
                                             unsigned int *flag)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, flag && capability < NVML_VGPU_CAP_COUNT);

        if (r == NVML_SUCCESS)
                *flag = found.type.capabilities >> capability & 1;
        return r;
}
