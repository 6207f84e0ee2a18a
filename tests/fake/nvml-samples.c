/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library in the place of NVIDIA's for the sampler: who uses which device is in the file
 * FAKE_NVML_SAMPLES, lines of "UUID PID SM MEMORY ENCODER DECODER JPEG OFA". Without the file there are no
 * samples to be had, as on a device with MIG. The samples of each process but the first of a device lag by LAG_US
 * behind those of the one before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
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
                process.timeStamp = clock_now(CLOCK_REALTIME) / 1000 - n * LAG_US;
                if (strcmp(uuid, device->uuid) == 0 && process.timeStamp > info->lastSeenTimeStamp)
                        info->procUtilArray[n++] = process;
        }
        fclose(file);
        info->processSamplesCount = n;
        return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
