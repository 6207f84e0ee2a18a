/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_GPM_H
#define ABI_NVML_GPM_H

/* The part of the NVML interface about metrics between two samples (GPM). See abi/nvml.h. */

#include "abi/nvml.h"

#define NVML_GPM_METRICS_GET_VERSION 1
#define NVML_GPM_SUPPORT_VERSION     1

typedef enum {
        NVML_GPM_METRIC_GRAPHICS_UTIL = 1, /* percent */
        NVML_GPM_METRIC_DRAM_BW_UTIL = 10,
        NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20, /* MiB/s */
        NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21,
        NVML_GPM_METRIC_NVDEC_0_UTIL = 30, /* percent */
        NVML_GPM_METRIC_NVJPG_0_UTIL = 40,
        NVML_GPM_METRIC_NVOFA_0_UTIL = 50,
        NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC = 60, /* MiB/s */
        NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC = 61,
        NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC = 62, /* then sent, then those of the next link */
        NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC = 97,
        NVML_GPM_METRIC_MAX = 477,
} nvmlGpmMetricId_t;

typedef struct nvmlGpmSample_st *nvmlGpmSample_t;

typedef struct {
        unsigned int metricId; /* in */
        nvmlReturn_t nvmlReturn;
        double value;
        struct {
                char *shortName;
                char *longName;
                char *unit;
        } metricInfo;
} nvmlGpmMetric_t;

/* Clients of older releases have less room behind it: only the first @numMetrics are there. */
typedef struct {
        unsigned int version;
        unsigned int numMetrics;
        nvmlGpmSample_t sample1;
        nvmlGpmSample_t sample2;
        nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
} nvmlGpmMetricsGet_t;

typedef struct {
        unsigned int version;
        unsigned int isSupportedDevice;
} nvmlGpmSupport_t;

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support);
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample);
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample);
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample);
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics);

#endif
