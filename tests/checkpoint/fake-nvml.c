/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVML that says what a test wants: $FAKE_NVML is a file with two numbers, the bytes that are left
 * on each device and the bytes that each process holds of the first device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
#include "abi/nvml.h"

static char first_uuid[64];
static int device_first, device_other;

static unsigned long long read_number(int at)
{
        unsigned long long numbers[2] = { 0, 0 };
        FILE *file = fopen(getenv("FAKE_NVML"), "re");

        if (file && fscanf(file, "%llu %llu", &numbers[0], &numbers[1]) != 2)
                abort();
        if (file)
                fclose(file);
        return numbers[at];
}

nvmlReturn_t nvmlInit_v2(void)
{
        return getenv("FAKE_NVML") ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* The first device is the one that is asked for first. */
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
        if (!*first_uuid)
                snprintf(first_uuid, sizeof(first_uuid), "%s", uuid);
        *device = (nvmlDevice_t)(void *)(strcmp(uuid, first_uuid) == 0 ? &device_first
                                                                       : &device_other);
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
        (void)device;
        *memory = (nvmlMemory_t){ .total = UINT64_C(1) << 40, .free = read_number(0) };
        return NVML_SUCCESS;
}

/* Every process that asks is told of the one process of the test, which $FAKE_NVML_PID names. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *list)
{
        const char *pid = getenv("FAKE_NVML_PID");

        *count = 0;
        if ((void *)device != &device_first || !pid)
                return NVML_SUCCESS;
        *count = 1;
        list[0] = (nvmlProcessInfo_t){ .pid = (unsigned int)atoi(pid),
                                       .usedGpuMemory = read_number(1) };
        return NVML_SUCCESS;
}
