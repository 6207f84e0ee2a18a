/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML has two generations of calls. Those of R595 know engines and weights, and always use ARR. The
 * older ones can switch ARR off. Reading prefers the new calls; setting uses the calls that can express
 * what the caller wants.
 */
#include <openvgpu/scheduler.h>

#include "lib/answer.h"

static const char *const policy_names[] = {
        [VGPU_SCHEDULER_BEST_EFFORT] = "best-effort",
        [VGPU_SCHEDULER_EQUAL_SHARE] = "equal-share",
        [VGPU_SCHEDULER_FIXED_SHARE] = "fixed-share",
};

static const char *const engine_names[] = {
        [VGPU_SCHEDULER_GRAPHICS] = "graphics",
        [VGPU_SCHEDULER_NVENC1] = "nvenc1",
        [VGPU_SCHEDULER_NVENC0] = "nvenc0",
};

/* Where the scheduler is: one of the two. */
struct place {
        struct about about;
        nvmlDevice_t device;
        nvmlGpuInstance_t gpu_instance; /* NULL: the device's */
};

const char *vgpu_scheduler_policy_get_name(enum vgpu_scheduler_policy policy)
{
        return HOST_NAME(policy_names, policy);
}

const char *vgpu_scheduler_engine_get_name(enum vgpu_scheduler_engine engine)
{
        return HOST_NAME(engine_names, engine);
}

static int find_place(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                      struct place *ret_place)
{
        int r;

        *ret_place = (struct place){ .about = ABOUT_PLACE(device, gpu_instance) };
        r = host_device(host, device, &ret_place->device);
        if (r == 0 && gpu_instance != VGPU_WHOLE_DEVICE)
                r = host_gpu_instance(host, device, gpu_instance, &ret_place->gpu_instance);
        return r;
}

static int expect_graphics(struct vgpu_host *host, const struct place *place,
                           enum vgpu_scheduler_engine engine)
{
        return engine == VGPU_SCHEDULER_GRAPHICS
                       ? 0
                       : host_set_needs(host, place->about, "the scheduler of another engine",
                                        "R595");
}

int vgpu_scheduler_lookup_capabilities(struct vgpu_host *host, uint32_t device,
                                       struct vgpu_scheduler_capabilities **ret_capabilities)
{
        nvmlVgpuSchedulerCapabilities_t from = { { 0 }, .maxTimeslice = 0 };
        struct vgpu_scheduler_capabilities *to;
        enum vgpu_scheduler_policy *policies;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuSchedulerCapabilities,
                              handle, &from);
        if (r < 0)
                return r;
        to = answer_list(host, sizeof(*to), NVML_SUPPORTED_VGPU_SCHEDULER_POLICY_COUNT,
                         sizeof(*policies), &policies);
        if (!to)
                return -ENOMEM;
        *to = (struct vgpu_scheduler_capabilities){ .policies = policies,
                                                    .timeslice_min_ns = from.minTimeslice,
                                                    .timeslice_max_ns = from.maxTimeslice,
                                                    .has_arr = from.isArrModeSupported != 0,
                                                    .frequency_min_hz = from.minFrequencyForARR,
                                                    .frequency_max_hz = from.maxFrequencyForARR,
                                                    .average_factor_min = from.minAvgFactorForARR,
                                                    .average_factor_max = from.maxAvgFactorForARR };
        for (size_t i = 0; i < NVML_SUPPORTED_VGPU_SCHEDULER_POLICY_COUNT; i++)
                if (from.supportedSchedulers[i] != NVML_VGPU_SCHEDULER_POLICY_UNKNOWN)
                        policies[to->n_policies++] =
                                (enum vgpu_scheduler_policy)from.supportedSchedulers[i];
        *ret_capabilities = to;
        return 0;
}

