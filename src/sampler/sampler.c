/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-sampler NVML-LIBRARY UUID...: what wire/sampler.h says.
 *
 * The library averages over all samples of a process since the time that it is told, and each process has
 * samples at times of its own (driver 580: one that shares the device lags by up to some hundred
 * milliseconds). So the question goes back to the process that was seen longest ago, and what is told of
 * each is for the time since its own last sample: percent times period, summed up, is the time that the
 * engine was busy. Asking since the newest sample of all lost a sixth of the time of two busy processes.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "abi/nvml.h"
#include "base/cleanup.h"
#include "base/privilege.h"
#include "sampler/library.h"
#include "sampler/present.h"
#include "sampler/tell.h"

#define INTERVAL_MS 500

/* A library that was silent for long does not tell what was in between. */
#define PERIOD_MAX_US 5000000u

/* More processes than this use no device at a time. */
#define PROCESSES_MAX 4096

/* A process that was not seen for so long holds nobody up. */
#define FORGET_US 2000000u

/* What a process that has just joined did before the sampler ran: the manager knows when it joined. */
#define BEFORE_US 1000000u

/* Until when the samples of a process were told. */
struct seen {
        unsigned int pid;
        unsigned long long us; /* CLOCK_REALTIME */
};

struct device {
        nvmlDevice_t handle;
        unsigned long long seen_us; /* the newest of all */
        nvmlReturn_t error;         /* told; 0: none */
        size_t n_seen;
        struct seen seen[PROCESSES_MAX];
        struct present present;
};

static nvmlProcessUtilizationInfo_v1_t processes[PROCESSES_MAX];
static nvmlProcessUtilizationSample_t old_processes[PROCESSES_MAX];

static unsigned long long now_us(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (unsigned long long)now.tv_sec * 1000000u + (unsigned long long)now.tv_nsec / 1000u;
}

static int tell_error(struct device *device, uint32_t index, nvmlReturn_t error)
{
        struct sampler_packet packet = { .error = (int32_t)error };

        if (device->error == error)
                return 0;
        device->error = error;
        return tell(&packet, error == NVML_ERROR_GPU_IS_LOST ? SAMPLER_LOST : SAMPLER_ERROR, index);
}

static int tell_process(const nvmlProcessUtilizationInfo_v1_t *process, uint32_t index,
                        unsigned long long period_us)
{
        struct sampler_packet packet = {
                .pid = process->pid,
                .use = { .percent = { process->smUtil, process->memUtil, process->encUtil,
                                      process->decUtil, process->jpgUtil, process->ofaUtil },
                         .period_us = period_us < PERIOD_MAX_US ? period_us : PERIOD_MAX_US },
        };

        return tell(&packet, SAMPLER_USE, index);
}

/* The old call, in the shape of the new one. */
static nvmlReturn_t sample_as_before_550(nvmlDevice_t handle,
                                         nvmlProcessesUtilizationInfo_v1_t *info)
{
        unsigned int n = PROCESSES_MAX;
        nvmlReturn_t r =
                library.sample_before_550(handle, old_processes, &n, info->lastSeenTimeStamp);

        if (r != NVML_SUCCESS)
                return r;
        for (unsigned int i = 0; i < n; i++)
                info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
                        .timeStamp = old_processes[i].timeStamp,
                        .pid = old_processes[i].pid,
                        .smUtil = old_processes[i].smUtil,
                        .memUtil = old_processes[i].memUtil,
                        .encUtil = old_processes[i].encUtil,
                        .decUtil = old_processes[i].decUtil,
                };
        info->processSamplesCount = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t ask(nvmlDevice_t handle, nvmlProcessesUtilizationInfo_v1_t *info)
{
        nvmlReturn_t r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;

        if (library.sample)
                r = library.sample(handle, info);
        if (r == NVML_ERROR_ARGUMENT_VERSION_MISMATCH && library.sample_before_550)
                r = sample_as_before_550(handle, info);
        return r;
}

