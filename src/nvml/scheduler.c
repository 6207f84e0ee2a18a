/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the scheduler of a site, in both generations of its calls: state, log, limits.
 *
 * The first generation of the device's calls knows no engines: its engine field counts only if it
 * names an engine. The second generation has adaptive round robin (ARR) always on, and no field for
 * it.
 */
#include <stddef.h>

#include "nvml/site.h"
#include "nvml/slots.h"

static bool is_engine(unsigned int engine)
{
        return engine >= STATE_ENGINE_GRAPHICS && engine <= STATE_ENGINE_NVENC0;
}

/* What has no record is as a device is by itself. */
static struct state_scheduler read_scheduler(const struct site *site, uint32_t engine)
{
        struct state_scheduler scheduler;

        if (!state_read_scheduler(site->state_page, state_slot_of_scheduler(site->number, engine),
                                  &scheduler))
                scheduler = (struct state_scheduler){ .policy = STATE_POLICY_BEST_EFFORT,
                                                      .arr = STATE_ARR_DISABLED };
        return scheduler;
}

static nvmlVgpuSchedulerParams_t get_parameters(const struct state_scheduler *scheduler)
{
        nvmlVgpuSchedulerParams_t parameters = { 0 };

        if (scheduler->arr == STATE_ARR_ENABLED) {
                parameters.vgpuSchedDataWithARR.avgFactor = scheduler->averaging_factor;
                parameters.vgpuSchedDataWithARR.timeslice = scheduler->time_slice;
        } else {
                parameters.vgpuSchedData.timeslice = scheduler->time_slice;
        }
        return parameters;
}

