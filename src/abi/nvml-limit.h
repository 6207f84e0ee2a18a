/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_LIMIT_H
#define ABI_NVML_LIMIT_H

/* The part of the NVML interface about memory limits of control groups (R615). See abi/nvml.h. */

#include "abi/nvml.h"

/* Bytes. No limit: soft 0, hard all ones. */
typedef struct {
        const char *nameSpace; /* full path of the control group's folder */
        unsigned long long softLimit;
        unsigned long long hardLimit;
} nvmlSetMemoryLimits_v1_t;

typedef struct {
        const char *nameSpace; /* in */
        unsigned long long softLimit;
        unsigned long long hardLimit;
        unsigned long long currentUsed;
} nvmlGetMemoryLimits_v1_t;

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits);
nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits);

#endif
