/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/accounting.h>
#include <openvgpu/instance.h>

#include "lib/answer.h"

int vgpu_accounting_get_mode(struct vgpu_host *host, uint32_t instance, bool *ret_is_on)
{
        nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetAccountingMode, instance,
                      &mode);
        if (r == 0)
                *ret_is_on = mode == NVML_FEATURE_ENABLED;
        return r;
}

int vgpu_accounting_lookup_pids(struct vgpu_host *host, uint32_t instance,
                                struct vgpu_number_list **ret_pids)
{
        CLEANUP(growing_deinit) struct growing pids = GROWING(unsigned int, 0);
        int r;

        do
                r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetAccountingPids,
                              instance, &pids.count, pids.items);
        while (growing_again(host, &pids, &r));
        return r < 0 ? r : answer_numbers(host, &pids, ret_pids);
}

int vgpu_accounting_lookup_stats(struct vgpu_host *host, uint32_t instance, uint32_t pid,
                                 struct vgpu_accounting_stats **ret_stats)
{
        nvmlAccountingStats_t from = { .time = 0 };
        struct vgpu_accounting_stats *to;
        int r;

        /* The driver has one code for a wrong process and a wrong vGPU. */
        r = vgpu_instance_check(host, instance);
        if (r == 0)
                r = HOST_CALL(host, ABOUT_PROCESS(pid, instance),
                              nvmlVgpuInstanceGetAccountingStats, instance, pid, &from);
        if (r < 0)
                return r;

        to = calloc(1, sizeof(*to));
        if (!to)
                return host_set_no_memory(host);
        *to = (struct vgpu_accounting_stats){ .pid = pid,
                                              .is_running = from.isRunning != 0,
                                              .gpu_utilization = from.gpuUtilization,
                                              .memory_utilization = from.memoryUtilization,
                                              .max_memory_used = from.maxMemoryUsage,
                                              .time_ms = from.time,
                                              .start_us = from.startTime };
        *ret_stats = to;
        return 0;
}

int vgpu_accounting_clear(struct vgpu_host *host, uint32_t instance)
{
        return HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceClearAccountingPids,
                         instance);
}