nvmlReturn_t
our_nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_t handle,
                                           nvmlVgpuSchedulerCapabilities_t *capabilities)
{
        struct state_device_detail detail;
        const struct state_scheduler_limits *limits = &detail.scheduler;
        struct site site;
        nvmlReturn_t r;

        if (!capabilities)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = site_of_device(&site, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        if (!state_read_device_detail(site.state_page, site.device.index, &detail))
                return NVML_ERROR_NOT_SUPPORTED;
        *capabilities = (nvmlVgpuSchedulerCapabilities_t){
                .supportedSchedulers = { limits->policy[0], limits->policy[1], limits->policy[2] },
                .maxTimeslice = limits->time_slice_max,
                .minTimeslice = limits->time_slice_min,
                .isArrModeSupported = limits->can_arr,
                .maxFrequencyForARR = limits->frequency_max,
                .minFrequencyForARR = limits->frequency_min,
                .maxAvgFactorForARR = limits->averaging_max,
                .minAvgFactorForARR = limits->averaging_min,
        };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerState(nvmlDevice_t handle,
                                                 nvmlVgpuSchedulerGetState_t *state)
{
        struct state_scheduler scheduler;
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, state);

        if (r != NVML_SUCCESS)
                return r;
        scheduler = read_scheduler(&site, STATE_ENGINE_GRAPHICS);
        *state = (nvmlVgpuSchedulerGetState_t){ .schedulerPolicy = scheduler.policy,
                                                .arrMode = scheduler.arr,
                                                .schedulerParams = get_parameters(&scheduler) };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerState(nvmlGpuInstance_t handle,
                                                      nvmlVgpuSchedulerStateInfo_v1_t *state)
{
        struct state_scheduler scheduler;
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, state);

        if (r != NVML_SUCCESS)
                return r;
        if (state->version != NVML_VERSION(nvmlVgpuSchedulerStateInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (!is_engine(state->engineId))
                return NVML_ERROR_INVALID_ARGUMENT;
        scheduler = read_scheduler(&site, state->engineId);
        state->schedulerPolicy = scheduler.policy;
        state->arrMode = scheduler.arr;
        state->schedulerParams = get_parameters(&scheduler);
        return NVML_SUCCESS;
}

static nvmlReturn_t get_state_v2(const struct site *site, nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        struct state_scheduler scheduler;

        if (!is_engine(state->engineId))
                return NVML_ERROR_INVALID_ARGUMENT;
        scheduler = read_scheduler(site, state->engineId);
        state->schedulerPolicy = scheduler.policy;
        state->avgFactor = scheduler.averaging_factor;
        state->timeslice = scheduler.time_slice;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerState_v2(nvmlDevice_t handle,
                                                    nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, state);

        return r == NVML_SUCCESS ? get_state_v2(&site, state) : r;
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerState_v2(nvmlGpuInstance_t handle,
                                                         nvmlVgpuSchedulerStateInfo_v2_t *state)
{
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, state);

        return r == NVML_SUCCESS ? get_state_v2(&site, state) : r;
}

/*
 * The log's entries of both generations begin alike. Entries beyond the count stay the caller's: a
 * log is 10 kB and asked for often.
 */
static unsigned int copy_log(const struct site *site, uint32_t engine, void *entries, size_t stride)
{
        uint32_t slot = state_slot_of_scheduler(site->number, engine);
        uint64_t end = state_count_turn(site->state_page, slot);
        uint64_t number = state_first_turn(site->state_page, slot);
        unsigned int n = 0;

        for (; number < end && n < NVML_SCHEDULER_SW_MAX_LOG_ENTRIES; number++) {
                nvmlVgpuSchedulerLogEntry_t *entry = (void *)((char *)entries + n * stride);
                struct state_turn turn;

                if (!state_read_turn(site->state_page, slot, number, &turn))
                        continue;
                *entry = (nvmlVgpuSchedulerLogEntry_t){
                        .timestamp = turn.timestamp,
                        .timeRunTotal = turn.run_total,
                        .timeRun = turn.run,
                        .swRunlistId = turn.run_list,
                        .targetTimeSlice = turn.target,
                        .cumulativePreemptionTime = turn.preempted,
                };
                if (stride == sizeof(nvmlVgpuSchedulerLogEntry_v2_t))
                        ((nvmlVgpuSchedulerLogEntry_v2_t *)(void *)entry)->weight = turn.weight;
                n++;
        }
        return n;
}

_Static_assert(offsetof(nvmlVgpuSchedulerLogEntry_v2_t, weight) ==
                       sizeof(nvmlVgpuSchedulerLogEntry_t),
               "the second generation adds one field behind the first");

/* What both logs of the first generation have in front of their entries. */
struct log_head {
        unsigned int policy, arr;
        nvmlVgpuSchedulerParams_t parameters;
        unsigned int n;
};

static struct log_head get_log(const struct site *site, uint32_t engine,
                               nvmlVgpuSchedulerLogEntry_t *entries)
{
        struct state_scheduler scheduler = read_scheduler(site, engine);

        return (struct log_head){ .policy = scheduler.policy,
                                  .arr = scheduler.arr,
                                  .parameters = get_parameters(&scheduler),
                                  .n = copy_log(site, engine, entries, sizeof(*entries)) };
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_t handle, nvmlVgpuSchedulerLog_t *log)
{
        struct log_head head;
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, log);

        if (r != NVML_SUCCESS)
                return r;
        if (!is_engine(log->engineId))
                log->engineId = STATE_ENGINE_GRAPHICS;
        head = get_log(&site, log->engineId, log->logEntries);
        log->schedulerPolicy = head.policy;
        log->arrMode = head.arr;
        log->schedulerParams = head.parameters;
        log->entriesCount = head.n;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerLog(nvmlGpuInstance_t handle,
                                                    nvmlVgpuSchedulerLogInfo_v1_t *log)
{
        struct log_head head;
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, log);

        if (r != NVML_SUCCESS)
                return r;
        if (log->version != NVML_VERSION(nvmlVgpuSchedulerLogInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (!is_engine(log->engineId))
                return NVML_ERROR_INVALID_ARGUMENT;
        head = get_log(&site, log->engineId, log->logEntries);
        log->schedulerPolicy = head.policy;
        log->arrMode = head.arr;
        log->schedulerParams = head.parameters;
        log->entriesCount = head.n;
        return NVML_SUCCESS;
}

static nvmlReturn_t get_log_v2(const struct site *site, nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        struct state_scheduler scheduler;

        if (!is_engine(log->engineId))
                return NVML_ERROR_INVALID_ARGUMENT;
        scheduler = read_scheduler(site, log->engineId);
        log->schedulerPolicy = scheduler.policy;
        log->avgFactor = scheduler.averaging_factor;
        log->timeslice = scheduler.time_slice;
        log->entriesCount =
                copy_log(site, log->engineId, log->logEntries, sizeof(log->logEntries[0]));
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuSchedulerLog_v2(nvmlDevice_t handle,
                                                  nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, log);

        return r == NVML_SUCCESS ? get_log_v2(&site, log) : r;
}

nvmlReturn_t our_nvmlGpuInstanceGetVgpuSchedulerLog_v2(nvmlGpuInstance_t handle,
                                                       nvmlVgpuSchedulerLogInfo_v2_t *log)
{
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, log);

        return r == NVML_SUCCESS ? get_log_v2(&site, log) : r;
}