/* What the old calls say: ARR decides which half of the union is meant. */
static struct vgpu_scheduler_state state_from_v1(unsigned int policy, unsigned int arr,
                                                 const nvmlVgpuSchedulerParams_t *parameters)
{
        bool has_arr = arr == NVML_VGPU_SCHEDULER_ARR_ENABLE;

        return (struct vgpu_scheduler_state){
                .engine = VGPU_SCHEDULER_GRAPHICS,
                .policy = (enum vgpu_scheduler_policy)policy,
                .arr = (enum vgpu_scheduler_arr)arr,
                .average_factor = has_arr ? parameters->vgpuSchedDataWithARR.avgFactor : 0,
                .timeslice_ns = has_arr ? parameters->vgpuSchedDataWithARR.timeslice
                                        : parameters->vgpuSchedData.timeslice
        };
}

/* The new ones have no word for ARR; a scheduler that does not average does not use it. */
static struct vgpu_scheduler_state state_from_v2(enum vgpu_scheduler_engine engine,
                                                 unsigned int policy, unsigned int average_factor,
                                                 unsigned int timeslice)
{
        return (struct vgpu_scheduler_state){ .engine = engine,
                                              .policy = (enum vgpu_scheduler_policy)policy,
                                              .arr = average_factor > 0
                                                             ? VGPU_SCHEDULER_ARR_ENABLED
                                                             : VGPU_SCHEDULER_ARR_DEFAULT,
                                              .average_factor = average_factor,
                                              .timeslice_ns = timeslice };
}

static int get_state_v2(struct vgpu_host *host, const struct place *place,
                        enum vgpu_scheduler_engine engine, struct vgpu_scheduler_state *ret_state)
{
        nvmlVgpuSchedulerStateInfo_v2_t info = { .engineId = (unsigned int)engine };
        int r;

        r = place->gpu_instance
                    ? HOST_CALL(host, place->about, nvmlGpuInstanceGetVgpuSchedulerState_v2,
                                place->gpu_instance, &info)
                    : HOST_CALL(host, place->about, nvmlDeviceGetVgpuSchedulerState_v2,
                                place->device, &info);
        *ret_state = state_from_v2(engine, info.schedulerPolicy, info.avgFactor, info.timeslice);
        return r;
}

static int get_state_v1(struct vgpu_host *host, const struct place *place,
                        enum vgpu_scheduler_engine engine, struct vgpu_scheduler_state *ret_state)
{
        nvmlVgpuSchedulerStateInfo_v1_t info = { .version = NVML_VERSION(
                                                         nvmlVgpuSchedulerStateInfo_v1_t, 1),
                                                 .engineId = (unsigned int)engine };
        nvmlVgpuSchedulerGetState_t state = { .schedulerPolicy = 0 };
        int r;

        if (place->gpu_instance) {
                r = HOST_CALL(host, place->about, nvmlGpuInstanceGetVgpuSchedulerState,
                              place->gpu_instance, &info);
                *ret_state =
                        state_from_v1(info.schedulerPolicy, info.arrMode, &info.schedulerParams);
                ret_state->engine = engine;
                return r;
        }
        r = expect_graphics(host, place, engine);
        if (r == 0)
                r = HOST_CALL(host, place->about, nvmlDeviceGetVgpuSchedulerState, place->device,
                              &state);
        *ret_state = state_from_v1(state.schedulerPolicy, state.arrMode, &state.schedulerParams);
        return r;
}

int vgpu_scheduler_lookup_state(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                enum vgpu_scheduler_engine engine,
                                struct vgpu_scheduler_state **ret_state)
{
        struct vgpu_scheduler_state state, *result;
        struct place place;
        int r;

        r = find_place(host, device, gpu_instance, &place);
        if (r < 0)
                return r;
        r = get_state_v2(host, &place, engine, &state);
        if (host_lacks(host, r))
                r = get_state_v1(host, &place, engine, &state);
        if (r < 0)
                return host_name_number(host, r, "engine", (int)engine);

        result = malloc(sizeof(*result));
        if (!result)
                return host_set_no_memory(host);
        *result = state;
        *ret_state = result;
        return 0;
}

