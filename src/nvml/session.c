/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the sessions of the encoder and of frame-buffer capture, of one vGPU or of all of a device. These
 * lists have a protocol of their own: a question without room gets the number, with success.
 */
#include <stdatomic.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* Whose sessions: of a vGPU, or (@instance 0) of all on a device. */
struct whose {
        const struct state_page *state_page;
        uint32_t instance; /* id */
        uint32_t device;
};

static nvmlReturn_t of_instance(struct whose *ret_whose, nvmlVgpuInstance_t id, bool has_pointers)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, has_pointers);

        if (r == NVML_SUCCESS)
                *ret_whose = (struct whose){ .state_page = instance.state_page, .instance = id };
        return r;
}

/* A guest's device is its vGPU. */
static nvmlReturn_t of_device(struct whose *ret_whose, nvmlDevice_t handle, bool has_pointers)
{
        struct state_device device;
        struct view_instance own;
        nvmlReturn_t r = view_device(&device, handle, has_pointers);

        if (r == NVML_SUCCESS)
                *ret_whose = (struct whose){
                        .state_page = view_state_page(),
                        .instance = view_own_instance(&own) ? own.value.id : 0,
                        .device = device.index,
                };
        return r;
}

static bool is_theirs(const struct whose *whose, uint32_t instance, uint32_t device)
{
        return whose->instance != 0 ? instance == whose->instance : device == whose->device;
}

static bool next_encoder(struct state_encoder_session *ret_session, uint32_t *cursor,
                         const struct whose *whose)
{
        uint32_t end = state_end_encoder_session(whose->state_page);

        while (*cursor < end)
                if (state_read_encoder_session(whose->state_page, (*cursor)++, ret_session) &&
                    is_theirs(whose, ret_session->instance, ret_session->device))
                        return true;
        return false;
}

static bool next_capture(struct state_capture_session *ret_session, uint32_t *cursor,
                         const struct whose *whose)
{
        uint32_t end = state_end_capture_session(whose->state_page);

        while (*cursor < end)
                if (state_read_capture_session(whose->state_page, (*cursor)++, ret_session) &&
                    is_theirs(whose, ret_session->instance, ret_session->device))
                        return true;
        return false;
}

/* A guest is not told the id that its vGPU has on the host. */
static nvmlVgpuInstance_t shown_id(uint32_t instance)
{
        return view_is_guest() ? 0 : instance;
}

