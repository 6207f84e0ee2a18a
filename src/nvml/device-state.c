/* SPDX-License-Identifier: Apache-2.0 */
/* What state a device is in: memory and utilization from the board, and what never changes. */
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
        struct board_device device;

        if (!view_is_substitute() || !view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetMemoryInfo)(handle, memory);
        if (!memory)
                return NVML_ERROR_INVALID_ARGUMENT;
        memory->total = device.memory_total;
        memory->used = device.memory_used;
        memory->free = device.memory_total - device.memory_used;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
        struct board_device device;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetMemoryInfo_v2)(handle, memory);
        if (!memory)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (memory->version != NVML_VERSION(nvmlMemory_v2_t, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (!view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetMemoryInfo_v2)(handle, memory);
        memory->total = device.memory_total;
        memory->reserved = 0;
        memory->used = device.memory_used;
        memory->free = device.memory_total - device.memory_used;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization)
{
        struct board_device device;

        if (!view_is_substitute() || !view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetUtilizationRates)(handle, utilization);
        if (!utilization)
                return NVML_ERROR_INVALID_ARGUMENT;
        utilization->gpu = device.utilization_gpu;
        utilization->memory = device.utilization_memory;
        return NVML_SUCCESS;
}

/* The board has no figures for the media engines: nothing of ours uses them. */
static nvmlReturn_t answer_idle(nvmlDevice_t handle, unsigned int *percent, unsigned int *period_us)
{
        struct board_device device;

        if (!percent || !period_us || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *percent = 0;
        *period_us = 100000;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetEncoderUtilization(nvmlDevice_t handle, unsigned int *percent,
                                                 unsigned int *period_us)
{
        return answer_idle(handle, percent, period_us);
}

nvmlReturn_t our_nvmlDeviceGetDecoderUtilization(nvmlDevice_t handle, unsigned int *percent,
                                                 unsigned int *period_us)
{
        return answer_idle(handle, percent, period_us);
}

nvmlReturn_t our_nvmlDeviceGetJpgUtilization(nvmlDevice_t handle, unsigned int *percent,
                                             unsigned int *period_us)
{
        return answer_idle(handle, percent, period_us);
}

nvmlReturn_t our_nvmlDeviceGetOfaUtilization(nvmlDevice_t handle, unsigned int *percent,
                                             unsigned int *period_us)
{
        return answer_idle(handle, percent, period_us);
}

static nvmlReturn_t answer_number(nvmlDevice_t handle, unsigned int *number, unsigned int value)
{
        struct board_device device;

        if (!number || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *number = value;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        return answer_number(handle, mode, NVML_FEATURE_ENABLED);
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

nvmlReturn_t our_nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t *state)
{
        return answer_number(handle, state, NVML_PSTATE_0);
}

nvmlReturn_t our_nvmlDeviceGetPowerState(nvmlDevice_t handle, nvmlPstates_t *state)
{
        return answer_number(handle, state, NVML_PSTATE_0);
}

nvmlReturn_t our_nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *current,
                                      unsigned int *pending)
{
        if (!pending || answer_number(handle, current, NVML_DEVICE_MIG_DISABLE) != NVML_SUCCESS)
                return NVML_ERROR_INVALID_ARGUMENT;
        *pending = NVML_DEVICE_MIG_DISABLE;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned int *count)
{
        return answer_number(handle, count, 0);
}

nvmlReturn_t our_nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int *flag)
{
        return answer_number(handle, flag, 0);
}

nvmlReturn_t our_nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned int index,
                                                     nvmlDevice_t *mig)
{
        struct board_device device;

        (void)index;
        return mig && view_device(&device, handle) ? NVML_ERROR_NOT_FOUND
                                                   : NVML_ERROR_INVALID_ARGUMENT;
}

/* Each field has its own result, so a client can read what there is. We have none of them. */
nvmlReturn_t our_nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t *values)
{
        struct board_device device;

        if (!values || count <= 0 || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        for (int i = 0; i < count; i++)
                values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        return NVML_SUCCESS;
}
