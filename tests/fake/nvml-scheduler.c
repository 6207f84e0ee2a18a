/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the fake NVML about scheduling, utilization and migration. */
#include <string.h>

#include "abi/nvml-vgpu-calls.h"
#include "fake/nvml-internal.h"
#include "fake/nvml.h"

nvmlReturn_t nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_t device,
                                                    nvmlVgpuSchedulerCapabilities_t *capabilities)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS)
                *capabilities =
                        (nvmlVgpuSchedulerCapabilities_t){ .supportedSchedulers = { 1, 2, 0 },
                                                           .maxTimeslice = 30000000,
                                                           .minTimeslice = 1000000,
                                                           .isArrModeSupported = 1,
                                                           .maxFrequencyForARR = 960,
                                                           .minFrequencyForARR = 63,
                                                           .maxAvgFactorForARR = 60,
                                                           .minAvgFactorForARR = 1 };
        return r;
}

nvmlReturn_t nvmlDeviceGetVgpuSchedulerState(nvmlDevice_t device,
                                             nvmlVgpuSchedulerGetState_t *state)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        *state = (nvmlVgpuSchedulerGetState_t){ .schedulerPolicy = 2, .arrMode = 2 };
        state->schedulerParams.vgpuSchedDataWithARR.avgFactor = 33;
        state->schedulerParams.vgpuSchedDataWithARR.timeslice = 2000000;
        return r;
}

nvmlReturn_t nvmlDeviceGetVgpuSchedulerState_v2(nvmlDevice_t device,
                                                nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        state->schedulerPolicy = 3;
        state->avgFactor = state->engineId == 1 ? 40 : 0;
        state->timeslice = 1000000;
        return r;
}

/* The first generation of a GPU instance's structs says which it is. */
static nvmlReturn_t begin_versioned_part(const char *function, nvmlGpuInstance_t part,
                                         unsigned int version, unsigned int expected)
{
        nvmlReturn_t r = fake_begin_part(function, part);

        if (r == NVML_SUCCESS && version != expected)
                r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        return r;
}

nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState(nvmlGpuInstance_t part,
                                                  nvmlVgpuSchedulerStateInfo_v1_t *state)
{
        nvmlReturn_t r = begin_versioned_part(__func__, part, state->version,
                                              NVML_VERSION(nvmlVgpuSchedulerStateInfo_v1_t, 1));

        if (r != NVML_SUCCESS)
                return r;
        state->schedulerPolicy = 2;
        state->arrMode = 1;
        state->schedulerParams.vgpuSchedData.timeslice = 4000000;
        return r;
}

nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState_v2(nvmlGpuInstance_t part,
                                                     nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);

        if (r != NVML_SUCCESS)
                return r;
        state->schedulerPolicy = 1;
        state->avgFactor = 0;
        state->timeslice = 0;
        return r;
}

static void fill_entry(nvmlVgpuSchedulerLogEntry_t *entry)
{
        *entry = (nvmlVgpuSchedulerLogEntry_t){ 1000, 500, 100, 7, 90, 5 };
}

nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_t device, nvmlVgpuSchedulerLog_t *log)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        log->schedulerPolicy = 2;
        log->arrMode = 1;
        log->schedulerParams.vgpuSchedData.timeslice = 3000000;
        log->entriesCount = 1;
        fill_entry(&log->logEntries[0]);
        return r;
}

static void fill_log_v2(nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        log->schedulerPolicy = 2;
        log->avgFactor = 33;
        log->timeslice = 1000000;
        log->entriesCount = 4711; /* more than there is room for */
        for (int i = 0; i < NVML_SCHEDULER_SW_MAX_LOG_ENTRIES; i++)
                log->logEntries[i] = (nvmlVgpuSchedulerLogEntry_v2_t){
                        1000 + (unsigned int)i, 500, 100, 7, 90, 5, 64
                };
}

nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog_v2(nvmlDevice_t device,
                                              nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS)
                fill_log_v2(log);
        return r;
}

nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog(nvmlGpuInstance_t part,
                                                nvmlVgpuSchedulerLogInfo_v1_t *log)
{
        nvmlReturn_t r = begin_versioned_part(__func__, part, log->version,
                                              NVML_VERSION(nvmlVgpuSchedulerLogInfo_v1_t, 1));

        if (r != NVML_SUCCESS)
                return r;
        log->schedulerPolicy = 3;
        log->entriesCount = 2;
        fill_entry(&log->logEntries[0]);
        fill_entry(&log->logEntries[1]);
        return r;
}

nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog_v2(nvmlGpuInstance_t part,
                                                   nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);

        if (r == NVML_SUCCESS)
                fill_log_v2(log);
        return r;
}

/* Which generation was used, and what it was given. */
static void note(unsigned int generation, unsigned int engine, unsigned int policy,
                 unsigned int arr, unsigned int a, unsigned int b)
{
        const unsigned int set[] = { generation, engine, policy, arr, a, b };

        memcpy(fake_nvml.set, set, sizeof(set));
}

nvmlReturn_t nvmlDeviceSetVgpuSchedulerState(nvmlDevice_t device,
                                             nvmlVgpuSchedulerSetState_t *state)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        note(1, 0, state->schedulerPolicy, state->enableARRMode,
             state->schedulerParams.vgpuSchedDataWithARR.avgFactor,
             state->schedulerParams.vgpuSchedDataWithARR.frequency);
        return r;
}

nvmlReturn_t nvmlDeviceSetVgpuSchedulerState_v2(nvmlDevice_t device,
                                                nvmlVgpuSchedulerState_v2_t *state)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        note(2, state->engineId, state->schedulerPolicy, 0, state->avgFactor, state->frequency);
        return r;
}

nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState(nvmlGpuInstance_t part,
                                                  nvmlVgpuSchedulerState_v1_t *state)
{
        nvmlReturn_t r = begin_versioned_part(__func__, part, state->version,
                                              NVML_VERSION(nvmlVgpuSchedulerState_v1_t, 1));

        if (r != NVML_SUCCESS)
                return r;
        note(1, state->engineId, state->schedulerPolicy, state->enableARRMode,
             state->schedulerParams.vgpuSchedDataWithARR.avgFactor,
             state->schedulerParams.vgpuSchedDataWithARR.frequency);
        return r;
}

nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState_v2(nvmlGpuInstance_t part,
                                                     nvmlVgpuSchedulerState_v2_t *state)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);

        note(2, state->engineId, state->schedulerPolicy, 0, state->avgFactor, state->frequency);
        return r;
}

/* Utilization: the samples are of time 5000000. */

#define SAMPLE_TIME 5000000u

static nvmlReturn_t begin_samples(const char *function, nvmlDevice_t device,
                                  unsigned long long since, const void *array, unsigned int count)
{
        nvmlReturn_t r = fake_begin_device(function, device);

        if (r != NVML_SUCCESS)
                return r;
        if (array && count == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        return since >= SAMPLE_TIME || fake_nvml.is_silent ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVgpuUtilization(nvmlDevice_t device, unsigned long long since,
                                          nvmlValueType_t *value_type, unsigned int *count,
                                          nvmlVgpuInstanceUtilizationSample_t *samples)
{
        const nvmlVgpuInstanceUtilizationSample_t all[] = {
                { FAKE_TRAIN,
                  SAMPLE_TIME,
                  { .uiVal = 20 },
                  { .uiVal = 5 },
                  { .uiVal = 0 },
                  { .uiVal = 1 } },
                { FAKE_INFER,
                  SAMPLE_TIME - 1,
                  { .uiVal = 7 },
                  { .uiVal = 3 },
                  { .uiVal = 2 },
                  { .uiVal = 0 } },
        };
        nvmlReturn_t r = begin_samples(__func__, device, since, samples, *count);

        *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        return r == NVML_SUCCESS ? fake_give(all, 2, sizeof(all[0]), samples, count,
                                             NVML_ERROR_INSUFFICIENT_SIZE)
                                 : r;
}

nvmlReturn_t nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_t device,
                                                       nvmlVgpuInstancesUtilizationInfo_v1_t *info)
{
        const nvmlVgpuInstanceUtilizationInfo_v1_t all[] = {
                { SAMPLE_TIME,
                  FAKE_TRAIN,
                  { .uiVal = 20 },
                  { .uiVal = 5 },
                  { .uiVal = 0 },
                  { .uiVal = 1 },
                  { .uiVal = 8 },
                  { .uiVal = 9 } },
                { SAMPLE_TIME - 1,
                  FAKE_INFER,
                  { .uiVal = 7 },
                  { .uiVal = 3 },
                  { .uiVal = 2 },
                  { .uiVal = 0 },
                  { .uiVal = 0 },
                  { .uiVal = 0 } },
        };
        unsigned int none = 0;
        nvmlReturn_t r;

        if (info->version != NVML_VERSION(nvmlVgpuInstancesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        /* One of the texts: a count of 0 is wrong, with or without an array. */
        if (info->vgpuInstanceCount == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = begin_samples(__func__, device, info->lastSeenTimeStamp, info->vgpuUtilArray,
                          info->vgpuInstanceCount);
        if (r != NVML_SUCCESS)
                return r;
        return fake_give(all, 2, sizeof(all[0]), info->vgpuUtilArray,
                         info->vgpuUtilArray ? &info->vgpuInstanceCount
                                             : (info->vgpuInstanceCount = 2, &none),
                         NVML_ERROR_INSUFFICIENT_SIZE);
}

nvmlReturn_t nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t device, unsigned long long since,
                                                 unsigned int *count,
                                                 nvmlVgpuProcessUtilizationSample_t *samples)
{
        const nvmlVgpuProcessUtilizationSample_t all[] = {
                { FAKE_TRAIN, 4242, "train.py", SAMPLE_TIME, 20, 5, 0, 1 },
        };
        nvmlReturn_t r = begin_samples(__func__, device, since, samples, *count);

        return r == NVML_SUCCESS ? fake_give(all, 1, sizeof(all[0]), samples, count,
                                             NVML_ERROR_INSUFFICIENT_SIZE)
                                 : r;
}

nvmlReturn_t nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_t device,
                                                       nvmlVgpuProcessesUtilizationInfo_v1_t *info)
{
        nvmlVgpuProcessUtilizationInfo_v1_t all[] = {
                { "train.py", SAMPLE_TIME, FAKE_TRAIN, 4242, 20, 5, 0, 1, 8, 9 },
                { "", SAMPLE_TIME, FAKE_INFER, 4343, 7, 3, 2, 0, 0, 0 },
        };
        unsigned int none = 0;
        nvmlReturn_t r;

        memset(all[1].processName, 'x', sizeof(all[1].processName)); /* no NUL */
        if (info->version != NVML_VERSION(nvmlVgpuProcessesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = begin_samples(__func__, device, info->lastSeenTimeStamp, info->vgpuProcUtilArray,
                          info->vgpuProcessCount);
        if (r != NVML_SUCCESS)
                return r;
        return fake_give(all, 2, sizeof(all[0]), info->vgpuProcUtilArray,
                         info->vgpuProcUtilArray ? &info->vgpuProcessCount
                                                 : (info->vgpuProcessCount = 2, &none),
                         NVML_ERROR_INSUFFICIENT_SIZE);
}
