/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vGPUs inside of GPU instances (MIG): there are none of ours. A handle of a GPU instance is
 * NVIDIA's, so the questions go to its library where there is one.
 */
#include "nvml/library.h"
#include "nvml/slots.h"

/* NULL first, the struct's version second, then: not on this host. */
static nvmlReturn_t refuse(nvmlGpuInstance_t gpu_instance, const void *pointer,
                           unsigned int version, unsigned int wanted)
{
        if (!gpu_instance || !pointer)
                return NVML_ERROR_INVALID_ARGUMENT;
        return version == wanted ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

nvmlReturn_t our_nvmlGpuInstanceGetCreatableVgpus(nvmlGpuInstance_t gpu_instance,
                                                  nvmlVgpuTypeIdInfo_v1_t *types)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetCreatableVgpus)(gpu_instance, types);
        return refuse(gpu_instance, types, types ? types->version : 0,
                      NVML_VERSION(nvmlVgpuTypeIdInfo_v1_t, 1));
}

nvmlReturn_t our_nvmlGpuInstanceGetActiveVgpus(nvmlGpuInstance_t gpu_instance,
                                               nvmlActiveVgpuInstanceInfo_v1_t *list)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetActiveVgpus)(gpu_instance, list);
        return refuse(gpu_instance, list, list ? list->version : 0,
                      NVML_VERSION(nvmlActiveVgpuInstanceInfo_v1_t, 1));
}

nvmlReturn_t our_nvmlGpuInstanceSetVgpuSchedulerState(nvmlGpuInstance_t gpu_instance,
                                                      nvmlVgpuSchedulerState_v1_t *state)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceSetVgpuSchedulerState)(gpu_instance, state);
        return refuse(gpu_instance, state, state ? state->version : 0,
                      NVML_VERSION(nvmlVgpuSchedulerState_v1_t, 1));
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerState(nvmlGpuInstance_t gpu_instance,
                                                      nvmlVgpuSchedulerStateInfo_v1_t *state)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetVgpuSchedulerState)(gpu_instance, state);
        return refuse(gpu_instance, state, state ? state->version : 0,
                      NVML_VERSION(nvmlVgpuSchedulerStateInfo_v1_t, 1));
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerLog(nvmlGpuInstance_t gpu_instance,
                                                    nvmlVgpuSchedulerLogInfo_v1_t *log)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetVgpuSchedulerLog)(gpu_instance, log);
        return refuse(gpu_instance, log, log ? log->version : 0,
                      NVML_VERSION(nvmlVgpuSchedulerLogInfo_v1_t, 1));
}

nvmlReturn_t
our_nvmlGpuInstanceGetVgpuTypeCreatablePlacements(nvmlGpuInstance_t gpu_instance,
                                                  nvmlVgpuCreatablePlacementInfo_v1_t *info)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetVgpuTypeCreatablePlacements)(gpu_instance, info);
        return refuse(gpu_instance, info, info ? info->version : 0,
                      NVML_VERSION(nvmlVgpuCreatablePlacementInfo_v1_t, 1));
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuHeterogeneousMode(nvmlGpuInstance_t gpu_instance,
                                                         nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetVgpuHeterogeneousMode)(gpu_instance, mode);
        return refuse(gpu_instance, mode, mode ? mode->version : 0,
                      NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1));
}

nvmlReturn_t our_nvmlGpuInstanceSetVgpuHeterogeneousMode(nvmlGpuInstance_t gpu_instance,
                                                         const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceSetVgpuHeterogeneousMode)(gpu_instance, mode);
        return refuse(gpu_instance, mode, mode ? mode->version : 0,
                      NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1));
}

/* The second generation has no version word. */

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerState_v2(nvmlGpuInstance_t gpu_instance,
                                                         nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetVgpuSchedulerState_v2)(gpu_instance, state);
        return refuse(gpu_instance, state, 0, 0);
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerLog_v2(nvmlGpuInstance_t gpu_instance,
                                                       nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceGetVgpuSchedulerLog_v2)(gpu_instance, log);
        return refuse(gpu_instance, log, 0, 0);
}

nvmlReturn_t our_nvmlGpuInstanceSetVgpuSchedulerState_v2(nvmlGpuInstance_t gpu_instance,
                                                         nvmlVgpuSchedulerState_v2_t *state)
{
        if (library_has_real())
                return NVML_REAL(nvmlGpuInstanceSetVgpuSchedulerState_v2)(gpu_instance, state);
        return refuse(gpu_instance, state, 0, 0);
}
