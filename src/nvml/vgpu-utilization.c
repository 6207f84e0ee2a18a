/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Utilization of vGPUs and of the processes in them, each in its old and its new
 * layout. Percent of the physical device; encoder and the other media engines are 0.
 */
#include <stdio.h>

#include "nvml/slots.h"
#include "nvml/utilization.h"
#include "nvml/view.h"

static nvmlValue_t percent(unsigned int value)
{
        return (nvmlValue_t){ .uiVal = value };
}

static unsigned int count_instances(uint32_t device)
{
        struct board_instance instance;
        uint32_t cursor = 0;
        unsigned int n = 0;

        while (view_next_instance(&instance, &cursor, device))
                n++;
        return n;
}

nvmlReturn_t our_nvmlDeviceGetVgpuUtilization(nvmlDevice_t handle, unsigned long long last_seen_us,
                                              nvmlValueType_t *value_type, unsigned int *count,
                                              nvmlVgpuInstanceUtilizationSample_t *samples)
{
        struct board_instance instance;
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!value_type || !count)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = utilization_room(samples, count, count_instances(device.index), last_seen_us);
        if (r == NVML_SUCCESS || r == NVML_ERROR_INSUFFICIENT_SIZE)
                *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0;
             n < *count && view_next_instance(&instance, &cursor, device.index); n++)
                samples[n] = (nvmlVgpuInstanceUtilizationSample_t){
                        .vgpuInstance = instance.id,
                        .timeStamp = view_sample_us(),
                        .smUtil = percent(instance.utilization_gpu),
                        .memUtil = percent(instance.utilization_memory),
                };
        *count = n;
        return NVML_SUCCESS;
}

static void fill_instances(nvmlVgpuInstancesUtilizationInfo_v1_t *info, uint32_t device)
{
        struct board_instance instance;
        unsigned int n = 0;

        for (uint32_t cursor = 0;
             n < info->vgpuInstanceCount && view_next_instance(&instance, &cursor, device); n++)
                info->vgpuUtilArray[n] = (nvmlVgpuInstanceUtilizationInfo_v1_t){
                        .vgpuInstance = instance.id,
                        .timeStamp = view_sample_us(),
                        .smUtil = percent(instance.utilization_gpu),
                        .memUtil = percent(instance.utilization_memory),
                };
        info->vgpuInstanceCount = n;
}

nvmlReturn_t
our_nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_t handle,
                                              nvmlVgpuInstancesUtilizationInfo_v1_t *info)
{
        struct board_device device;
        nvmlReturn_t r;

        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlVgpuInstancesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = view_host_device(&device, handle);
        if (r != NVML_SUCCESS)
                return r;
        r = utilization_room(info->vgpuUtilArray, &info->vgpuInstanceCount,
                             count_instances(device.index), info->lastSeenTimeStamp);
        if (r == NVML_SUCCESS || r == NVML_ERROR_INSUFFICIENT_SIZE)
                info->sampleValType = NVML_VALUE_TYPE_UNSIGNED_INT;
        if (r == NVML_SUCCESS && info->vgpuUtilArray)
                fill_instances(info, device.index);
        return r;
}

nvmlReturn_t our_nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t handle,
                                                     unsigned long long last_seen_us,
                                                     unsigned int *count,
                                                     nvmlVgpuProcessUtilizationSample_t *samples)
{
        struct board_process process;
        struct board_device device;
        nvmlReturn_t r = view_host_device(&device, handle);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = utilization_room(samples, count, utilization_count_busy(device.index), last_seen_us);
        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0;
             n < *count && utilization_next_busy(&process, &cursor, device.index); n++) {
                samples[n] = (nvmlVgpuProcessUtilizationSample_t){
                        .vgpuInstance = process.instance,
                        .pid = process.pid,
                        .timeStamp = view_sample_us(),
                        .smUtil = process.utilization_gpu,
                };
                snprintf(samples[n].processName, sizeof(samples[n].processName), "%.63s",
                         process.name);
        }
        *count = n;
        return NVML_SUCCESS;
}

static void fill_processes(nvmlVgpuProcessesUtilizationInfo_v1_t *info, uint32_t device)
{
        struct board_process process;
        unsigned int n = 0;

        for (uint32_t cursor = 0;
             n < info->vgpuProcessCount && utilization_next_busy(&process, &cursor, device); n++) {
                nvmlVgpuProcessUtilizationInfo_v1_t *sample = &info->vgpuProcUtilArray[n];

                *sample = (nvmlVgpuProcessUtilizationInfo_v1_t){
                        .vgpuInstance = process.instance,
                        .pid = process.pid,
                        .timeStamp = view_sample_us(),
                        .smUtil = process.utilization_gpu,
                };
                snprintf(sample->processName, sizeof(sample->processName), "%.63s", process.name);
        }
        info->vgpuProcessCount = n;
}

nvmlReturn_t
our_nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_t handle,
                                              nvmlVgpuProcessesUtilizationInfo_v1_t *info)
{
        struct board_device device;
        nvmlReturn_t r;

        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlVgpuProcessesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = view_host_device(&device, handle);
        if (r != NVML_SUCCESS)
                return r;
        r = utilization_room(info->vgpuProcUtilArray, &info->vgpuProcessCount,
                             utilization_count_busy(device.index), info->lastSeenTimeStamp);
        if (r == NVML_SUCCESS && info->vgpuProcUtilArray)
                fill_processes(info, device.index);
        return r;
}
