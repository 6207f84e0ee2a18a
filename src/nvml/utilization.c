/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/utilization.h"

#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t utilization_room(const void *samples, unsigned int *count, unsigned int n,
                              unsigned long long last_seen_us)
{
        if (!samples) {
                *count = n;
                return n == 0 ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
        }
        if (*count == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (n > 0 && view_sample_us() <= last_seen_us)
                return NVML_ERROR_NOT_FOUND;
        return answer_room(count, n);
}

bool utilization_next_busy(struct board_process *ret_process, uint32_t *cursor, uint32_t device)
{
        while (view_next_process(ret_process, cursor, device))
                if (ret_process->utilization_gpu > 0)
                        return true;
        return false;
}

unsigned int utilization_count_busy(uint32_t device)
{
        struct board_process process;
        uint32_t cursor = 0;
        unsigned int n = 0;

        while (utilization_next_busy(&process, &cursor, device))
                n++;
        return n;
}

nvmlReturn_t our_nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                                 nvmlProcessUtilizationSample_t *samples,
                                                 unsigned int *count,
                                                 unsigned long long last_seen_us)
{
        struct board_process process;
        struct board_device device;
        unsigned int n = 0;
        nvmlReturn_t r;

        if (!view_is_substitute() || !view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetProcessUtilization)(handle, samples, count,
                                                                  last_seen_us);
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = utilization_room(samples, count, utilization_count_busy(device.index), last_seen_us);
        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0;
             n < *count && utilization_next_busy(&process, &cursor, device.index); n++)
                samples[n] = (nvmlProcessUtilizationSample_t){ .pid = process.pid,
                                                               .timeStamp = view_sample_us(),
                                                               .smUtil = process.utilization_gpu };
        *count = n;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle,
                                                       nvmlProcessesUtilizationInfo_v1_t *info)
{
        struct board_process process;
        struct board_device device;
        unsigned int n = 0;
        nvmlReturn_t r;

        if (!view_is_substitute() || !view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetProcessesUtilizationInfo)(handle, info);
        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = utilization_room(info->procUtilArray, &info->processSamplesCount,
                             utilization_count_busy(device.index), info->lastSeenTimeStamp);
        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0; n < info->processSamplesCount &&
                                  utilization_next_busy(&process, &cursor, device.index);
             n++)
                info->procUtilArray[n] =
                        (nvmlProcessUtilizationInfo_v1_t){ .timeStamp = view_sample_us(),
                                                           .pid = process.pid,
                                                           .smUtil = process.utilization_gpu };
        info->processSamplesCount = n;
        return NVML_SUCCESS;
}
