/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes settings. The library checks the arguments in the order of NVML's documents. Then the manager
 * decides whether the caller may change the setting, and whether this is possible now.
 */
#include <stdio.h>

#include "nvml/control.h"
#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* A site in the terms of the control protocol. */
struct site_text {
        char json[STATE_UUID_MAX + 64];
};

static struct site_text get_text(const struct site *site)
{
        struct site_text text;
        int n = snprintf(text.json, sizeof(text.json), "\"device\":\"%.47s\"", site->device.uuid);

        if (site->gpu_instance != STATE_NONE)
                snprintf(text.json + n, sizeof(text.json) - (size_t)n, ",\"gpu_instance\":%u",
                         site->gpu_instance);
        return text;
}

static const char *get_bool(bool value)
{
        return value ? "true" : "false";
}

/* A device that may be asked to become a host of vGPUs, so it need not be one yet. */
nvmlReturn_t our_nvmlDeviceSetVirtualizationMode(nvmlDevice_t handle,
                                                 nvmlGpuVirtualizationMode_t mode)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute() && !view_knows(handle))
                return NVML_REAL(nvmlDeviceSetVirtualizationMode)(handle, mode);
        r = view_device(&device, handle, mode <= NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA);
        if (r != NVML_SUCCESS)
                return r;
        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        return control_call("SetVirtualizationMode", "\"device\":\"%.47s\",\"mode\":%d",
                            device.uuid, (int)mode);
}

static nvmlReturn_t set_heterogeneous(const struct site *site,
                                      const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        if (mode->version != NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (mode->mode > NVML_FEATURE_ENABLED)
                return NVML_ERROR_INVALID_ARGUMENT;
        return control_call("SetVgpuHeterogeneousMode", "%s,\"enabled\":%s", get_text(site).json,
                            get_bool(mode->mode));
}

nvmlReturn_t our_nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_t handle,
                                                    const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, mode);

        return r == NVML_SUCCESS ? set_heterogeneous(&site, mode) : r;
}

nvmlReturn_t our_nvmlGpuInstanceSetVgpuHeterogeneousMode(nvmlGpuInstance_t handle,
                                                         const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, mode);

        return r == NVML_SUCCESS ? set_heterogeneous(&site, mode) : r;
}

nvmlReturn_t our_nvmlDeviceSetVgpuCapabilities(nvmlDevice_t handle,
                                               nvmlDeviceVgpuCapability_t capability,
                                               nvmlEnableState_t state)
{
        struct site site;
        nvmlReturn_t r;

        if (capability >= NVML_DEVICE_VGPU_CAP_COUNT || state > NVML_FEATURE_ENABLED)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = site_of_device(&site, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        return control_call("SetVgpuCapability", "%s,\"capability\":%d,\"enabled\":%s",
                            get_text(&site).json, (int)capability, get_bool(state));
}

nvmlReturn_t our_nvmlDeviceVgpuForceGspUnload(nvmlDevice_t handle)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        return r == NVML_SUCCESS ? control_call("ForceGspUnload", "%s", get_text(&site).json) : r;
}

/* Accounting on a host of vGPUs belongs to the vGPUs. */
nvmlReturn_t our_nvmlDeviceSetAccountingMode(nvmlDevice_t handle, nvmlEnableState_t mode)
{
        struct site site;
        nvmlReturn_t r;

        if (mode > NVML_FEATURE_ENABLED)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = site_of_whole_device(&site, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        return control_call("SetAccountingMode", "%s,\"enabled\":%s", get_text(&site).json,
                            get_bool(mode));
}

/* The host's range, which a guest has nothing to do with; NULL and order before that. */
nvmlReturn_t our_nvmlSetVgpuVersion(nvmlVgpuVersion_t *range)
{
        struct state_host host;

        if (!range || range->minVersion > range->maxVersion)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (view_is_guest() || !state_read_host(view_state_page(), 0, &host))
                return NVML_ERROR_NOT_SUPPORTED;
        if (range->minVersion < host.supported_min || range->maxVersion > host.supported_max)
                return NVML_ERROR_INVALID_ARGUMENT;
        return control_call("SetVgpuVersionRange", "\"min\":%u,\"max\":%u", range->minVersion,
                            range->maxVersion);
}

/* The handle is looked at before the range. */
nvmlReturn_t our_nvmlVgpuInstanceSetEncoderCapacity(nvmlVgpuInstance_t id, unsigned int percent)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, true);

        if (r != NVML_SUCCESS)
                return r;
        if (percent > 100)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        return control_call("SetVgpuEncoderCapacity", "\"name\":\"%u\",\"percent\":%u", id,
                            percent);
}