/* The entries of both generations are in one struct of the newer; 0xffffffff is no weight. */
struct entries {
        struct vgpu_scheduler_state state;
        unsigned int count;
        struct vgpu_scheduler_log_entry list[NVML_SCHEDULER_SW_MAX_LOG_ENTRIES];
};

/* What the caller sees, and behind it what it points to. */
struct logged {
        struct vgpu_scheduler_log log;
        struct vgpu_scheduler_state state;
};

static unsigned int limit(unsigned int count)
{
        return count < NVML_SCHEDULER_SW_MAX_LOG_ENTRIES ? count
                                                         : NVML_SCHEDULER_SW_MAX_LOG_ENTRIES;
}

#define COPY_ENTRY(from_, weight_)                                                          \
        ((struct vgpu_scheduler_log_entry){ .time_ns = (from_).timestamp,                   \
                                            .run_ns = (from_).timeRun,                      \
                                            .run_total_ns = (from_).timeRunTotal,           \
                                            .target_timeslice_ns = (from_).targetTimeSlice, \
                                            .preemption_total_ns =                          \
                                                    (from_).cumulativePreemptionTime,       \
                                            .run_list = (from_).swRunlistId,                \
                                            .weight = (weight_) })

static int get_log_v2(struct vgpu_host *host, const struct place *place,
                      enum vgpu_scheduler_engine engine, struct entries *entries)
{
        CLEANUP(freep) nvmlVgpuSchedulerLogInfo_v2_t *log = calloc(1, sizeof(*log));
        int r;

        if (!log)
                return host_set_no_memory(host);
        log->engineId = (unsigned int)engine;
        r = place->gpu_instance
                    ? HOST_CALL(host, place->about, nvmlGpuInstanceGetVgpuSchedulerLog_v2,
                                place->gpu_instance, log)
                    : HOST_CALL(host, place->about, nvmlDeviceGetVgpuSchedulerLog_v2, place->device,
                                log);
        if (r < 0)
                return r;
        entries->state =
                state_from_v2(engine, log->schedulerPolicy, log->avgFactor, log->timeslice);
        entries->count = limit(log->entriesCount);
        for (unsigned int i = 0; i < entries->count; i++)
                entries->list[i] = COPY_ENTRY(log->logEntries[i], log->logEntries[i].weight);
        return 0;
}

static int get_gpu_instance_log_v1(struct vgpu_host *host, const struct place *place,
                                   enum vgpu_scheduler_engine engine, struct entries *entries)
{
        CLEANUP(freep) nvmlVgpuSchedulerLogInfo_v1_t *log = calloc(1, sizeof(*log));
        int r;

        if (!log)
                return host_set_no_memory(host);
        log->version = NVML_VERSION(nvmlVgpuSchedulerLogInfo_v1_t, 1);
        log->engineId = (unsigned int)engine;
        r = HOST_CALL(host, place->about, nvmlGpuInstanceGetVgpuSchedulerLog, place->gpu_instance,
                      log);
        if (r < 0)
                return r;
        entries->state = state_from_v1(log->schedulerPolicy, log->arrMode, &log->schedulerParams);
        entries->state.engine = engine;
        entries->count = limit(log->entriesCount);
        for (unsigned int i = 0; i < entries->count; i++)
                entries->list[i] = COPY_ENTRY(log->logEntries[i], VGPU_UNKNOWN);
        return 0;
}

/* From R590 on the engine is looked at; before, it was only written. */
static int get_device_log_v1(struct vgpu_host *host, const struct place *place,
                             enum vgpu_scheduler_engine engine, struct entries *entries)
{
        CLEANUP(freep) nvmlVgpuSchedulerLog_t *log = calloc(1, sizeof(*log));
        int r;

