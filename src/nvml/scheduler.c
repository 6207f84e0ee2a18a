/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of a device, in both generations of its calls. The manager leaves time to the
 * driver: best effort, without parameters, and nothing to log.
 */
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static nvmlReturn_t find(nvmlDevice_t handle, const void *pointer)
{
        struct board_device device;

        return pointer ? view_host_device(&device, handle) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t
our_nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_t handle,
                                           nvmlVgpuSchedulerCapabilities_t *capabilities)
{
        nvmlReturn_t r = find(handle, capabilities);

        if (r == NVML_SUCCESS)
                *capabilities = (nvmlVgpuSchedulerCapabilities_t){
                        .supportedSchedulers = { NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT },
                };
        return r;
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerState(nvmlDevice_t handle,
                                                 nvmlVgpuSchedulerGetState_t *state)
{
        nvmlReturn_t r = find(handle, state);

        if (r == NVML_SUCCESS)
                *state = (nvmlVgpuSchedulerGetState_t){
                        .schedulerPolicy = NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT,
                        .arrMode = NVML_VGPU_SCHEDULER_ARR_DISABLE,
                };
        return r;
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerState_v2(nvmlDevice_t handle,
                                                    nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        nvmlReturn_t r = find(handle, state);

        if (r == NVML_SUCCESS)
                *state = (nvmlVgpuSchedulerStateInfo_v2_t){
                        .engineId = state->engineId,
                        .schedulerPolicy = NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT,
                };
        return r;
}

/* Entries beyond entriesCount are the caller's: the log is 10 kB and asked for often. */
nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_t handle, nvmlVgpuSchedulerLog_t *log)
{
        nvmlReturn_t r = find(handle, log);

        if (r != NVML_SUCCESS)
                return r;
        log->engineId = NVML_VGPU_SCHEDULER_ENGINE_TYPE_GRAPHICS;
        log->schedulerPolicy = NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT;
        log->arrMode = NVML_VGPU_SCHEDULER_ARR_DISABLE;
        log->schedulerParams = (nvmlVgpuSchedulerParams_t){ 0 };
        log->entriesCount = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerLog_v2(nvmlDevice_t handle,
                                                  nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        nvmlReturn_t r = find(handle, log);

        if (r != NVML_SUCCESS)
                return r;
        log->schedulerPolicy = NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT;
        log->avgFactor = 0;
        log->timeslice = 0;
        log->entriesCount = 0;
        return NVML_SUCCESS;
}

/* A policy can be set only while the device has no vGPU: by contract not IN_USE but this. */
static nvmlReturn_t set_policy(nvmlDevice_t handle, const void *state, unsigned int policy)
{
        struct board_instance instance;
        struct board_device device;
        uint32_t cursor = 0;
        nvmlReturn_t r = view_host_device(&device, handle);

        if (!state)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (r != NVML_SUCCESS)
                return r;
        if (policy > NVML_VGPU_SCHEDULER_POLICY_FIXED_SHARE)
                return NVML_ERROR_INVALID_ARGUMENT;
        return view_next_instance(&instance, &cursor, device.index) ? NVML_ERROR_NOT_SUPPORTED
                                                                    : answer_change();
}

nvmlReturn_t our_nvmlDeviceSetVgpuSchedulerState(nvmlDevice_t handle,
                                                 nvmlVgpuSchedulerSetState_t *state)
{
        return set_policy(handle, state, state ? state->schedulerPolicy : 0);
}

nvmlReturn_t our_nvmlDeviceSetVgpuSchedulerState_v2(nvmlDevice_t handle,
                                                    nvmlVgpuSchedulerState_v2_t *state)
{
        return set_policy(handle, state, state ? state->schedulerPolicy : 0);
}