static nvmlReturn_t list_encoder(const struct whose *whose, unsigned int *count,
                                 nvmlEncoderSessionInfo_t *sessions)
{
        struct state_encoder_session session;
        unsigned int room = *count, n = 0;

        if (!sessions && room > 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        for (uint32_t cursor = 0; next_encoder(&session, &cursor, whose);)
                n++;
        if (room == 0 || n > room)
                return answer_room_or_count(count, n);
        n = 0;
        for (uint32_t cursor = 0; n < room && next_encoder(&session, &cursor, whose); n++)
                sessions[n] = (nvmlEncoderSessionInfo_t){
                        .sessionId = session.id,
                        .pid = session.pid,
                        .vgpuInstance = shown_id(session.instance),
                        .codecType = (nvmlEncoderType_t)session.codec,
                        .hResolution = session.width,
                        .vResolution = session.height,
                        .averageFps = session.fps,
                        .averageLatency = session.latency,
                };
        *count = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t list_capture(const struct whose *whose, unsigned int *count,
                                 nvmlFBCSessionInfo_t *sessions)
{
        struct state_capture_session session;
        unsigned int room = *count, n = 0;

        if (!sessions && room > 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        for (uint32_t cursor = 0; next_capture(&session, &cursor, whose);)
                n++;
        if (room == 0 || n > room)
                return answer_room_or_count(count, n);
        n = 0;
        for (uint32_t cursor = 0; n < room && next_capture(&session, &cursor, whose); n++)
                sessions[n] = (nvmlFBCSessionInfo_t){
                        .sessionId = session.id,
                        .pid = session.pid,
                        .vgpuInstance = shown_id(session.instance),
                        .displayOrdinal = session.display,
                        .sessionType = (nvmlFBCSessionType_t)session.kind,
                        .sessionFlags = session.flags,
                        .hMaxResolution = session.max_width,
                        .vMaxResolution = session.max_height,
                        .hResolution = session.width,
                        .vResolution = session.height,
                        .averageFPS = session.fps,
                        .averageLatency = session.latency,
                };
        *count = n;
        return NVML_SUCCESS;
}

/* Averages over all sessions. */
struct average {
        unsigned int n;
        uint64_t fps, latency;
};

static void add(struct average *average, unsigned int fps, unsigned int latency)
{
        average->n++;
        average->fps += fps;
        average->latency += latency;
}

static unsigned int mean(uint64_t sum, unsigned int n)
{
        return n > 0 ? (unsigned int)(sum / n) : 0;
}

static void average_encoder(const struct whose *whose, unsigned int *sessions, unsigned int *fps,
                            unsigned int *latency_us)
{
        struct state_encoder_session session;
        struct average average = { 0 };

        for (uint32_t cursor = 0; next_encoder(&session, &cursor, whose);)
                add(&average, session.fps, session.latency);
        *sessions = average.n;
        *fps = mean(average.fps, average.n);
        *latency_us = mean(average.latency, average.n);
}

static void average_capture(const struct whose *whose, nvmlFBCStats_t *stats)
{
        struct state_capture_session session;
        struct average average = { 0 };

        for (uint32_t cursor = 0; next_capture(&session, &cursor, whose);)
                add(&average, session.fps, session.latency);
        *stats = (nvmlFBCStats_t){ .sessionsCount = average.n,
                                   .averageFPS = mean(average.fps, average.n),
                                   .averageLatency = mean(average.latency, average.n) };
}

nvmlReturn_t our_nvmlVgpuInstanceGetEncoderStats(nvmlVgpuInstance_t id, unsigned int *sessions,
                                                 unsigned int *fps, unsigned int *latency_us)
{
        struct whose whose;
        nvmlReturn_t r = of_instance(&whose, id, sessions && fps && latency_us);

        if (r == NVML_SUCCESS)
                average_encoder(&whose, sessions, fps, latency_us);
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetEncoderSessions(nvmlVgpuInstance_t id, unsigned int *count,
                                                    nvmlEncoderSessionInfo_t *sessions)
{
        struct whose whose;
        nvmlReturn_t r = of_instance(&whose, id, count);

        return r == NVML_SUCCESS ? list_encoder(&whose, count, sessions) : r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetFBCStats(nvmlVgpuInstance_t id, nvmlFBCStats_t *stats)
{
        struct whose whose;
        nvmlReturn_t r = of_instance(&whose, id, stats);

        if (r == NVML_SUCCESS)
                average_capture(&whose, stats);
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetFBCSessions(nvmlVgpuInstance_t id, unsigned int *count,
                                                nvmlFBCSessionInfo_t *sessions)
{
        struct whose whose;
        nvmlReturn_t r = of_instance(&whose, id, count);

        return r == NVML_SUCCESS ? list_capture(&whose, count, sessions) : r;
}

/* From Ada on; Hopper has no encoder, and its driver answers for the older codecs only. */
static bool encodes_av1(nvmlDevice_t handle)
{
        nvmlDeviceArchitecture_t architecture;

        return our_nvmlDeviceGetArchitecture(handle, &architecture) == NVML_SUCCESS &&
               architecture >= NVML_DEVICE_ARCH_ADA && architecture != NVML_DEVICE_ARCH_HOPPER &&
               architecture != NVML_DEVICE_ARCH_UNKNOWN;
}

/* What the vGPUs leave of the encoder is the device's. */
nvmlReturn_t our_nvmlDeviceGetEncoderCapacity(nvmlDevice_t handle, nvmlEncoderType_t codec,
                                              unsigned int *percent)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, percent && codec <= NVML_ENCODER_QUERY_AV1);

        if (r == NVML_SUCCESS && codec == NVML_ENCODER_QUERY_AV1 && !encodes_av1(handle))
                return NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                *percent = device.utilization_encoder < 100 ? 100 - device.utilization_encoder : 0;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetEncoderStats(nvmlDevice_t handle, unsigned int *sessions,
                                           unsigned int *fps, unsigned int *latency_us)
{
        struct whose whose;
        nvmlReturn_t r = of_device(&whose, handle, sessions && fps && latency_us);

        if (r == NVML_SUCCESS)
                average_encoder(&whose, sessions, fps, latency_us);
        return r;
}

nvmlReturn_t our_nvmlDeviceGetEncoderSessions(nvmlDevice_t handle, unsigned int *count,
                                              nvmlEncoderSessionInfo_t *sessions)
{
        struct whose whose;
        nvmlReturn_t r = of_device(&whose, handle, count);

        return r == NVML_SUCCESS ? list_encoder(&whose, count, sessions) : r;
}

nvmlReturn_t our_nvmlDeviceGetFBCStats(nvmlDevice_t handle, nvmlFBCStats_t *stats)
{
        struct whose whose;
        nvmlReturn_t r = of_device(&whose, handle, stats);

        if (r == NVML_SUCCESS)
                average_capture(&whose, stats);
        return r;
}

nvmlReturn_t our_nvmlDeviceGetFBCSessions(nvmlDevice_t handle, unsigned int *count,
                                          nvmlFBCSessionInfo_t *sessions)
{
        struct whose whose;
        nvmlReturn_t r = of_device(&whose, handle, count);

        return r == NVML_SUCCESS ? list_capture(&whose, count, sessions) : r;
}