        if (!log)
                return host_set_no_memory(host);
        log->engineId = (unsigned int)engine;
        r = expect_graphics(host, place, engine);
        if (r == 0)
                r = HOST_CALL(host, place->about, nvmlDeviceGetVgpuSchedulerLog, place->device,
                              log);
        if (r < 0)
                return r;
        entries->state = state_from_v1(log->schedulerPolicy, log->arrMode, &log->schedulerParams);
        entries->count = limit(log->entriesCount);
        for (unsigned int i = 0; i < entries->count; i++)
                entries->list[i] = COPY_ENTRY(log->logEntries[i], VGPU_UNKNOWN);
        return 0;
}

int vgpu_scheduler_lookup_log(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                              enum vgpu_scheduler_engine engine,
                              struct vgpu_scheduler_log **ret_log)
{
        CLEANUP(freep) struct entries *entries = calloc(1, sizeof(*entries));
        struct vgpu_scheduler_log_entry *list, **pointers;
        struct logged *logged;
        struct place place;
        int r;

        if (!entries)
                return host_set_no_memory(host);
        r = find_place(host, device, gpu_instance, &place);
        if (r < 0)
                return r;
        r = get_log_v2(host, &place, engine, entries);
        if (host_lacks(host, r))
                r = place.gpu_instance ? get_gpu_instance_log_v1(host, &place, engine, entries)
                                       : get_device_log_v1(host, &place, engine, entries);
        if (r < 0)
                return host_name_number(host, r, "engine", (int)engine);

        logged = answer_records(host, sizeof(*logged), entries->count, sizeof(*list), &list,
                                &pointers);
        if (!logged)
                return -ENOMEM;
        memcpy(list, entries->list, entries->count * sizeof(*list));
        logged->state = entries->state;
        logged->log = (struct vgpu_scheduler_log){ .state = &logged->state,
                                                   .n_entries = entries->count,
                                                   .entries = (const void *)pointers };
        *ret_log = &logged->log;
        return 0;
}

static int set_v2(struct vgpu_host *host, const struct place *place,
                  const struct vgpu_scheduler_settings *settings)
{
        nvmlVgpuSchedulerState_v2_t state = { .engineId = (unsigned int)settings->engine,
                                              .schedulerPolicy = (unsigned int)settings->policy,
                                              .avgFactor = settings->average_factor,
                                              .frequency = settings->frequency_hz };

        return place->gpu_instance
                       ? HOST_CALL(host, place->about, nvmlGpuInstanceSetVgpuSchedulerState_v2,
                                   place->gpu_instance, &state)
                       : HOST_CALL(host, place->about, nvmlDeviceSetVgpuSchedulerState_v2,
                                   place->device, &state);
}

static nvmlVgpuSchedulerSetParams_t get_parameters(const struct vgpu_scheduler_settings *settings)
{
        nvmlVgpuSchedulerSetParams_t parameters = { .vgpuSchedDataWithARR = { 0, 0 } };

        if (settings->arr == VGPU_SCHEDULER_ARR_ENABLED) {
                parameters.vgpuSchedDataWithARR.avgFactor = settings->average_factor;
                parameters.vgpuSchedDataWithARR.frequency = settings->frequency_hz;
        } else {
                parameters.vgpuSchedData.timeslice = settings->timeslice_ns;
        }
        return parameters;
}

static int set_v1(struct vgpu_host *host, const struct place *place,
                  const struct vgpu_scheduler_settings *settings)
{
        nvmlVgpuSchedulerState_v1_t state = { .version =
                                                      NVML_VERSION(nvmlVgpuSchedulerState_v1_t, 1),
                                              .engineId = (unsigned int)settings->engine,
                                              .schedulerPolicy = (unsigned int)settings->policy,
                                              .enableARRMode = (unsigned int)settings->arr,
                                              .schedulerParams = get_parameters(settings) };
        nvmlVgpuSchedulerSetState_t device_state = { .schedulerPolicy = state.schedulerPolicy,
                                                     .enableARRMode = state.enableARRMode,
                                                     .schedulerParams = state.schedulerParams };
        int r;

        if (place->gpu_instance)
                return HOST_CALL(host, place->about, nvmlGpuInstanceSetVgpuSchedulerState,
                                 place->gpu_instance, &state);
        r = expect_graphics(host, place, settings->engine);
        return r < 0 ? r
                     : HOST_CALL(host, place->about, nvmlDeviceSetVgpuSchedulerState, place->device,
                                 &device_state);
}

