/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_EVENT_H
#define ABI_NVML_EVENT_H

/* The part of the NVML interface about GPU operational events (R615). See abi/nvml.h. */

#include "abi/nvml.h"

#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96

#define NVML_EVENT_TYPE_NONE 0ull

#define NVML_EVENT_DATA_TYPE_NVML_EVENT            0
#define NVML_EVENT_DATA_TYPE_GPU_OPERATIONAL_EVENT 1

#define NVML_GPU_INSTANCE_ID_ANY     0xffffffffu
#define NVML_COMPUTE_INSTANCE_ID_ANY 0xffffffffu

#define NVML_OPERATIONAL_EVENT_SEVERITY_ALL           0
#define NVML_OPERATIONAL_EVENT_SEVERITY_INFORMATIONAL 10
#define NVML_OPERATIONAL_EVENT_SEVERITY_CORRECTED     20
#define NVML_OPERATIONAL_EVENT_SEVERITY_RECOVERABLE   30
#define NVML_OPERATIONAL_EVENT_SEVERITY_FATAL         40

#define NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_ALL       0
#define NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_TELEMETRY 10
#define NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_DIAG      20
#define NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_NOTICE    30
#define NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_WARNING   40
#define NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_ERROR     50

#define NVML_OPERATIONAL_EVENT_ATTR_PRIMARY         0x20u
#define NVML_OPERATIONAL_EVENT_GROUP_ATTR_SIMULATED 0x4u

#define NVML_GPU_OPERATIONAL_EVENT_CONTEXT_TYPE_LEGACY_XID 1

/* Of a subscription; levels and severities below the smallest are left out. */
typedef struct {
        char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
        unsigned int minLogLevel;
        unsigned int minSeverity;
} nvmlGpuOperationalEventConfig_v1_t;

/* All but the time-out is out. */
typedef struct {
        unsigned int timeoutMs;
        unsigned int dataType;
        char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
        char sourceModule[16]; /* not always with a NUL */
        unsigned long long eventType;
        unsigned long long eventData;
        unsigned long long groupCursor;
        unsigned long long instanceId;
        unsigned long long timestampUsec;
        unsigned long long traceId;
        unsigned int gpuInstanceId;
        unsigned int computeInstanceId;
        unsigned int severity;
        unsigned int categoryId;
        unsigned int moduleEventCode;
        unsigned int scope;
        unsigned int originator;
        unsigned int moduleInstance;
        unsigned int chipletId;
        unsigned int logLevel;
        unsigned int attributes;
        unsigned int groupCperSize;
        unsigned int groupAttributes;
        unsigned char groupSize;
        unsigned char groupIndex;
} nvmlEventSetWait_v3_t;

typedef struct {
        unsigned int count;
} nvmlEventSetGetContextCount_v1_t;

typedef struct {
        unsigned int index; /* in */
        unsigned int nvmlGpuOperationalEventContextType;
        unsigned int sourceEventContextType;
        unsigned int dataSize;
        unsigned short dataFormatVersion;
} nvmlEventSetGetContextInfo_v1_t;

typedef struct {
        void *data;            /* NULL: only the size is asked for */
        unsigned int index;    /* in */
        unsigned int dataSize; /* in and out */
} nvmlEventSetGetContextData_v1_t;

typedef struct {
        unsigned int index; /* in */
        unsigned int xidCode;
} nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t;

nvmlReturn_t
nvmlEventSetRegisterGpuOperationalEvents_v1(nvmlEventSet_t set,
                                            const nvmlGpuOperationalEventConfig_v1_t *config);
nvmlReturn_t nvmlEventSetWait_v3(nvmlEventSet_t set, nvmlEventSetWait_v3_t *event);
nvmlReturn_t nvmlEventSetGetContextCount_v1(nvmlEventSet_t set,
                                            nvmlEventSetGetContextCount_v1_t *count);
nvmlReturn_t nvmlEventSetGetContextInfo_v1(nvmlEventSet_t set,
                                           nvmlEventSetGetContextInfo_v1_t *info);
nvmlReturn_t nvmlEventSetGetContextData_v1(nvmlEventSet_t set,
                                           nvmlEventSetGetContextData_v1_t *data);
nvmlReturn_t nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(
        nvmlEventSet_t set, nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t *xid);

#endif
