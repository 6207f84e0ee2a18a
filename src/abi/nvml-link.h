/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_LINK_H
#define ABI_NVML_LINK_H

/* The part of the NVML interface about NVLinks. See abi/nvml.h. */

#include "abi/nvml.h"

#define NVML_NVLINK_MAX_LINKS 36

typedef enum {
        NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
        NVML_NVLINK_CAP_SYSMEM_ACCESS = 1,
        NVML_NVLINK_CAP_P2P_ATOMICS = 2,
        NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3,
        NVML_NVLINK_CAP_SLI_BRIDGE = 4,
        NVML_NVLINK_CAP_VALID = 5,
        NVML_NVLINK_CAP_COUNT = 6,
} nvmlNvLinkCapability_t;

typedef enum {
        NVML_NVLINK_ERROR_DL_REPLAY = 0,
        NVML_NVLINK_ERROR_DL_RECOVERY = 1,
        NVML_NVLINK_ERROR_DL_CRC_FLIT = 2,
        NVML_NVLINK_ERROR_DL_CRC_DATA = 3,
        NVML_NVLINK_ERROR_DL_ECC_DATA = 4,
        NVML_NVLINK_ERROR_COUNT = 5,
} nvmlNvLinkErrorCounter_t;

typedef enum {
        NVML_NVLINK_DEVICE_TYPE_GPU = 0,
        NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
        NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255,
} nvmlIntNvLinkDeviceType_t;

/* Fields about links. Six errors of each kind follow one another, then their sum; later links elsewhere. */
#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0    32
#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL 38
#define NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0    39
#define NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0      46
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0    53
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL 59
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_L0              84
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON          90
#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6    96
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L11   119
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_L6              132
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_L11             137
#define NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX         138
#define NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX          141
#define NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT     147
#define NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY            161
#define NVML_FI_DEV_NVLINK_ERROR_DL_CRC               163
#define NVML_FI_DEV_NVLINK_GET_SPEED                  164
#define NVML_FI_DEV_NVLINK_GET_STATE                  165
#define NVML_FI_DEV_NVLINK_GET_VERSION                166

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      nvmlEnableState_t *is_active);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                        unsigned int *version);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                           nvmlNvLinkCapability_t capability, unsigned int *has);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                              nvmlPciInfo_v2_t *pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t *type);
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                             nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long *count);

#endif
