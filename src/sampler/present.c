/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device without an encoder answers NOT_SUPPORTED, and so may any function on a device with MIG: then
 * there are none. An error that may pass is the same as none, too, until the next time.
 */
#include "sampler/present.h"

#include "sampler/library.h"
#include "sampler/tell.h"

/* More than these are not told. */
#define PROCESSES_MAX 4096
#define SESSIONS_MAX  1024

static nvmlProcessInfo_t processes[PROCESSES_MAX];
static nvmlEncoderSessionInfo_t encoders[SESSIONS_MAX];
static nvmlFBCSessionInfo_t captures[SESSIONS_MAX];

/* How many there are by the answer @r, which has set @count. */
static unsigned int settle(nvmlReturn_t r, unsigned int count, bool *lacks)
{
        *lacks = r == NVML_ERROR_NOT_SUPPORTED || r == NVML_ERROR_FUNCTION_NOT_FOUND;
        return r == NVML_SUCCESS ? count : 0;
}

static int tell_memory(struct present *present, nvmlDevice_t handle, uint32_t device)
{
        unsigned int n = PROCESSES_MAX;
        nvmlReturn_t answer;
        int r = 0;

        if (!library.list_processes || present->lacks_processes)
                return 0;
        answer = library.list_processes(handle, &n, processes);
        n = settle(answer, n, &present->lacks_processes);
        for (unsigned int i = 0; r == 0 && i < n; i++) {
                struct sampler_packet packet = { .pid = processes[i].pid,
                                                 .memory = processes[i].usedGpuMemory };

                if (packet.memory != (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
                        r = tell(&packet, SAMPLER_MEMORY, device);
        }
        return r;
}

static int tell_encoders(struct present *present, nvmlDevice_t handle, uint32_t device)
{
        unsigned int n = SESSIONS_MAX;
        nvmlReturn_t answer;
        int r = 0;

        if (!library.list_encoders || present->lacks_encoders)
                return 0;
        answer = library.list_encoders(handle, &n, encoders);
        n = settle(answer, n, &present->lacks_encoders);
        for (unsigned int i = 0; r == 0 && i < n; i++) {
                const nvmlEncoderSessionInfo_t *from = &encoders[i];
                struct sampler_packet packet = { .pid = from->pid,
                                                 .session = { .id = from->sessionId,
                                                              .kind = from->codecType,
                                                              .width = from->hResolution,
                                                              .height = from->vResolution,
                                                              .fps = from->averageFps,
                                                              .latency_us =
                                                                      from->averageLatency } };

                r = tell(&packet, SAMPLER_ENCODER, device);
        }
        return r;
}

static int tell_captures(struct present *present, nvmlDevice_t handle, uint32_t device)
{
        unsigned int n = SESSIONS_MAX;
        nvmlReturn_t answer;
        int r = 0;

        if (!library.list_captures || present->lacks_captures)
                return 0;
        answer = library.list_captures(handle, &n, captures);
        n = settle(answer, n, &present->lacks_captures);
        for (unsigned int i = 0; r == 0 && i < n; i++) {
                const nvmlFBCSessionInfo_t *from = &captures[i];
                struct sampler_packet packet = { .pid = from->pid,
                                                 .session = { .id = from->sessionId,
                                                              .kind = from->sessionType,
                                                              .width = from->hResolution,
                                                              .height = from->vResolution,
                                                              .fps = from->averageFPS,
                                                              .latency_us = from->averageLatency,
                                                              .display = from->displayOrdinal,
                                                              .flags = from->sessionFlags,
                                                              .max_width = from->hMaxResolution,
                                                              .max_height =
                                                                      from->vMaxResolution } };

                r = tell(&packet, SAMPLER_CAPTURE, device);
        }
        return r;
}

int present_tell(struct present *present, nvmlDevice_t handle, uint32_t device)
{
        struct sampler_packet packet = { .pid = 0 };
        int r = tell_memory(present, handle, device);

        if (r == 0)
                r = tell_encoders(present, handle, device);
        if (r == 0)
                r = tell_captures(present, handle, device);
        return r == 0 ? tell(&packet, SAMPLER_THAT_IS_ALL, device) : r;
}
