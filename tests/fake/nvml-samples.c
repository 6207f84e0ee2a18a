/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library in the place of NVIDIA's for the sampler. Two files say what it answers:
 *
 *   FAKE_NVML_SAMPLES   who has used what, lines of "UUID PID SM MEMORY ENCODER DECODER JPEG OFA". The
 *                       samples of each process but the first of a device lag by LAG_US behind those of the one
 *                       before it. With PID 0 the device has fallen off the bus.
 *   FAKE_NVML_PRESENT   what is there now, lines of
 *                       "UUID memory PID BYTES",
 *                       "UUID encoder PID ID CODEC WIDTH HEIGHT FPS LATENCY" and
 *                       "UUID capture PID ID TYPE WIDTH HEIGHT FPS LATENCY DISPLAY FLAGS MAXWIDTH MAXHEIGHT"
 *
 * Without the file that is not supported, as it is on a device with MIG or without an encoder. Built with
 * FAKE_IS_OLD it lacks the functions of the second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml-limit.h"
#include "base/clock.h"

#define LAG_US 400000u

#define EXPORT __attribute__((visibility("default")))

struct nvmlDevice_st {
        char uuid[64];
};

static struct nvmlDevice_st devices[8];
static unsigned int n_devices;

EXPORT nvmlReturn_t nvmlInit_v2(void);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_v1_t *info);

#ifndef FAKE_IS_OLD
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                            unsigned int *count,
                                                            nvmlProcessInfo_t *processes);
EXPORT nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count,
                                                 nvmlEncoderSessionInfo_t *sessions);
EXPORT nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *count,
                                             nvmlFBCSessionInfo_t *sessions);
#endif

nvmlReturn_t nvmlInit_v2(void)
{
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
        if (n_devices == 8)
                return NVML_ERROR_NOT_FOUND;
        snprintf(devices[n_devices].uuid, sizeof(devices[n_devices].uuid), "%s", uuid);
        *device = &devices[n_devices++];
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t *info)
{
        const char *path = getenv("FAKE_NVML_SAMPLES");
        FILE *file = path ? fopen(path, "re") : NULL;
        nvmlProcessUtilizationInfo_v1_t process;
        unsigned int n = 0;
        char uuid[64];

        if (!file)
                return NVML_ERROR_NOT_SUPPORTED;
        while (n < info->processSamplesCount &&
               fscanf(file, "%63s %u %u %u %u %u %u %u", uuid, &process.pid, &process.smUtil,
                      &process.memUtil, &process.encUtil, &process.decUtil, &process.jpgUtil,
                      &process.ofaUtil) == 8) {
                if (strcmp(uuid, device->uuid) == 0 && process.pid == 0) {
                        fclose(file);
                        return NVML_ERROR_GPU_IS_LOST;
                }
                process.timeStamp = clock_now(CLOCK_REALTIME) / 1000 - n * LAG_US;
                if (strcmp(uuid, device->uuid) == 0 && process.timeStamp > info->lastSeenTimeStamp)
                        info->procUtilArray[n++] = process;
        }
        fclose(file);
        info->processSamplesCount = n;
        return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

#ifndef FAKE_IS_OLD

#define NUMBERS_MAX 12

/* Calls @add for each line of @device that is about @what, with its numbers. */
static nvmlReturn_t list(nvmlDevice_t device, const char *what, unsigned int *count, void *to,
                         void (*add)(void *to, unsigned int at, const unsigned long long *numbers))
{
        const char *path = getenv("FAKE_NVML_PRESENT");
        FILE *file = path ? fopen(path, "re") : NULL;
        unsigned int n = 0;
        char line[256];

        if (!file)
                return NVML_ERROR_NOT_SUPPORTED;
        while (fgets(line, sizeof(line), file)) {
                unsigned long long numbers[NUMBERS_MAX] = { 0 };
                char *rest = line, *uuid = strsep(&rest, " "), *noun = strsep(&rest, " ");

                if (!noun || strcmp(uuid, device->uuid) != 0 || strcmp(noun, what) != 0)
                        continue;
                for (int i = 0; i < NUMBERS_MAX && rest; i++)
                        numbers[i] = strtoull(strsep(&rest, " "), NULL, 10);
                if (n < *count)
                        add(to, n, numbers);
                n++;
        }
        fclose(file);
        if (n > *count) {
                *count = n;
                return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        *count = n;
        return NVML_SUCCESS;
}

static void add_process(void *to, unsigned int at, const unsigned long long *numbers)
{
        ((nvmlProcessInfo_t *)to)[at] =
                (nvmlProcessInfo_t){ .pid = (unsigned int)numbers[0], .usedGpuMemory = numbers[1] };
}

static void add_encoder(void *to, unsigned int at, const unsigned long long *numbers)
{
        ((nvmlEncoderSessionInfo_t *)to)[at] =
                (nvmlEncoderSessionInfo_t){ .pid = (unsigned int)numbers[0],
                                            .sessionId = (unsigned int)numbers[1],
                                            .codecType = (nvmlEncoderType_t)numbers[2],
                                            .hResolution = (unsigned int)numbers[3],
                                            .vResolution = (unsigned int)numbers[4],
                                            .averageFps = (unsigned int)numbers[5],
                                            .averageLatency = (unsigned int)numbers[6] };
}

static void add_capture(void *to, unsigned int at, const unsigned long long *numbers)
{
        ((nvmlFBCSessionInfo_t *)to)[at] =
                (nvmlFBCSessionInfo_t){ .pid = (unsigned int)numbers[0],
                                        .sessionId = (unsigned int)numbers[1],
                                        .sessionType = (nvmlFBCSessionType_t)numbers[2],
                                        .hResolution = (unsigned int)numbers[3],
                                        .vResolution = (unsigned int)numbers[4],
                                        .averageFPS = (unsigned int)numbers[5],
                                        .averageLatency = (unsigned int)numbers[6],
                                        .displayOrdinal = (unsigned int)numbers[7],
                                        .sessionFlags = (unsigned int)numbers[8],
                                        .hMaxResolution = (unsigned int)numbers[9],
                                        .vMaxResolution = (unsigned int)numbers[10] };
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *processes)
{
        return list(device, "memory", count, processes, add_process);
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count,
                                          nvmlEncoderSessionInfo_t *sessions)
{
        return list(device, "encoder", count, sessions, add_encoder);
}

nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *count,
                                      nvmlFBCSessionInfo_t *sessions)
{
        return list(device, "capture", count, sessions, add_capture);
}

#endif
