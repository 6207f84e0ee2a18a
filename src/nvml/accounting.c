/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting of the processes in a vGPU: always on, and so far for those that run. What
 * the manager does not sum up over the life of a process is "not available".
 */
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* What a question without room is told, whoever asks: the length of NVIDIA's list. */
#define ACCOUNTING_RECORDS 4000

static nvmlReturn_t find(struct board_instance *ret_instance, nvmlVgpuInstance_t id,
                         bool has_pointers)
{
        if (!has_pointers || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        return view_instance(ret_instance, id) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t our_nvmlVgpuInstanceGetAccountingMode(nvmlVgpuInstance_t id, nvmlEnableState_t *mode)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, mode);

        if (r == NVML_SUCCESS)
                *mode = NVML_FEATURE_ENABLED;
        return r;
}

static unsigned int list_pids(uint32_t instance, unsigned int *pids)
{
        struct board_process process;
        uint32_t cursor = 0;
        unsigned int n = 0;

        while (n < ACCOUNTING_RECORDS && view_next_process_of(&process, &cursor, instance))
                pids[n++] = process.pid;
        return n;
}

nvmlReturn_t our_nvmlVgpuInstanceGetAccountingPids(nvmlVgpuInstance_t id, unsigned int *count,
                                                   unsigned int *pids)
{
        unsigned int found[ACCOUNTING_RECORDS], n;
        struct board_instance instance;
        nvmlReturn_t r;

        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (*count == 0) {
                *count = ACCOUNTING_RECORDS;
                return NVML_ERROR_INSUFFICIENT_SIZE; /* before the handle */
        }
        r = find(&instance, id, pids);
        if (r != NVML_SUCCESS)
                return r;
        n = list_pids(id, found);
        r = answer_room(count, n);
        if (r == NVML_SUCCESS)
                memcpy(pids, found, n * sizeof(*pids));
        return r;
}

static nvmlAccountingStats_t get_stats(const struct board_process *process)
{
        return (nvmlAccountingStats_t){
                .gpuUtilization = (unsigned int)NVML_VALUE_NOT_AVAILABLE,
                .memoryUtilization = (unsigned int)NVML_VALUE_NOT_AVAILABLE,
                .maxMemoryUsage = process->memory_used,
                .startTime = process->start_ns / 1000,
                .isRunning = 1,
        };
}

nvmlReturn_t our_nvmlVgpuInstanceGetAccountingStats(nvmlVgpuInstance_t id, unsigned int pid,
                                                    nvmlAccountingStats_t *stats)
{
        struct board_instance instance;
        struct board_process process;
        nvmlReturn_t r = find(&instance, id, stats);

        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0; view_next_process_of(&process, &cursor, id);) {
                if (process.pid != pid)
                        continue;
                *stats = get_stats(&process);
                return NVML_SUCCESS;
        }
        return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t our_nvmlVgpuInstanceClearAccountingPids(nvmlVgpuInstance_t id)
{
        struct board_instance instance;
        nvmlReturn_t r = find(&instance, id, true);

        return r == NVML_SUCCESS ? answer_change() : r;
}
