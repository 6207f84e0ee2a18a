/* SPDX-License-Identifier: Apache-2.0 */
/* Utilization by the processes of a device, in the calls that know nothing of vGPUs. */
#include "nvml/slots.h"
#include "nvml/utilization.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                                 nvmlProcessUtilizationSample_t *samples,
                                                 unsigned int *count,
                                                 unsigned long long last_seen_us)
{
        struct board_device device;
        struct utilization one;
        unsigned int n = 0;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetProcessUtilization)(handle, samples, count,
                                                                  last_seen_us);
        r = view_device(&device, handle, count);
        if (r == NVML_SUCCESS)
                r = utilization_room(samples, count, device.index, utilization_next_process,
                                     last_seen_us);
        if (r != NVML_SUCCESS || !samples)
                return r;
        for (uint32_t cursor = 0;
             n < *count && utilization_next_new(&one, &cursor, device.index,
                                                utilization_next_process, last_seen_us);
             n++)
                samples[n] = (nvmlProcessUtilizationSample_t){ .pid = one.sample.pid,
                                                               .timeStamp = one.sample.timestamp_us,
                                                               .smUtil = one.sample.gpu,
                                                               .memUtil = one.sample.memory,
                                                               .encUtil = one.sample.encoder,
                                                               .decUtil = one.sample.decoder };
        *count = n;
        return NVML_SUCCESS;
}

static void fill(nvmlProcessesUtilizationInfo_v1_t *info, uint32_t device)
{
        struct utilization one;
        unsigned int n = 0;

        for (uint32_t cursor = 0;
             n < info->processSamplesCount &&
             utilization_next_new(&one, &cursor, device, utilization_next_process,
                                  info->lastSeenTimeStamp);
             n++)
                info->procUtilArray[n] =
                        (nvmlProcessUtilizationInfo_v1_t){ .timeStamp = one.sample.timestamp_us,
                                                           .pid = one.sample.pid,
                                                           .smUtil = one.sample.gpu,
                                                           .memUtil = one.sample.memory,
                                                           .encUtil = one.sample.encoder,
                                                           .decUtil = one.sample.decoder,
                                                           .jpgUtil = one.sample.jpeg,
                                                           .ofaUtil = one.sample.ofa };
        info->processSamplesCount = n;
}

nvmlReturn_t our_nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle,
                                                       nvmlProcessesUtilizationInfo_v1_t *info)
{
        struct board_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetProcessesUtilizationInfo)(handle, info);
        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = view_device(&device, handle, true);
        if (r == NVML_SUCCESS)
                r = utilization_room(info->procUtilArray, &info->processSamplesCount, device.index,
                                     utilization_next_process, info->lastSeenTimeStamp);
        if (r == NVML_SUCCESS && info->procUtilArray)
                fill(info, device.index);
        return r;
}
