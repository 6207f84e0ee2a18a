/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_VGPU_H
#define ABI_NVML_VGPU_H

/*
 * The vGPU part of the NVML interface: types, instances, placement, utilization,
 * accounting, licence, scheduler, migration. See abi/nvml.h for the conventions.
 *
 * Struct types carry their generation where the interface has more than one alive
 * or a version word; functions name the layout that their symbol has.
 */

#include "abi/nvml.h"

typedef unsigned int nvmlVgpuTypeId_t;
typedef unsigned int nvmlVgpuInstance_t; /* never 0; the whole unsigned range is in use */

typedef enum {
        NVML_HOST_VGPU_MODE_NON_SRIOV = 0,
        NVML_HOST_VGPU_MODE_SRIOV = 1,
} nvmlHostVgpuMode_t;

typedef enum {
        NVML_VGPU_VM_ID_DOMAIN_ID = 0, /* a number as text */
        NVML_VGPU_VM_ID_UUID = 1,
} nvmlVgpuVmIdType_t;

typedef enum {
        NVML_VGPU_INSTANCE_GUEST_INFO_STATE_UNINITIALIZED = 0,
        NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED = 1,
} nvmlVgpuGuestInfoState_t;

typedef enum {
        NVML_GRID_LICENSE_FEATURE_CODE_UNKNOWN = 0,
        NVML_GRID_LICENSE_FEATURE_CODE_VGPU = 1,
        NVML_GRID_LICENSE_FEATURE_CODE_VWORKSTATION = 2,
        NVML_GRID_LICENSE_FEATURE_CODE_GAMING = 3,
        NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE = 4,
} nvmlGridLicenseFeatureCode_t;

typedef enum {
        NVML_VGPU_CAP_NVLINK_P2P = 0,
        NVML_VGPU_CAP_GPUDIRECT = 1,
        NVML_VGPU_CAP_MULTI_VGPU_EXCLUSIVE = 2,
        NVML_VGPU_CAP_EXCLUSIVE_TYPE = 3,
        NVML_VGPU_CAP_EXCLUSIVE_SIZE = 4,
        NVML_VGPU_CAP_COUNT = 5,
} nvmlVgpuCapability_t;

typedef enum {
        NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU = 0,
        NVML_VGPU_DRIVER_CAP_WARM_UPDATE = 1,
        NVML_VGPU_DRIVER_CAP_COUNT = 2,
} nvmlVgpuDriverCapability_t;

typedef enum {
        NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU = 0,
        NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_PROFILES = 1,
        NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_SIZES = 2,
        NVML_DEVICE_VGPU_CAP_READ_DEVICE_BUFFER_BW = 3,  /* MB/s */
        NVML_DEVICE_VGPU_CAP_WRITE_DEVICE_BUFFER_BW = 4, /* MB/s */
        NVML_DEVICE_VGPU_CAP_DEVICE_STREAMING = 5,
        NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU = 6,
        NVML_DEVICE_VGPU_CAP_COMPUTE_MEDIA_ENGINE_GPU = 7,
        NVML_DEVICE_VGPU_CAP_WARM_UPDATE = 8,
        NVML_DEVICE_VGPU_CAP_HOMOGENEOUS_PLACEMENTS = 9,
        NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_SUPPORTED = 10,
        NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_ENABLED = 11,
        NVML_DEVICE_VGPU_CAP_COUNT = 12,
} nvmlDeviceVgpuCapability_t;

/* A mask: in which power states of the virtual machine the move can be made. */
typedef enum {
        NVML_VGPU_VM_COMPATIBILITY_NONE = 0,
        NVML_VGPU_VM_COMPATIBILITY_COLD = 1,
        NVML_VGPU_VM_COMPATIBILITY_HIBERNATE = 2,
        NVML_VGPU_VM_COMPATIBILITY_SLEEP = 4,
        NVML_VGPU_VM_COMPATIBILITY_LIVE = 8,
} nvmlVgpuVmCompatibility_t;

