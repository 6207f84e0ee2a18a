/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_VGPU_CALLS_H
#define ABI_NVML_VGPU_CALLS_H

/* The functions of NVML's vGPU interface; abi/nvml-vgpu.h has their types. */

#include "abi/nvml-vgpu.h"

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                             nvmlGpuVirtualizationMode_t *mode);
nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t device, nvmlHostVgpuMode_t *mode);
nvmlReturn_t nvmlDeviceSetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t mode);
nvmlReturn_t nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_t device,
                                                nvmlVgpuHeterogeneousMode_v1_t *mode);
nvmlReturn_t nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_t device,
                                                const nvmlVgpuHeterogeneousMode_v1_t *mode);
nvmlReturn_t nvmlVgpuInstanceGetPlacementId(nvmlVgpuInstance_t instance,
                                            nvmlVgpuPlacementId_v1_t *placement);
nvmlReturn_t nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_t device, nvmlVgpuTypeId_t type,
                                                      nvmlVgpuPlacementList_v2_t *list);
nvmlReturn_t nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_t device, nvmlVgpuTypeId_t type,
                                                      nvmlVgpuPlacementList_v2_t *list);
nvmlReturn_t nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t type, unsigned long long *bytes);
nvmlReturn_t nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t type, unsigned long long *bytes);
nvmlReturn_t nvmlVgpuInstanceGetRuntimeStateSize(nvmlVgpuInstance_t instance,
                                                 nvmlVgpuRuntimeState_v1_t *state);
nvmlReturn_t nvmlDeviceSetVgpuCapabilities(nvmlDevice_t device,
                                           nvmlDeviceVgpuCapability_t capability,
                                           nvmlEnableState_t state);
nvmlReturn_t nvmlDeviceVgpuForceGspUnload(nvmlDevice_t device);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t device,
                                                 nvmlGridLicensableFeatures_v1_t *features);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_v2_t *features);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_v3_t *features);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_t *features);
nvmlReturn_t nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t capability,
                                           unsigned int *flag);
nvmlReturn_t nvmlDeviceGetVgpuCapabilities(nvmlDevice_t device,
                                           nvmlDeviceVgpuCapability_t capability,
                                           unsigned int *value);
nvmlReturn_t nvmlDeviceGetSupportedVgpus(nvmlDevice_t device, unsigned int *count,
                                         nvmlVgpuTypeId_t *types);
nvmlReturn_t nvmlDeviceGetCreatableVgpus(nvmlDevice_t device, unsigned int *count,
                                         nvmlVgpuTypeId_t *types);
nvmlReturn_t nvmlVgpuTypeGetClass(nvmlVgpuTypeId_t type, char *text, unsigned int *size);
nvmlReturn_t nvmlVgpuTypeGetName(nvmlVgpuTypeId_t type, char *text, unsigned int *size);
nvmlReturn_t nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t type, unsigned int *profile);
nvmlReturn_t nvmlVgpuTypeGetDeviceID(nvmlVgpuTypeId_t type, unsigned long long *device_id,
                                     unsigned long long *subsystem_id);
nvmlReturn_t nvmlVgpuTypeGetFramebufferSize(nvmlVgpuTypeId_t type, unsigned long long *bytes);
nvmlReturn_t nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t type, unsigned int *heads);
nvmlReturn_t nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t type, unsigned int head, unsigned int *x,
                                       unsigned int *y);
nvmlReturn_t nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t type, char *text, unsigned int size);
nvmlReturn_t nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t type, unsigned int *fps);
nvmlReturn_t nvmlVgpuTypeGetMaxInstances(nvmlDevice_t device, nvmlVgpuTypeId_t type,
                                         unsigned int *count);
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerVm(nvmlVgpuTypeId_t type, unsigned int *count);
nvmlReturn_t nvmlVgpuTypeGetBAR1Info(nvmlVgpuTypeId_t type, nvmlVgpuTypeBar1Info_v1_t *info);
nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_t device, unsigned int *count,
                                      nvmlVgpuInstance_t *instances);