static bool has_policy(const struct vgpu_scheduler_capabilities *capabilities,
                       enum vgpu_scheduler_policy policy)
{
        for (size_t i = 0; i < capabilities->n_policies; i++)
                if (capabilities->policies[i] == policy)
                        return true;
        return policy == VGPU_SCHEDULER_BEST_EFFORT;
}

/* Which of the settings the driver cannot have meant to accept: it does not say. */
static int explain(struct vgpu_host *host, uint32_t device,
                   const struct vgpu_scheduler_settings *settings, const struct error *failed)
{
        CLEANUP(freep) struct vgpu_scheduler_capabilities *can = NULL;
        struct range {
                const char *name;
                uint32_t value, min, max;
        } ranges[3];

        if (vgpu_scheduler_lookup_capabilities(host, device, &can) < 0) {
                host->error = *failed;
                return failed->value.code;
        }
        if (!has_policy(can, settings->policy))
                return host_explain(host, failed, "policy", "the device has no policy %d",
                                    (int)settings->policy);
        ranges[0] = (struct range){ "average_factor", settings->average_factor,
                                    can->average_factor_min, can->average_factor_max };
        ranges[1] = (struct range){ "frequency_hz", settings->frequency_hz, can->frequency_min_hz,
                                    can->frequency_max_hz };
        ranges[2] = (struct range){ "timeslice_ns", settings->timeslice_ns, can->timeslice_min_ns,
                                    can->timeslice_max_ns };
        for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
                if (ranges[i].value != 0 &&
                    (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max))
                        return host_explain(host, failed, ranges[i].name,
                                            "%s must be %u to %u, not %u", ranges[i].name,
                                            ranges[i].min, ranges[i].max, ranges[i].value);
        if (strcmp(vgpu_scheduler_engine_get_name(settings->engine), "unknown") == 0)
                return host_explain(host, failed, "engine", "there is no engine %d",
                                    (int)settings->engine);
        host->error = *failed;
        return failed->value.code;
}

static int set(struct vgpu_host *host, const struct place *place,
               const struct vgpu_scheduler_settings *settings)
{
        int r;

        /* The newer calls have no word for it, so no driver would notice. */
        if ((unsigned int)settings->arr > VGPU_SCHEDULER_ARR_ENABLED)
                return host_set_parameter(host, place->about, "arr",
                                          "arr is 0 (default), 1 (disabled) or 2 (enabled), not %d",
                                          (int)settings->arr);
        if (settings->arr == VGPU_SCHEDULER_ARR_DISABLED || settings->timeslice_ns > 0)
                return set_v1(host, place, settings);
        r = set_v2(host, place, settings);
        return host_lacks(host, r) ? set_v1(host, place, settings) : r;
}

int vgpu_scheduler_set_state(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                             const struct vgpu_scheduler_settings *settings)
{
        struct vgpu_scheduler_settings copy = VGPU_SCHEDULER_SETTINGS_INIT;
        struct error failed;
        struct place place;
        int r;

        error_clear(&host->error);
        r = error_copy_options(&host->error, &copy, sizeof(copy), settings, settings->size);
        if (r == 0)
                r = find_place(host, device, gpu_instance, &place);
        if (r < 0)
                return r;

        r = set(host, &place, &copy);
        failed = host->error;
        return r < 0 && failed.value.kind == VGPU_ERROR_INVALID_PARAMETER && !*failed.parameter
                       ? explain(host, device, &copy, &failed)
                       : r;
}