typedef enum {
        NVML_VGPU_COMPATIBILITY_LIMIT_NONE = 0,
        NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER = 1,
        NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER = 2,
        NVML_VGPU_COMPATIBILITY_LIMIT_GPU = 4,
        NVML_VGPU_COMPATIBILITY_LIMIT_OTHER = 0x80000000u,
} nvmlVgpuPgpuCompatibilityLimitCode_t;

#define NVML_INVALID_GPU_INSTANCE_PROFILE_ID   0xffffffffu
#define NVML_INVALID_VGPU_PLACEMENT_ID         0xffffu
#define NVML_VGPU_PGPU_HETEROGENEOUS_MODE      0
#define NVML_VGPU_PGPU_HOMOGENEOUS_MODE        1
#define NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION 1u /* bit 0 of both words of capabilities */
#define NVML_GRID_LICENSE_EXPIRY_NOT_AVAILABLE 0
#define NVML_GRID_LICENSE_EXPIRY_VALID         2
#define NVML_GRID_LICENSE_EXPIRY_PERMANENT     4
#define NVML_GRID_LICENSE_STATE_UNLICENSED     4
#define NVML_GRID_LICENSE_STATE_LICENSED       5
#define NVML_VGPU_NAME_BUFFER_SIZE             64
#define NVML_VGPU_TEXT_BUFFER_SIZE             80 /* UUID, VM id, driver version */

#define NVML_VGPU_SCHEDULER_POLICY_UNKNOWN         0
#define NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT     1
#define NVML_VGPU_SCHEDULER_POLICY_EQUAL_SHARE     2
#define NVML_VGPU_SCHEDULER_POLICY_FIXED_SHARE     3
#define NVML_SUPPORTED_VGPU_SCHEDULER_POLICY_COUNT 3
#define NVML_SCHEDULER_SW_MAX_LOG_ENTRIES          200
#define NVML_VGPU_SCHEDULER_ARR_DEFAULT            0
#define NVML_VGPU_SCHEDULER_ARR_DISABLE            1
#define NVML_VGPU_SCHEDULER_ARR_ENABLE             2
#define NVML_VGPU_SCHEDULER_ENGINE_TYPE_GRAPHICS   1
#define NVML_VGPU_SCHEDULER_ENGINE_TYPE_NVENC1     2
#define NVML_VGPU_SCHEDULER_ENGINE_TYPE_NVENC0     3

/* Placement. */
typedef struct {
        unsigned int version;
        unsigned int mode; /* nvmlEnableState_t */
} nvmlVgpuHeterogeneousMode_v1_t;

typedef struct {
        unsigned int version;
        unsigned int placementId;
} nvmlVgpuPlacementId_v1_t;

typedef struct {
        unsigned int version;
        unsigned int placementSize;
        unsigned int count;
        unsigned int *placementIds;
} nvmlVgpuPlacementList_v1_t;

typedef struct {
        unsigned int version;
        unsigned int placementSize;
        unsigned int count; /* in: room of placementIds; out: entries */
        unsigned int *placementIds;
        unsigned int mode; /* in: NVML_VGPU_PGPU_*_MODE */
} nvmlVgpuPlacementList_v2_t;

typedef struct {
        unsigned int version;
        nvmlVgpuTypeId_t vgpuTypeId;
        unsigned int count;
        unsigned int *placementIds;
        unsigned int placementSize;
} nvmlVgpuCreatablePlacementInfo_v1_t;

typedef struct {
        unsigned int version;
        unsigned long long size;
} nvmlVgpuRuntimeState_v1_t;

typedef struct {
        unsigned int version;
        unsigned long long bar1Size; /* MiB */
} nvmlVgpuTypeBar1Info_v1_t;

