/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_ACCOUNTING_H
#define ABI_NVML_ACCOUNTING_H

/* The part of the NVML interface about accounting of a device's own processes. See abi/nvml.h. */

#include "abi/nvml.h"

typedef struct {
        unsigned int pid; /* in */
        unsigned int isRunning;
        unsigned int gpuUtilization;
        unsigned int memoryUtilization;
        unsigned long long maxMemoryUsage;
        unsigned int sampleCount;
        unsigned long long sumGpuUtil;
        unsigned long long sumFbUtil;
        unsigned long long time;      /* milliseconds; 0 while it runs */
        unsigned long long startTime; /* microseconds since the epoch */
} nvmlAccountingStats_v2_t;

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode);
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t *stats);
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                         unsigned int *pids);
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *entries);
nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device);

#endif