/* The oldest of what is still expected to go on. */
static unsigned long long get_since(struct device *device)
{
        unsigned long long since_us = device->seen_us;
        size_t n = 0;

        for (size_t i = 0; i < device->n_seen; i++) {
                if (device->seen[i].us + FORGET_US < device->seen_us)
                        continue;
                device->seen[n] = device->seen[i];
                if (device->seen[n++].us < since_us)
                        since_us = device->seen[n - 1].us;
        }
        device->n_seen = n;
        return since_us;
}

/* A process that is new is seen since the time that was asked for. NULL: there are too many. */
static struct seen *find_seen(struct device *device, unsigned int pid, unsigned long long since_us)
{
        for (size_t i = 0; i < device->n_seen; i++)
                if (device->seen[i].pid == pid)
                        return &device->seen[i];
        if (device->n_seen == PROCESSES_MAX)
                return NULL;
        device->seen[device->n_seen] = (struct seen){ pid, since_us };
        return &device->seen[device->n_seen++];
}

static int take(struct device *device, uint32_t index, unsigned long long since_us,
                const nvmlProcessUtilizationInfo_v1_t *process)
{
        struct seen *seen = process->pid ? find_seen(device, process->pid, since_us) : NULL;
        unsigned long long before_us;

        if (!seen || process->timeStamp <= seen->us)
                return 0;
        before_us = seen->us;
        seen->us = process->timeStamp;
        if (seen->us > device->seen_us)
                device->seen_us = seen->us;
        return tell_process(process, index, seen->us - before_us);
}

static int sample(struct device *device, uint32_t index)
{
        unsigned long long since_us = get_since(device);
        nvmlProcessesUtilizationInfo_v1_t info = {
                .version = NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1),
                .processSamplesCount = PROCESSES_MAX,
                .lastSeenTimeStamp = since_us,
                .procUtilArray = processes,
        };
        nvmlReturn_t error = ask(device->handle, &info);
        int r = 0;

        if (error == NVML_ERROR_NOT_FOUND) /* nothing is new, or nobody was busy */
                return 0;
        if (error != NVML_SUCCESS)
                return tell_error(device, index, error);
        device->error = NVML_SUCCESS;
        for (unsigned int i = 0; r == 0 && i < info.processSamplesCount; i++)
                r = take(device, index, since_us, &processes[i]);
        return r;
}

static struct device *find_devices(char **uuids, uint16_t n)
{
        struct device *devices = calloc(n, sizeof(*devices));

        for (uint16_t i = 0; devices && i < n; i++) {
                nvmlReturn_t r = library.find(uuids[i], &devices[i].handle);

                devices[i].seen_us = now_us() - BEFORE_US;
                if (r != NVML_SUCCESS && tell_error(&devices[i], i, r) < 0)
                        exit(0);
        }
        return devices;
}

static bool has_manager(void)
{
        struct pollfd poll_fd = { .fd = SAMPLER_FD, .events = POLLIN };

        return poll(&poll_fd, 1, INTERVAL_MS) == 0;
}

int main(int argc, char **argv)
{
        uint16_t n = (uint16_t)(argc - 2);
        CLEANUP(freep) struct device *devices = NULL;

        (void)privilege_keep(PRIVILEGE_SAMPLER);
        if (argc < 3) {
                fprintf(stderr, "vgpu-sampler is started by vgpud\n");
                return 2;
        }
        if (library_load(argv[1]) < 0 || library.init() != NVML_SUCCESS)
                return 1;
        devices = find_devices(argv + 2, n);
        if (!devices)
                return 1;
        while (has_manager())
                for (uint16_t i = 0; i < n; i++)
                        if (devices[i].handle &&
                            (sample(&devices[i], i) < 0 ||
                             present_tell(&devices[i].present, devices[i].handle, i) < 0))
                                return 0;
        return 0;
}
