/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about one vGPU.
 *
 * Where NVML says "virtual machine", we have the tenant: its id is the user id of the
 * owner, its name (which only an unnamed function of NVML tells) that of the vGPU. The
 * guest driver is the host's, and loaded from the start.
 */
#include <stdio.h>

#include "nvml/answer.h"
#include "nvml/bus-id.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static nvmlReturn_t find(struct board_instance *ret_instance, nvmlVgpuInstance_t id,
                         bool has_pointers)
{
        if (!has_pointers || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        return view_instance(ret_instance, id) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t our_nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t id, char *text, unsigned int size,
                                         nvmlVgpuVmIdType_t *kind)
{
        char owner[NVML_VGPU_TEXT_BUFFER_SIZE];
        struct board_instance instance;
        nvmlReturn_t r;

        if (size < NVML_VGPU_TEXT_BUFFER_SIZE)
                return NVML_ERROR_INSUFFICIENT_SIZE; /* before everything else */
        r = find(&instance, id, text && kind);
        if (r != NVML_SUCCESS)
                return r;
        snprintf(owner, sizeof(owner), "%u", instance.tenant_uid);
        *kind = NVML_VGPU_VM_ID_DOMAIN_ID;
        return answer_text(text, size, owner);
}

nvmlReturn_t our_nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t id, char *text, unsigned int size)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, text);

        return r == NVML_SUCCESS ? answer_text(text, size, instance.uuid) : r;
}

/* Mediated devices are KVM's. */
nvmlReturn_t our_nvmlVgpuInstanceGetMdevUUID(nvmlVgpuInstance_t id, char *text, unsigned int size)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, text);

        (void)size;
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetVmDriverVersion(nvmlVgpuInstance_t id, char *text,
                                                    unsigned int size)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, text);

        return r == NVML_SUCCESS ? answer_text(text, size, view_driver_name()) : r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t id, unsigned long long *bytes)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = instance.frame_buffer_used;
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetType(nvmlVgpuInstance_t id, nvmlVgpuTypeId_t *type)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, type);

        if (r == NVML_SUCCESS)
                *type = instance.type_id;
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetFrameRateLimit(nvmlVgpuInstance_t id, unsigned int *fps)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, fps);

        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

/* That of the device, which only NVIDIA's library knows; simulated memory has none. */
nvmlReturn_t our_nvmlVgpuInstanceGetEccMode(nvmlVgpuInstance_t id, nvmlEnableState_t *mode)
{
        nvmlEnableState_t current = NVML_FEATURE_DISABLED, pending;
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, mode);

        if (r != NVML_SUCCESS)
                return r;
        if (NVML_REAL(nvmlDeviceGetEccMode)(view_get_handle(instance.device), &current, &pending) ==
            NVML_ERROR_NOT_SUPPORTED)
                return NVML_ERROR_NOT_SUPPORTED;
        *mode = current;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuInstanceGetGpuInstanceId(nvmlVgpuInstance_t id,
                                                  unsigned int *gpu_instance_id)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, gpu_instance_id);

        if (r == NVML_SUCCESS)
                *gpu_instance_id = NVML_INVALID_MIG_ID;
        return r;
}

/* A guest sees the device at the place where the host sees it. */
nvmlReturn_t our_nvmlVgpuInstanceGetGpuPciId(nvmlVgpuInstance_t id, char *text, unsigned int *size)
{
        char bus_id[BUS_ID_MAX];
        struct board_instance instance;
        struct board_device device;
        nvmlReturn_t r = find(&instance, id, text && size);

        if (r != NVML_SUCCESS)
                return r;
        if (!view_physical(&device, instance.device))
                return NVML_ERROR_GPU_IS_LOST;
        bus_id_format(bus_id, &device);
        r = answer_text(text, *size, bus_id);
        if (r == NVML_ERROR_INSUFFICIENT_SIZE)
                *size = sizeof("00000000:00:00.0");
        return r;
}

/* What a vGPU keeps beside its frame buffer lives in the driver; we add nothing to it. */
nvmlReturn_t our_nvmlVgpuInstanceGetRuntimeStateSize(nvmlVgpuInstance_t id,
                                                     nvmlVgpuRuntimeState_v1_t *state)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, true);

        if (r != NVML_SUCCESS)
                return r;
        if (!state)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (state->version != NVML_VERSION(nvmlVgpuRuntimeState_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        state->size = 0;
        return NVML_SUCCESS;
}
