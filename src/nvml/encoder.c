/* SPDX-License-Identifier: Apache-2.0 */
/* Encoder and frame-buffer capture: nothing in a vGPU of ours uses them, so all lists are empty. */
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static nvmlReturn_t find_instance(nvmlVgpuInstance_t id, bool has_pointers)
{
        struct board_instance instance;

        if (!has_pointers || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        return view_instance(&instance, id) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t find_device(nvmlDevice_t handle, bool has_pointers)
{
        struct board_device device;

        return has_pointers && view_device(&device, handle) ? NVML_SUCCESS
                                                            : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t no_encoder_stats(nvmlReturn_t found, unsigned int *sessions, unsigned int *fps,
                                     unsigned int *latency_us)
{
        if (found == NVML_SUCCESS)
                *sessions = *fps = *latency_us = 0;
        return found;
}

static nvmlReturn_t no_capture_stats(nvmlReturn_t found, nvmlFBCStats_t *stats)
{
        if (found == NVML_SUCCESS)
                *stats = (nvmlFBCStats_t){ 0 };
        return found;
}

static nvmlReturn_t no_sessions(nvmlReturn_t found, unsigned int *count)
{
        return found == NVML_SUCCESS ? answer_room_or_count(count, 0) : found;
}

nvmlReturn_t our_nvmlVgpuInstanceGetEncoderCapacity(nvmlVgpuInstance_t id, unsigned int *percent)
{
        nvmlReturn_t r = find_instance(id, percent);

        if (r == NVML_SUCCESS)
                *percent = 100;
        return r;
}

/* The handle is looked at before the range. */
nvmlReturn_t our_nvmlVgpuInstanceSetEncoderCapacity(nvmlVgpuInstance_t id, unsigned int percent)
{
        nvmlReturn_t r = find_instance(id, true);

        if (r != NVML_SUCCESS)
                return r;
        return percent > 100 ? NVML_ERROR_INVALID_ARGUMENT : answer_change();
}

nvmlReturn_t our_nvmlVgpuInstanceGetEncoderStats(nvmlVgpuInstance_t id, unsigned int *sessions,
                                                 unsigned int *fps, unsigned int *latency_us)
{
        return no_encoder_stats(find_instance(id, sessions && fps && latency_us), sessions, fps,
                                latency_us);
}

nvmlReturn_t our_nvmlVgpuInstanceGetEncoderSessions(nvmlVgpuInstance_t id, unsigned int *count,
                                                    nvmlEncoderSessionInfo_t *sessions)
{
        (void)sessions;
        return no_sessions(find_instance(id, count), count);
}

nvmlReturn_t our_nvmlVgpuInstanceGetFBCStats(nvmlVgpuInstance_t id, nvmlFBCStats_t *stats)
{
        return no_capture_stats(find_instance(id, stats), stats);
}

nvmlReturn_t our_nvmlVgpuInstanceGetFBCSessions(nvmlVgpuInstance_t id, unsigned int *count,
                                                nvmlFBCSessionInfo_t *sessions)
{
        (void)sessions;
        return no_sessions(find_instance(id, count), count);
}

nvmlReturn_t our_nvmlDeviceGetEncoderCapacity(nvmlDevice_t handle, nvmlEncoderType_t codec,
                                              unsigned int *percent)
{
        nvmlReturn_t r = find_device(handle, percent && codec <= NVML_ENCODER_QUERY_AV1);

        if (r == NVML_SUCCESS)
                *percent = 100;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetEncoderStats(nvmlDevice_t handle, unsigned int *sessions,
                                           unsigned int *fps, unsigned int *latency_us)
{
        return no_encoder_stats(find_device(handle, sessions && fps && latency_us), sessions, fps,
                                latency_us);
}

nvmlReturn_t our_nvmlDeviceGetEncoderSessions(nvmlDevice_t handle, unsigned int *count,
                                              nvmlEncoderSessionInfo_t *sessions)
{
        (void)sessions;
        return no_sessions(find_device(handle, count), count);
}

nvmlReturn_t our_nvmlDeviceGetFBCStats(nvmlDevice_t handle, nvmlFBCStats_t *stats)
{
        return no_capture_stats(find_device(handle, stats), stats);
}

nvmlReturn_t our_nvmlDeviceGetFBCSessions(nvmlDevice_t handle, unsigned int *count,
                                          nvmlFBCSessionInfo_t *sessions)
{
        (void)sessions;
        return no_sessions(find_device(handle, count), count);
}
