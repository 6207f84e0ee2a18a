/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_NVML_CALLS_H
#define LIB_NVML_CALLS_H

/*
 * The library calls these functions of NVML. Each row names the driver that introduced the function, as
 * far as this is known; R390 is the oldest driver that knows vGPUs. Our declarations give the pointers
 * their types.
 */

#include "abi/nvml-mig.h"
#include "abi/nvml-sensors.h"
#include "abi/nvml-vgpu-calls.h"

/* clang-format off */
#define NVML_CALLS(X)                                       \
        X(nvmlInit, "R285")                                 \
        X(nvmlInit_v2, "R319")                              \
        X(nvmlShutdown, "R285")                             \
        X(nvmlSystemGetDriverVersion, "R285")               \
        X(nvmlDeviceGetCount, "R285")                       \
        X(nvmlDeviceGetCount_v2, "R319")                    \
        X(nvmlDeviceGetHandleByIndex, "R285")               \
        X(nvmlDeviceGetHandleByIndex_v2, "R319")            \
        X(nvmlDeviceGetUUID, "R285")                        \
        X(nvmlDeviceGetName, "R285")                        \
        X(nvmlDeviceGetPciInfo_v2, "R285")                  \
        X(nvmlDeviceGetPciInfo_v3, "R390")                  \
        X(nvmlDeviceGetHostVgpuMode, "R450")                \
        X(nvmlDeviceGetVgpuCapabilities, "R525")            \
        X(nvmlDeviceSetVgpuCapabilities, "R550")            \
        X(nvmlDeviceGetSupportedVgpus, "R390")              \
        X(nvmlDeviceGetCreatableVgpus, "R390")              \
        X(nvmlDeviceGetActiveVgpus, "R390")                 \
        X(nvmlDeviceGetVgpuHeterogeneousMode, "R550")       \
        X(nvmlDeviceSetVgpuHeterogeneousMode, "R550")       \
        X(nvmlDeviceGetVgpuTypeSupportedPlacements, "R550") \
        X(nvmlDeviceGetVgpuTypeCreatablePlacements, "R550") \
        X(nvmlDeviceGetVgpuSchedulerCapabilities, "R530")   \
        X(nvmlDeviceGetVgpuSchedulerState, "R530")          \
        X(nvmlDeviceGetVgpuSchedulerState_v2, "R595")       \
        X(nvmlDeviceGetVgpuSchedulerLog, "R530")            \
        X(nvmlDeviceGetVgpuSchedulerLog_v2, "R595")         \
        X(nvmlDeviceSetVgpuSchedulerState, "R535")          \
        X(nvmlDeviceSetVgpuSchedulerState_v2, "R595")       \
        X(nvmlDeviceGetVgpuUtilization, "R390")             \
        X(nvmlDeviceGetVgpuInstancesUtilizationInfo, "R550") \
        X(nvmlDeviceGetVgpuProcessUtilization, "R390")      \
        X(nvmlDeviceGetVgpuProcessesUtilizationInfo, "R550") \
        X(nvmlDeviceGetVgpuMetadata, "R390")                \
        X(nvmlDeviceGetPgpuMetadataString, "R450")          \
        X(nvmlDeviceGetGpuInstanceProfileInfo, "R450")      \
        X(nvmlDeviceGetGpuInstances, "R450")                \
        X(nvmlDeviceGetGpuInstanceById, "R450")             \
        X(nvmlGpuInstanceGetInfo, "R450")                   \
        X(nvmlGpuInstanceGetCreatableVgpus, "R575")         \
        X(nvmlGpuInstanceGetActiveVgpus, "R575")            \
        X(nvmlGpuInstanceGetVgpuHeterogeneousMode, "R575")  \
        X(nvmlGpuInstanceSetVgpuHeterogeneousMode, "R575")  \
        X(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, "R575") \
        X(nvmlGpuInstanceGetVgpuSchedulerState, "R575")     \
        X(nvmlGpuInstanceGetVgpuSchedulerState_v2, "R595")  \
        X(nvmlGpuInstanceGetVgpuSchedulerLog, "R575")       \
        X(nvmlGpuInstanceGetVgpuSchedulerLog_v2, "R595")    \
        X(nvmlGpuInstanceSetVgpuSchedulerState, "R575")     \
        X(nvmlGpuInstanceSetVgpuSchedulerState_v2, "R595")  \
        X(nvmlVgpuTypeGetClass, "R390")                     \
        X(nvmlVgpuTypeGetName, "R390")                      \
        X(nvmlVgpuTypeGetLicense, "R390")                   \
        X(nvmlVgpuTypeGetGpuInstanceProfileId, "R455")      \
        X(nvmlVgpuTypeGetDeviceID, "R390")                  \
        X(nvmlVgpuTypeGetFramebufferSize, "R390")           \
        X(nvmlVgpuTypeGetNumDisplayHeads, "R390")           \
        X(nvmlVgpuTypeGetResolution, "R390")                \
        X(nvmlVgpuTypeGetFrameRateLimit, "R390")            \
        X(nvmlVgpuTypeGetMaxInstances, "R390")              \
        X(nvmlVgpuTypeGetMaxInstancesPerVm, "R410")         \
        X(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, "R575") \
        X(nvmlVgpuTypeGetBAR1Info, "R560")                  \
        X(nvmlVgpuTypeGetCapabilities, "R515")              \
        X(nvmlVgpuTypeGetGspHeapSize, "R550")               \
        X(nvmlVgpuTypeGetFbReservation, "R550")             \
        X(nvmlVgpuInstanceGetType, "R390")                  \
        X(nvmlVgpuInstanceGetPlacementId, "R550")           \
        X(nvmlVgpuInstanceGetGpuInstanceId, "R460")         \
        X(nvmlVgpuInstanceGetUUID, "R390")                  \
        X(nvmlVgpuInstanceGetVmID, "R390")                  \
        X(nvmlVgpuInstanceGetVmDriverVersion, "R390")       \
        X(nvmlVgpuInstanceGetMdevUUID, "R450")              \
        X(nvmlVgpuInstanceGetGpuPciId, "R510")              \
        X(nvmlVgpuInstanceGetFbUsage, "R390")               \
        X(nvmlVgpuInstanceGetRuntimeStateSize, "R565")      \
        X(nvmlVgpuInstanceGetFrameRateLimit, "R390")        \
        X(nvmlVgpuInstanceGetEccMode, "R450")               \
        X(nvmlVgpuInstanceGetEncoderCapacity, "R390")       \
        X(nvmlVgpuInstanceSetEncoderCapacity, "R390")       \
        X(nvmlVgpuInstanceGetEncoderStats, "R390")          \
        X(nvmlVgpuInstanceGetEncoderSessions, "R390")       \
        X(nvmlVgpuInstanceGetFBCStats, "R410")              \
        X(nvmlVgpuInstanceGetFBCSessions, "R410")           \
        X(nvmlVgpuInstanceGetLicenseStatus, "R390")         \
        X(nvmlVgpuInstanceGetLicenseInfo, "R495")           \
        X(nvmlVgpuInstanceGetLicenseInfo_v2, "R510")        \
        X(nvmlVgpuInstanceGetAccountingMode, "R410")        \
        X(nvmlVgpuInstanceGetAccountingPids, "R410")        \
        X(nvmlVgpuInstanceGetAccountingStats, "R410")       \
        X(nvmlVgpuInstanceClearAccountingPids, "R450")      \
        X(nvmlVgpuInstanceGetMetadata, "R390")              \
        X(nvmlGetVgpuCompatibility, "R390")                 \
        X(nvmlGetVgpuVersion, "R410")                       \
        X(nvmlSetVgpuVersion, "R410")                       \
        X(nvmlGetVgpuDriverCapabilities, "R525")            \
        X(nvmlDeviceGetMemoryInfo, "R285")                  \
        X(nvmlDeviceGetUtilizationRates, "R285")            \
        X(nvmlDeviceGetEncoderUtilization, "R340")          \
        X(nvmlDeviceGetDecoderUtilization, "R340")          \
        X(nvmlDeviceGetTemperature, "R285")                 \
        X(nvmlDeviceGetPowerUsage, "R285")                  \
        X(nvmlDeviceGetEnforcedPowerLimit, "R319")          \
        X(nvmlDeviceGetTotalEnergyConsumption, "R396")      \
        X(nvmlDeviceGetClockInfo, "R285")                   \
        X(nvmlDeviceGetTotalEccErrors, "R304")              \
        X(nvmlDeviceGetSupportedEventTypes, "R285")         \
        X(nvmlDeviceRegisterEvents, "R285")                 \
        X(nvmlEventSetCreate, "R285")                       \
        X(nvmlEventSetFree, "R285")                         \
        X(nvmlEventSetWait, "R285")                         \
        X(nvmlEventSetWait_v2, "R450")
/* clang-format on */

enum nvml_call {
#define X(name, since) NVML_CALL_##name,
        NVML_CALLS(X)
#undef X
                NVML_CALL_COUNT
};

/* NULL: this driver lacks it. */
struct nvml_calls {
#define X(name, since) __typeof__(name) *name;
        NVML_CALLS(X)
#undef X
};

#endif