/* GPU instances (MIG). */
typedef struct {
        unsigned int version;
        unsigned int vgpuCount;
        nvmlVgpuTypeId_t *vgpuTypeIds;
} nvmlVgpuTypeIdInfo_v1_t;

typedef struct {
        unsigned int version;
        nvmlVgpuTypeId_t vgpuTypeId;
        unsigned int maxInstancePerGI;
} nvmlVgpuTypeMaxInstance_v1_t;

typedef struct {
        unsigned int version;
        unsigned int vgpuCount;
        nvmlVgpuInstance_t *vgpuInstances;
} nvmlActiveVgpuInstanceInfo_v1_t;

/* Utilization. The values are in the member uiVal. */
typedef struct {
        nvmlVgpuInstance_t vgpuInstance;
        unsigned long long timeStamp;
        nvmlValue_t smUtil;
        nvmlValue_t memUtil;
        nvmlValue_t encUtil;
        nvmlValue_t decUtil;
} nvmlVgpuInstanceUtilizationSample_t;

typedef struct {
        unsigned long long timeStamp;
        nvmlVgpuInstance_t vgpuInstance;
        nvmlValue_t smUtil;
        nvmlValue_t memUtil;
        nvmlValue_t encUtil;
        nvmlValue_t decUtil;
        nvmlValue_t jpgUtil;
        nvmlValue_t ofaUtil;
} nvmlVgpuInstanceUtilizationInfo_v1_t;

typedef struct {
        unsigned int version;
        nvmlValueType_t sampleValType;
        unsigned int vgpuInstanceCount;
        unsigned long long lastSeenTimeStamp;
        nvmlVgpuInstanceUtilizationInfo_v1_t *vgpuUtilArray;
} nvmlVgpuInstancesUtilizationInfo_v1_t;

typedef struct {
        nvmlVgpuInstance_t vgpuInstance;
        unsigned int pid;
        char processName[NVML_VGPU_NAME_BUFFER_SIZE];
        unsigned long long timeStamp;
        unsigned int smUtil;
        unsigned int memUtil;
        unsigned int encUtil;
        unsigned int decUtil;
} nvmlVgpuProcessUtilizationSample_t;

typedef struct {
        char processName[NVML_VGPU_NAME_BUFFER_SIZE];
        unsigned long long timeStamp;
        nvmlVgpuInstance_t vgpuInstance;
        unsigned int pid;
        unsigned int smUtil;
        unsigned int memUtil;
        unsigned int encUtil;
        unsigned int decUtil;
        unsigned int jpgUtil;
        unsigned int ofaUtil;
} nvmlVgpuProcessUtilizationInfo_v1_t;

typedef struct {
        unsigned int version;
        unsigned int vgpuProcessCount;
        unsigned long long lastSeenTimeStamp;
        nvmlVgpuProcessUtilizationInfo_v1_t *vgpuProcUtilArray;
} nvmlVgpuProcessesUtilizationInfo_v1_t;

/* Licence. */
typedef struct {
        unsigned int year;
        unsigned short month;
        unsigned short day;
        unsigned short hour;
        unsigned short min;
        unsigned short sec;
        unsigned char status; /* NVML_GRID_LICENSE_EXPIRY_*; the date counts only if it is VALID */
} nvmlVgpuLicenseExpiry_t;

typedef struct {
        unsigned char isLicensed;
        nvmlVgpuLicenseExpiry_t licenseExpiry;
} nvmlVgpuLicenseInfo_v1_t;

typedef struct {
        unsigned char isLicensed;
        nvmlVgpuLicenseExpiry_t licenseExpiry;
        unsigned int currentState;
} nvmlVgpuLicenseInfo_t;

typedef nvmlVgpuLicenseExpiry_t nvmlGridLicenseExpiry_t;

typedef struct {
        nvmlGridLicenseFeatureCode_t featureCode;
        unsigned int featureState;
        char licenseInfo[NVML_GRID_LICENSE_BUFFER_SIZE];
} nvmlGridLicensableFeature_v1_t;