nvmlReturn_t our_nvmlVgpuInstanceClearAccountingPids(nvmlVgpuInstance_t id)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, true);

        if (r != NVML_SUCCESS)
                return r;
        if (instance.value.accounting != 1 || view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        return control_call("ClearVgpuAccounting", "\"name\":\"%u\"", id);
}

/* Schedulers. What all four calls come to. */
struct scheduler_change {
        unsigned int engine;
        unsigned int policy;
        unsigned int arr; /* NVML_VGPU_SCHEDULER_ARR_* */
        /* 0: the default; with ARR the first two count, without it the last. */
        unsigned int averaging_factor, frequency, time_slice;
};

/* Which half of the caller's union has been filled. A caller that leaves ARR open means what is usual. */
static void read_parameters(struct scheduler_change *change, const struct site *site,
                            const nvmlVgpuSchedulerSetParams_t *parameters)
{
        struct state_device_detail detail;
        bool has_arr = change->arr == NVML_VGPU_SCHEDULER_ARR_ENABLE;

        if (change->arr == NVML_VGPU_SCHEDULER_ARR_DEFAULT)
                has_arr = state_read_device_detail(site->state_page, site->device.index, &detail) &&
                          detail.scheduler.can_arr;
        if (has_arr) {
                change->averaging_factor = parameters->vgpuSchedDataWithARR.avgFactor;
                change->frequency = parameters->vgpuSchedDataWithARR.frequency;
        } else {
                change->time_slice = parameters->vgpuSchedData.timeslice;
        }
}

static nvmlReturn_t set_scheduler(const struct site *site, const struct scheduler_change *change)
{
        static const char *const arr[] = { "", ",\"arr\":false", ",\"arr\":true" };

        if (change->engine < STATE_ENGINE_GRAPHICS || change->engine > STATE_ENGINE_NVENC0 ||
            change->policy < NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT ||
            change->policy > NVML_VGPU_SCHEDULER_POLICY_FIXED_SHARE ||
            change->arr > NVML_VGPU_SCHEDULER_ARR_ENABLE)
                return NVML_ERROR_INVALID_ARGUMENT;
        return control_call("SetVgpuSchedulerState",
                            "%s,\"engine\":%u,\"policy\":%u%s,\"averaging_factor\":%u,"
                            "\"frequency\":%u,\"time_slice\":%u",
                            get_text(site).json, change->engine, change->policy, arr[change->arr],
                            change->averaging_factor, change->frequency, change->time_slice);
}

nvmlReturn_t our_nvmlDeviceSetVgpuSchedulerState(nvmlDevice_t handle,
                                                 nvmlVgpuSchedulerSetState_t *state)
{
        struct scheduler_change change;
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, state);

        if (r != NVML_SUCCESS)
                return r;
        change = (struct scheduler_change){ .engine = STATE_ENGINE_GRAPHICS,
                                            .policy = state->schedulerPolicy,
                                            .arr = state->enableARRMode };
        read_parameters(&change, &site, &state->schedulerParams);
        return set_scheduler(&site, &change);
}

nvmlReturn_t our_nvmlGpuInstanceSetVgpuSchedulerState(nvmlGpuInstance_t handle,
                                                      nvmlVgpuSchedulerState_v1_t *state)
{
        struct scheduler_change change;
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, state);

        if (r != NVML_SUCCESS)
                return r;
        if (state->version != NVML_VERSION(nvmlVgpuSchedulerState_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        change = (struct scheduler_change){ .engine = state->engineId,
                                            .policy = state->schedulerPolicy,
                                            .arr = state->enableARRMode };
        read_parameters(&change, &site, &state->schedulerParams);
        return set_scheduler(&site, &change);
}

/* The second generation can't switch ARR off, so it does not speak of it. */
static nvmlReturn_t set_scheduler_v2(const struct site *site,
                                     const nvmlVgpuSchedulerState_v2_t *state)
{
        const struct scheduler_change change = { .engine = state->engineId,
                                                 .policy = state->schedulerPolicy,
                                                 .arr = NVML_VGPU_SCHEDULER_ARR_DEFAULT,
                                                 .averaging_factor = state->avgFactor,
                                                 .frequency = state->frequency };

        return set_scheduler(site, &change);
}

nvmlReturn_t our_nvmlDeviceSetVgpuSchedulerState_v2(nvmlDevice_t handle,
                                                    nvmlVgpuSchedulerState_v2_t *state)
{
        struct site site;
        nvmlReturn_t r = site_of_whole_device(&site, handle, state);

        return r == NVML_SUCCESS ? set_scheduler_v2(&site, state) : r;
}

nvmlReturn_t our_nvmlGpuInstanceSetVgpuSchedulerState_v2(nvmlGpuInstance_t handle,
                                                         nvmlVgpuSchedulerState_v2_t *state)
{
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, state);

        return r == NVML_SUCCESS ? set_scheduler_v2(&site, state) : r;
}