nvmlReturn_t nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t instance, char *text, unsigned int size,
                                     nvmlVgpuVmIdType_t *kind);
nvmlReturn_t nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t instance, char *text, unsigned int size);
nvmlReturn_t nvmlVgpuInstanceGetVmDriverVersion(nvmlVgpuInstance_t instance, char *text,
                                                unsigned int size);
nvmlReturn_t nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t instance, unsigned long long *bytes);
nvmlReturn_t nvmlVgpuInstanceGetLicenseStatus(nvmlVgpuInstance_t instance, unsigned int *licensed);
nvmlReturn_t nvmlVgpuInstanceGetType(nvmlVgpuInstance_t instance, nvmlVgpuTypeId_t *type);
nvmlReturn_t nvmlVgpuInstanceGetFrameRateLimit(nvmlVgpuInstance_t instance, unsigned int *fps);
nvmlReturn_t nvmlVgpuInstanceGetEccMode(nvmlVgpuInstance_t instance, nvmlEnableState_t *mode);
nvmlReturn_t nvmlVgpuInstanceGetEncoderCapacity(nvmlVgpuInstance_t instance, unsigned int *percent);
nvmlReturn_t nvmlVgpuInstanceSetEncoderCapacity(nvmlVgpuInstance_t instance, unsigned int percent);
nvmlReturn_t nvmlVgpuInstanceGetEncoderStats(nvmlVgpuInstance_t instance, unsigned int *sessions,
                                             unsigned int *fps, unsigned int *latency_us);
nvmlReturn_t nvmlVgpuInstanceGetEncoderSessions(nvmlVgpuInstance_t instance, unsigned int *count,
                                                nvmlEncoderSessionInfo_t *sessions);
nvmlReturn_t nvmlVgpuInstanceGetFBCStats(nvmlVgpuInstance_t instance, nvmlFBCStats_t *stats);
nvmlReturn_t nvmlVgpuInstanceGetFBCSessions(nvmlVgpuInstance_t instance, unsigned int *count,
                                            nvmlFBCSessionInfo_t *sessions);
nvmlReturn_t nvmlVgpuInstanceGetGpuInstanceId(nvmlVgpuInstance_t instance,
                                              unsigned int *gpu_instance_id);
nvmlReturn_t nvmlVgpuInstanceGetGpuPciId(nvmlVgpuInstance_t instance, char *text,
                                         unsigned int *size);
nvmlReturn_t nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t type, nvmlVgpuCapability_t capability,
                                         unsigned int *flag);
nvmlReturn_t nvmlVgpuInstanceGetMdevUUID(nvmlVgpuInstance_t instance, char *text,
                                         unsigned int size);
nvmlReturn_t nvmlGpuInstanceGetCreatableVgpus(nvmlGpuInstance_t gpu_instance,
                                              nvmlVgpuTypeIdInfo_v1_t *types);
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerGpuInstance(nvmlVgpuTypeMaxInstance_v1_t *maximum);
nvmlReturn_t nvmlGpuInstanceGetActiveVgpus(nvmlGpuInstance_t gpu_instance,
                                           nvmlActiveVgpuInstanceInfo_v1_t *list);
nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState(nvmlGpuInstance_t gpu_instance,
                                                  nvmlVgpuSchedulerState_v1_t *state);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState(nvmlGpuInstance_t gpu_instance,
                                                  nvmlVgpuSchedulerStateInfo_v1_t *state);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog(nvmlGpuInstance_t gpu_instance,
                                                nvmlVgpuSchedulerLogInfo_v1_t *log);
nvmlReturn_t
nvmlGpuInstanceGetVgpuTypeCreatablePlacements(nvmlGpuInstance_t gpu_instance,
                                              nvmlVgpuCreatablePlacementInfo_v1_t *info);
nvmlReturn_t nvmlGpuInstanceGetVgpuHeterogeneousMode(nvmlGpuInstance_t gpu_instance,
                                                     nvmlVgpuHeterogeneousMode_v1_t *mode);
