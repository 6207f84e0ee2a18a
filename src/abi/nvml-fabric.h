/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_FABRIC_H
#define ABI_NVML_FABRIC_H

/* The part of the NVML interface about the fabric of NVLinks and about performance states. See abi/nvml.h. */

#include "abi/nvml-sensors.h"

#define NVML_GPU_FABRIC_UUID_LEN            16
#define NVML_GPU_FABRIC_STATE_NOT_SUPPORTED 0
#define NVML_GPU_FABRIC_STATE_COMPLETED     3
#define NVML_GPU_FABRIC_CLIQUE_MAX          64

/* As CUDA numbers them (CUcliqueType). */
#define NVML_GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER   0
#define NVML_GPU_FABRIC_CLIQUE_TYPE_MULTICAST_POINTER 1

#define NVML_GSP_FIRMWARE_VERSION_BUF_SIZE 64
#define NVML_PERF_MODES_BUFFER_SIZE        2048

typedef struct {
        unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
        nvmlReturn_t status;
        unsigned int cliqueId;
        unsigned char state;
} nvmlGpuFabricInfo_t;

typedef struct {
        unsigned int version;
        unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
        nvmlReturn_t status;
        unsigned int cliqueId;
        unsigned char state;
        unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;

typedef struct {
        unsigned int version;
        unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
        nvmlReturn_t status;
        unsigned int cliqueId;
        unsigned char state;
        unsigned int healthMask;
        unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
        unsigned char type; /* NVML_GPU_FABRIC_CLIQUE_TYPE_... */
        unsigned int id;
} nvmlGpuFabricClique_v1_t;

/* Since R615; its number is in the name of the function. */
typedef struct {
        unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
        nvmlReturn_t status;
        nvmlGpuFabricClique_v1_t cliques[NVML_GPU_FABRIC_CLIQUE_MAX]; /* by type, then by id */
        unsigned int numCliques;
        unsigned char state;
        unsigned int healthMask;
        unsigned char healthSummary;
} nvmlGpuFabricInfo_v4_t;

typedef struct {
        unsigned int version;
        nvmlClockType_t type; /* in */
        nvmlPstates_t pstate; /* in */
        int clockOffsetMHz;
        int minClockOffsetMHz;
        int maxClockOffsetMHz;
} nvmlClockOffset_v1_t;

typedef struct {
        unsigned int version;
        char str[NVML_PERF_MODES_BUFFER_SIZE];
} nvmlDevicePerfModes_v1_t;

typedef struct {
        unsigned int version;
        unsigned int fan; /* in */
        unsigned int speed;
} nvmlFanSpeedInfo_v1_t;

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *info);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo_v4(nvmlDevice_t device, nvmlGpuFabricInfo_v4_t *info);
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, nvmlPstates_t *states,
                                                     unsigned int size);
nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t domain,
                                              nvmlPstates_t state, unsigned int *least,
                                              unsigned int *most);
nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_v1_t *offset);
nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device, nvmlDevicePerfModes_v1_t *modes);
nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, unsigned int *least,
                                         unsigned int *most);
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_v1_t *info);
nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *is_enabled,
                                          unsigned int *default_mode);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version);
nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t *pci, nvmlEnableState_t *state);
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *status);

#endif
