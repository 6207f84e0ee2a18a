/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_NVML_DEVICE_H
#define ABI_NVML_DEVICE_H

/*
 * The part of the NVML interface that monitors ask of a device beside its sensors: numbered
 * fields, errors of memory, clocks that can be set, where it is. See abi/nvml.h.
 */

#include "abi/nvml-sensors.h"

/* Fields of nvmlDeviceGetFieldValues(). Single and double bit errors: corrected and uncorrected. */
enum {
        NVML_FI_DEV_ECC_CURRENT = 1,
        NVML_FI_DEV_ECC_PENDING = 2,
        NVML_FI_DEV_ECC_SBE_VOL_TOTAL = 3,
        NVML_FI_DEV_ECC_DBE_VOL_TOTAL = 4,
        NVML_FI_DEV_ECC_SBE_AGG_TOTAL = 5,
        NVML_FI_DEV_ECC_DBE_AGG_TOTAL = 6,
        NVML_FI_DEV_ECC_SBE_VOL_DEV = 11,
        NVML_FI_DEV_ECC_DBE_VOL_DEV = 12,
        NVML_FI_DEV_ECC_SBE_AGG_DEV = 22,
        NVML_FI_DEV_ECC_DBE_AGG_DEV = 23,
        NVML_FI_DEV_RETIRED_SBE = 29,
        NVML_FI_DEV_RETIRED_DBE = 30,
        NVML_FI_DEV_RETIRED_PENDING = 31,
        NVML_FI_DEV_PERF_POLICY_POWER = 74,
        NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS = 81,
        NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83,
        NVML_FI_DEV_NVLINK_LINK_COUNT = 91,
        NVML_FI_DEV_PCIE_REPLAY_COUNTER = 94,
        NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER = 95,
        NVML_FI_DEV_REMAPPED_COR = 142,
        NVML_FI_DEV_REMAPPED_UNC = 143,
        NVML_FI_DEV_REMAPPED_PENDING = 144,
        NVML_FI_DEV_REMAPPED_FAILURE = 145,
        NVML_FI_DEV_C2C_LINK_COUNT = 170,
        NVML_FI_DEV_POWER_AVERAGE = 185,
        NVML_FI_DEV_POWER_INSTANT = 186,
        NVML_FI_DEV_POWER_MIN_LIMIT = 187,
        NVML_FI_DEV_POWER_MAX_LIMIT = 188,
        NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189,
        NVML_FI_DEV_POWER_CURRENT_LIMIT = 190,
        NVML_FI_DEV_ENERGY = 191,
        NVML_FI_DEV_POWER_REQUESTED_LIMIT = 192,
};

typedef enum {
        NVML_MEMORY_LOCATION_DEVICE_MEMORY = 2,
        NVML_MEMORY_LOCATION_SRAM = 7,
        NVML_MEMORY_LOCATION_COUNT = 8,
} nvmlMemoryLocation_t;

typedef enum {
        NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1,
        NVML_PAGE_RETIREMENT_CAUSE_COUNT = 2,
} nvmlPageRetirementCause_t;

typedef enum {
        NVML_TOTAL_POWER_SAMPLES = 0,
        NVML_GPU_UTILIZATION_SAMPLES = 1,
        NVML_MEMORY_UTILIZATION_SAMPLES = 2,
        NVML_ENC_UTILIZATION_SAMPLES = 3,
        NVML_DEC_UTILIZATION_SAMPLES = 4,
        NVML_PROCESSOR_CLK_SAMPLES = 5,
        NVML_MEMORY_CLK_SAMPLES = 6,
        NVML_MODULE_POWER_SAMPLES = 7,
        NVML_JPG_UTILIZATION_SAMPLES = 8,
        NVML_OFA_UTILIZATION_SAMPLES = 9,
        NVML_SAMPLINGTYPE_COUNT = 10,
} nvmlSamplingType_t;

typedef enum {
        NVML_PERF_POLICY_POWER = 0,
        NVML_PERF_POLICY_THERMAL = 1,
        NVML_PERF_POLICY_SYNC_BOOST = 2,
        NVML_PERF_POLICY_RELIABILITY = 5,
        NVML_PERF_POLICY_TOTAL_APP_CLOCKS = 10,
        NVML_PERF_POLICY_COUNT = 12,
} nvmlPerfPolicyType_t;

typedef enum { NVML_BUS_TYPE_PCIE = 2 } nvmlBusType_t;
typedef enum { NVML_POWER_SOURCE_AC = 0 } nvmlPowerSource_t;