nvmlReturn_t nvmlGpuInstanceSetVgpuHeterogeneousMode(nvmlGpuInstance_t gpu_instance,
                                                     const nvmlVgpuHeterogeneousMode_v1_t *mode);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerState_v2(nvmlDevice_t device,
                                                nvmlVgpuSchedulerStateInfo_v2_t *state);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState_v2(nvmlGpuInstance_t gpu_instance,
                                                     nvmlVgpuSchedulerStateInfo_v2_t *state);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog_v2(nvmlDevice_t device,
                                              nvmlVgpuSchedulerLogInfo_v2_t *log);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog_v2(nvmlGpuInstance_t gpu_instance,
                                                   nvmlVgpuSchedulerLogInfo_v2_t *log);
nvmlReturn_t nvmlDeviceSetVgpuSchedulerState_v2(nvmlDevice_t device,
                                                nvmlVgpuSchedulerState_v2_t *state);
nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState_v2(nvmlGpuInstance_t gpu_instance,
                                                     nvmlVgpuSchedulerState_v2_t *state);
nvmlReturn_t nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t instance, nvmlVgpuMetadata_t *metadata,
                                         unsigned int *size);
nvmlReturn_t nvmlDeviceGetVgpuMetadata(nvmlDevice_t device, nvmlVgpuPgpuMetadata_t *metadata,
                                       unsigned int *size);
nvmlReturn_t nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *vgpu, nvmlVgpuPgpuMetadata_t *pgpu,
                                      nvmlVgpuPgpuCompatibility_t *compatibility);
nvmlReturn_t nvmlDeviceGetPgpuMetadataString(nvmlDevice_t device, char *text, unsigned int *size);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_t device, nvmlVgpuSchedulerLog_t *log);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerState(nvmlDevice_t device,
                                             nvmlVgpuSchedulerGetState_t *state);
nvmlReturn_t nvmlDeviceSetVgpuSchedulerState(nvmlDevice_t device,
                                             nvmlVgpuSchedulerSetState_t *state);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_t device,
                                                    nvmlVgpuSchedulerCapabilities_t *capabilities);
nvmlReturn_t nvmlGetVgpuVersion(nvmlVgpuVersion_t *supported, nvmlVgpuVersion_t *current);
nvmlReturn_t nvmlSetVgpuVersion(nvmlVgpuVersion_t *range);
nvmlReturn_t nvmlDeviceGetVgpuUtilization(nvmlDevice_t device, unsigned long long last_seen_us,
                                          nvmlValueType_t *value_type, unsigned int *count,
                                          nvmlVgpuInstanceUtilizationSample_t *samples);
nvmlReturn_t nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_t device,
                                                       nvmlVgpuInstancesUtilizationInfo_v1_t *info);
nvmlReturn_t nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t device,
                                                 unsigned long long last_seen_us,
                                                 unsigned int *count,
                                                 nvmlVgpuProcessUtilizationSample_t *samples);
nvmlReturn_t nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_t device,
                                                       nvmlVgpuProcessesUtilizationInfo_v1_t *info);
nvmlReturn_t nvmlVgpuInstanceGetAccountingMode(nvmlVgpuInstance_t instance,
                                               nvmlEnableState_t *mode);
nvmlReturn_t nvmlVgpuInstanceGetAccountingPids(nvmlVgpuInstance_t instance, unsigned int *count,
                                               unsigned int *pids);
nvmlReturn_t nvmlVgpuInstanceGetAccountingStats(nvmlVgpuInstance_t instance, unsigned int pid,
                                                nvmlAccountingStats_t *stats);
nvmlReturn_t nvmlVgpuInstanceClearAccountingPids(nvmlVgpuInstance_t instance);
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo_v2(nvmlVgpuInstance_t instance,
                                               nvmlVgpuLicenseInfo_t *info);
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo(nvmlVgpuInstance_t instance,
                                            nvmlVgpuLicenseInfo_v1_t *info);

#endif