typedef struct {
        nvmlGridLicenseFeatureCode_t featureCode;
        unsigned int featureState;
        char licenseInfo[NVML_GRID_LICENSE_BUFFER_SIZE];
        char productName[NVML_GRID_LICENSE_BUFFER_SIZE];
} nvmlGridLicensableFeature_v2_t;

typedef struct {
        nvmlGridLicenseFeatureCode_t featureCode;
        unsigned int featureState;
        char licenseInfo[NVML_GRID_LICENSE_BUFFER_SIZE];
        char productName[NVML_GRID_LICENSE_BUFFER_SIZE];
        unsigned int featureEnabled;
} nvmlGridLicensableFeature_v3_t;

typedef struct {
        nvmlGridLicenseFeatureCode_t featureCode;
        unsigned int featureState; /* licensed now */
        char licenseInfo[NVML_GRID_LICENSE_BUFFER_SIZE];
        char productName[NVML_GRID_LICENSE_BUFFER_SIZE];
        unsigned int featureEnabled;
        nvmlGridLicenseExpiry_t licenseExpiry;
} nvmlGridLicensableFeature_t;

typedef struct {
        int isGridLicenseSupported;
        unsigned int licensableFeaturesCount;
        nvmlGridLicensableFeature_v1_t gridLicensableFeatures[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
} nvmlGridLicensableFeatures_v1_t;

typedef struct {
        int isGridLicenseSupported;
        unsigned int licensableFeaturesCount;
        nvmlGridLicensableFeature_v2_t gridLicensableFeatures[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
} nvmlGridLicensableFeatures_v2_t;

typedef struct {
        int isGridLicenseSupported;
        unsigned int licensableFeaturesCount;
        nvmlGridLicensableFeature_v3_t gridLicensableFeatures[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
} nvmlGridLicensableFeatures_v3_t;

typedef struct {
        int isGridLicenseSupported;
        unsigned int licensableFeaturesCount;
        nvmlGridLicensableFeature_t gridLicensableFeatures[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
} nvmlGridLicensableFeatures_t;

/* Scheduler. Times are nanoseconds; of the unions, adaptive round robin (ARR) picks the member. */
typedef union {
        struct {
                unsigned int avgFactor;
                unsigned int timeslice;
        } vgpuSchedDataWithARR;
        struct {
                unsigned int timeslice;
        } vgpuSchedData;
} nvmlVgpuSchedulerParams_t;

typedef union {
        struct {
                unsigned int avgFactor;
                unsigned int frequency; /* Hz */
        } vgpuSchedDataWithARR;
        struct {
                unsigned int timeslice;
        } vgpuSchedData;
} nvmlVgpuSchedulerSetParams_t;

typedef struct {
        unsigned long long timestamp;
        unsigned long long timeRunTotal;
        unsigned long long timeRun;
        unsigned int swRunlistId;
        unsigned long long targetTimeSlice;
        unsigned long long cumulativePreemptionTime;
} nvmlVgpuSchedulerLogEntry_t;

typedef struct {
        unsigned long long timestamp;
        unsigned long long timeRunTotal;
        unsigned long long timeRun;
        unsigned int swRunlistId;
        unsigned long long targetTimeSlice;
        unsigned long long cumulativePreemptionTime;
        unsigned int weight;
} nvmlVgpuSchedulerLogEntry_v2_t;

typedef struct {
        unsigned int engineId;
        unsigned int schedulerPolicy;
        unsigned int arrMode;
        nvmlVgpuSchedulerParams_t schedulerParams;
        unsigned int entriesCount;
        nvmlVgpuSchedulerLogEntry_t logEntries[NVML_SCHEDULER_SW_MAX_LOG_ENTRIES];
} nvmlVgpuSchedulerLog_t;

typedef struct {
        unsigned int version;
        unsigned int engineId;
        unsigned int schedulerPolicy;
        unsigned int arrMode;
        nvmlVgpuSchedulerParams_t schedulerParams;
        unsigned int entriesCount;
        nvmlVgpuSchedulerLogEntry_t logEntries[NVML_SCHEDULER_SW_MAX_LOG_ENTRIES];
} nvmlVgpuSchedulerLogInfo_v1_t;

typedef struct {
        unsigned int engineId; /* in */
        unsigned int schedulerPolicy;
        unsigned int avgFactor;
        unsigned int timeslice;
        unsigned int entriesCount;
        nvmlVgpuSchedulerLogEntry_v2_t logEntries[NVML_SCHEDULER_SW_MAX_LOG_ENTRIES];
} nvmlVgpuSchedulerLogInfo_v2_t;

typedef struct {
        unsigned int schedulerPolicy;
        unsigned int arrMode;
        nvmlVgpuSchedulerParams_t schedulerParams;
} nvmlVgpuSchedulerGetState_t;

typedef struct {
        unsigned int version;
        unsigned int engineId;
        unsigned int schedulerPolicy;
        unsigned int arrMode;
        nvmlVgpuSchedulerParams_t schedulerParams;
} nvmlVgpuSchedulerStateInfo_v1_t;

typedef struct {
        unsigned int engineId; /* in */
        unsigned int schedulerPolicy;
        unsigned int avgFactor;
        unsigned int timeslice;
} nvmlVgpuSchedulerStateInfo_v2_t;

typedef struct {
        unsigned int schedulerPolicy;
        unsigned int enableARRMode;
        nvmlVgpuSchedulerSetParams_t schedulerParams;
} nvmlVgpuSchedulerSetState_t;

typedef struct {
        unsigned int version;
        unsigned int engineId;
        unsigned int schedulerPolicy;
        unsigned int enableARRMode;
        nvmlVgpuSchedulerSetParams_t schedulerParams;
} nvmlVgpuSchedulerState_v1_t;

typedef struct {
        unsigned int engineId;
        unsigned int schedulerPolicy;
        unsigned int avgFactor;
        unsigned int frequency;
} nvmlVgpuSchedulerState_v2_t;

typedef struct {
        unsigned int supportedSchedulers[NVML_SUPPORTED_VGPU_SCHEDULER_POLICY_COUNT];
        unsigned int maxTimeslice;
        unsigned int minTimeslice;
        unsigned int isArrModeSupported;
        unsigned int maxFrequencyForARR;
        unsigned int minFrequencyForARR;
        unsigned int maxAvgFactorForARR;
        unsigned int minAvgFactorForARR;
} nvmlVgpuSchedulerCapabilities_t;

/* Migration. opaqueData is the first of opaqueDataSize bytes. */
typedef struct {
        unsigned int minVersion; /* major << 16 | minor */
        unsigned int maxVersion;
} nvmlVgpuVersion_t;

typedef struct {
        unsigned int version;
        unsigned int revision;
        nvmlVgpuGuestInfoState_t guestInfoState;
        char guestDriverVersion[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
        char hostDriverVersion[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
        unsigned int reserved[6];
        unsigned int vgpuVirtualizationCaps;
        unsigned int guestVgpuVersion;
        unsigned int opaqueDataSize;
        char opaqueData[4];
} nvmlVgpuMetadata_t;

typedef struct {
        unsigned int version;
        unsigned int revision;
        char hostDriverVersion[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
        unsigned int pgpuVirtualizationCaps;
        unsigned int reserved[5];
        nvmlVgpuVersion_t hostSupportedVgpuRange;
        unsigned int opaqueDataSize;
        char opaqueData[4];
} nvmlVgpuPgpuMetadata_t;

typedef struct {
        nvmlVgpuVmCompatibility_t vgpuVmCompatibility;
        nvmlVgpuPgpuCompatibilityLimitCode_t compatibilityLimitCode;
} nvmlVgpuPgpuCompatibility_t;

#endif