/* How the device reaches memory that the system has allocated. */
typedef enum {
        NVML_DEVICE_ADDRESSING_MODE_NONE = 0,
        NVML_DEVICE_ADDRESSING_MODE_HMM = 1,
        NVML_DEVICE_ADDRESSING_MODE_ATS = 2,
} nvmlDeviceAddressingModeType_t;

typedef struct {
        unsigned int version;
        unsigned int value; /* nvmlDeviceAddressingModeType_t */
} nvmlDeviceAddressingMode_v1_t;

typedef unsigned int nvmlAffinityScope_t;
#define NVML_AFFINITY_SCOPE_NODE   0
#define NVML_AFFINITY_SCOPE_SOCKET 1

/* Why clocks are not at their highest: bits. */
#define NVML_CLOCKS_EVENT_REASON_GPU_IDLE 0x1ull
#define NVML_CLOCKS_EVENT_REASON_ALL      0x1ffull

/* Kinds of events: bits. */
#define NVML_EVENT_TYPE_SINGLE_BIT_ECC_ERROR 0x1ull
#define NVML_EVENT_TYPE_DOUBLE_BIT_ECC_ERROR 0x2ull
#define NVML_EVENT_TYPE_PSTATE               0x4ull
#define NVML_EVENT_TYPE_XID_CRITICAL_ERROR   0x8ull
#define NVML_EVENT_TYPE_CLOCK                0x10ull

typedef struct {
        unsigned long long l1Cache;
        unsigned long long l2Cache;
        unsigned long long deviceMemory;
        unsigned long long registerFile;
} nvmlEccErrorCounts_t;

typedef struct {
        unsigned int version;
        unsigned long long aggregateUncParity;
        unsigned long long aggregateUncSecDed;
        unsigned long long aggregateCor;
        unsigned long long volatileUncParity;
        unsigned long long volatileUncSecDed;
        unsigned long long volatileCor;
        unsigned long long aggregateUncBucketL2;
        unsigned long long aggregateUncBucketSm;
        unsigned long long aggregateUncBucketPcie;
        unsigned long long aggregateUncBucketMcu;
        unsigned long long aggregateUncBucketOther;
        unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;

typedef struct {
        unsigned long long referenceTime; /* microseconds */
        unsigned long long violationTime; /* ns */
} nvmlViolationTime_t;

typedef struct {
        unsigned long long timeStamp;
        nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct {
        unsigned int hwbcId;
        char firmwareVersion[32];
} nvmlHwbcEntry_t;

/* Rows of memory that others stand in for; active: in use, inactive: from the next reset on. */
typedef struct {
        unsigned int corrActiveRemaps;
        unsigned int corrInactiveRemaps;
        unsigned int uncActiveRemaps;
        unsigned int uncInactiveRemaps;
        unsigned int bPending;
        unsigned int bFailureOccurred;
} nvmlRemappedRowsInfo_v2_t;

nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *count, nvmlHwbcEntry_t *entries);
nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
                                         nvmlDevice_t *devices);

/* Bits of CPUs and of memory nodes, @size words of them. */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *cpus);
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size,
                                                 unsigned long *cpus, nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
                                         unsigned long *nodes, nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int *count, nvmlDevice_t *devices);

/* Errors of memory. */
nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t kind,
                                             nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location,
                                             unsigned long long *count);
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t kind,
                                            nvmlEccCounterType_t counter,
                                            nvmlEccErrorCounts_t *counts);
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                             nvmlEccSramErrorStatus_v1_t *status);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                       unsigned int *count, unsigned long long *addresses);
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                          unsigned int *count, unsigned long long *addresses,
                                          unsigned long long *times);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device,
                                                    nvmlEnableState_t *is_pending);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                       unsigned int *uncorrected, unsigned int *is_pending,
                                       unsigned int *has_failed);
nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *rows);

/* Fans, clocks, limits, bus. */
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *count);
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent);
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t domain,
                                                   unsigned int *clock);
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t domain,
                                                unsigned int *clock);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                unsigned int *clocks);
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_clock,
                                                  unsigned int *count, unsigned int *clocks);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy,
                                          nvmlViolationTime_t *time);
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t *type);
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int *number);
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *count);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation);
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int *speed);
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_v1_t *mode);
nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, nvmlPowerSource_t *source);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t kind,
                                  unsigned long long last_seen_us, nvmlValueType_t *type,
                                  unsigned int *count, nvmlSample_t *samples);

#endif
