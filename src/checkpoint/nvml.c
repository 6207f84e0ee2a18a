/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/nvml.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi/nvml.h"
#include "base/loader.h"

#define PROCESSES_MAX 1024

#define NVML_FUNCTIONS(X)            \
        X(nvmlInit_v2)               \
        X(nvmlDeviceGetHandleByUUID) \
        X(nvmlDeviceGetMemoryInfo)   \
        X(nvmlDeviceGetComputeRunningProcesses_v3)

static struct {
#define NVML_MEMBER(name) __typeof__(&name) name;
        NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
} nvml;

static const struct loader_function functions[] = {
#define NVML_ENTRY(name) { #name, offsetof(__typeof__(nvml), name), false },
        NVML_FUNCTIONS(NVML_ENTRY)
#undef NVML_ENTRY
};

static bool load(void)
{
        const char *missing;

        return loader_load("libnvidia-ml.so.1", functions, sizeof(functions) / sizeof(functions[0]),
                           &nvml, &missing) == 0 &&
               nvml.nvmlInit_v2() == NVML_SUCCESS;
}

static bool is_there(void)
{
        static enum { UNKNOWN, THERE, MISSING } state;

        if (state == UNKNOWN)
                state = load() ? THERE : MISSING;
        return state == THERE;
}

int nvml_get_free(uint64_t *ret_bytes, const char *uuid)
{
        nvmlMemory_t memory;
        nvmlDevice_t device;

        if (!is_there() || nvml.nvmlDeviceGetHandleByUUID(uuid, &device) != NVML_SUCCESS ||
            nvml.nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS)
                return -ENODATA;
        *ret_bytes = memory.free;
        return 0;
}

uint64_t nvml_get_used(const char *uuid, int pid)
{
        static nvmlProcessInfo_t processes[PROCESSES_MAX];
        unsigned int n = PROCESSES_MAX;
        nvmlDevice_t device;

        if (!is_there() || nvml.nvmlDeviceGetHandleByUUID(uuid, &device) != NVML_SUCCESS ||
            nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, processes) != NVML_SUCCESS)
                return 0;
        for (unsigned int i = 0; i < n; i++)
                if (processes[i].pid == (unsigned int)pid &&
                    processes[i].usedGpuMemory != UINT64_MAX)
                        return processes[i].usedGpuMemory;
        return 0;
}
