/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the state of a device: memory and utilization from the state page, and values that never change. */
#include <stddef.h>
#include <unistd.h>

#include "nvml/compute-instance.h"
#include "nvml/library.h"
#include "nvml/memory-limit.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* Of a device; of a MIG device that of its GPU instance, with what the vGPUs in it use. */
static nvmlReturn_t get_memory(nvmlDevice_t handle, struct state_device *ret_device)
{
        struct view_instance instance;
        struct compute_instance mig;
        uint32_t cursor = 0;

        if (!compute_instance_find_mig(&mig, handle))
                return view_device(ret_device, handle, true);
        *ret_device = (struct state_device){ .memory_total = mig.part.memory_total };
        while (view_next_instance(&instance, &cursor, mig.record.device))
                if (instance.value.gpu_instance == mig.record.gpu_instance)
                        ret_device->memory_used += instance.value.frame_buffer_used;
        return mig.device.is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetMemoryInfo)(handle, memory);
        r = memory ? get_memory(handle, &device) : NVML_ERROR_INVALID_ARGUMENT;
        if (r != NVML_SUCCESS)
                return r;
        memory->total = device.memory_total;
        memory->used = device.memory_used + device.memory_reserved;
        memory->free = memory->total - memory->used;
        return NVML_SUCCESS;
}

/* Within a limit it is the memory; what the device lacks of it is used, by others. */
static void apply_limit(nvmlMemory_v2_t *memory, uint32_t device)
{
        uint64_t total = memory_limit_get_own(device, memory->total);

        if (total == memory->total)
                return;
        memory->total = total;
        memory->reserved = 0;
        if (memory->free > total)
                memory->free = total;
        memory->used = total - memory->free;
}

/* Here what is reserved is apart from what is used. */
nvmlReturn_t our_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetMemoryInfo_v2)(handle, memory);
        if (!memory)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (memory->version != NVML_VERSION(nvmlMemory_v2_t, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = get_memory(handle, &device);
        if (r != NVML_SUCCESS)
                return r;
        memory->total = device.memory_total;
        memory->reserved = device.memory_reserved;
        memory->used = device.memory_used;
        memory->free = device.memory_total - device.memory_reserved - device.memory_used;
        if (!view_is_guest() && view_knows(handle))
                apply_limit(memory, device.index);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetUtilizationRates)(handle, utilization);
        r = view_whole_device(&device, handle, utilization);
        if (r != NVML_SUCCESS)
                return r;
        utilization->gpu = device.utilization_gpu;
        utilization->memory = device.utilization_memory;
        return NVML_SUCCESS;
}

/* The manager's sampling period. */
#define PERIOD_US 100000

static nvmlReturn_t answer_engine(nvmlDevice_t handle, unsigned int *percent,
                                  unsigned int *period_us, size_t offset)
{
        struct state_device device;
        nvmlReturn_t r = view_whole_device(&device, handle, percent && period_us);

        if (r != NVML_SUCCESS)
                return r;
        *percent = *(const uint32_t *)(const void *)((const char *)&device + offset);
        *period_us = PERIOD_US;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetEncoderUtilization(nvmlDevice_t handle, unsigned int *percent,
                                                 unsigned int *period_us)
{
        return answer_engine(handle, percent, period_us,
                             offsetof(struct state_device, utilization_encoder));
}

nvmlReturn_t our_nvmlDeviceGetDecoderUtilization(nvmlDevice_t handle, unsigned int *percent,
                                                 unsigned int *period_us)
{
        return answer_engine(handle, percent, period_us,
                             offsetof(struct state_device, utilization_decoder));
}

nvmlReturn_t our_nvmlDeviceGetJpgUtilization(nvmlDevice_t handle, unsigned int *percent,
                                             unsigned int *period_us)
{
        return answer_engine(handle, percent, period_us,
                             offsetof(struct state_device, utilization_jpeg));
}

nvmlReturn_t our_nvmlDeviceGetOfaUtilization(nvmlDevice_t handle, unsigned int *percent,
                                             unsigned int *period_us)
{
        return answer_engine(handle, percent, period_us,
                             offsetof(struct state_device, utilization_ofa));
}

static nvmlReturn_t answer_number(nvmlDevice_t handle, unsigned int *number, unsigned int value)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, number);

        if (r != NVML_SUCCESS)
                return r;
        *number = value;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        return answer_number(handle, mode, NVML_FEATURE_ENABLED);
}

/* No simulated driver is torn down, and a guest may not change its device: only the mode in force can be set. */
nvmlReturn_t our_nvmlDeviceSetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t mode)
{
        nvmlEnableState_t current;
        nvmlReturn_t r;

        if (mode > NVML_FEATURE_ENABLED)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = library_has_real() ? NVML_REAL(nvmlDeviceGetPersistenceMode)(handle, &current)
                               : our_nvmlDeviceGetPersistenceMode(handle, &current);
        if (r != NVML_SUCCESS)
                return r;
        if (geteuid() != 0)
                return NVML_ERROR_NO_PERMISSION;
        return current == mode ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlDeviceGetDisplayMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        return answer_number(handle, mode, NVML_FEATURE_DISABLED);
}

nvmlReturn_t our_nvmlDeviceGetDisplayActive(nvmlDevice_t handle, nvmlEnableState_t *active)
{
        return answer_number(handle, active, NVML_FEATURE_DISABLED);
}

nvmlReturn_t our_nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t *mode)
{
        return answer_number(handle, mode, NVML_COMPUTEMODE_DEFAULT);
}
