/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Utilization of vGPUs and of the processes in them, each in its old and its new layout. Percent
 * of the physical device.
 */
#include <stdio.h>

#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/utilization.h"

static nvmlValue_t percent(unsigned int value)
{
        return (nvmlValue_t){ .uiVal = value };
}

nvmlReturn_t our_nvmlDeviceGetVgpuUtilization(nvmlDevice_t handle, unsigned long long last_seen_us,
                                              nvmlValueType_t *value_type, unsigned int *count,
                                              nvmlVgpuInstanceUtilizationSample_t *samples)
{
        struct utilization one;
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!value_type || !count)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = utilization_room(samples, count, site.device.index, utilization_next_instance,
                             last_seen_us);
        if (r == NVML_SUCCESS || r == NVML_ERROR_INSUFFICIENT_SIZE)
                *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        if (r != NVML_SUCCESS || !samples)
                return r;
        for (uint32_t cursor = 0;
             n < *count && utilization_next_new(&one, &cursor, site.device.index,
                                                utilization_next_instance, last_seen_us);
             n++)
                samples[n] = (nvmlVgpuInstanceUtilizationSample_t){
                        .vgpuInstance = one.sample.instance,
                        .timeStamp = one.sample.timestamp_us,
                        .smUtil = percent(one.sample.gpu),
                        .memUtil = percent(one.sample.memory),
                        .encUtil = percent(one.sample.encoder),
                        .decUtil = percent(one.sample.decoder),
                };
        *count = n;
        return NVML_SUCCESS;
}

static void fill_instances(nvmlVgpuInstancesUtilizationInfo_v1_t *info, uint32_t device)
{
        struct utilization one;
        unsigned int n = 0;

        for (uint32_t cursor = 0;
             n < info->vgpuInstanceCount &&
             utilization_next_new(&one, &cursor, device, utilization_next_instance,
                                  info->lastSeenTimeStamp);
             n++)
                info->vgpuUtilArray[n] = (nvmlVgpuInstanceUtilizationInfo_v1_t){
                        .timeStamp = one.sample.timestamp_us,
                        .vgpuInstance = one.sample.instance,
                        .smUtil = percent(one.sample.gpu),
                        .memUtil = percent(one.sample.memory),
                        .encUtil = percent(one.sample.encoder),
                        .decUtil = percent(one.sample.decoder),
                        .jpgUtil = percent(one.sample.jpeg),
                        .ofaUtil = percent(one.sample.ofa),
                };
        info->vgpuInstanceCount = n;
}

nvmlReturn_t
our_nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_t handle,
                                              nvmlVgpuInstancesUtilizationInfo_v1_t *info)
{
        struct site site;
        nvmlReturn_t r;

        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlVgpuInstancesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = site_of_device(&site, handle);
        if (r != NVML_SUCCESS)
                return r;
        r = utilization_room(info->vgpuUtilArray, &info->vgpuInstanceCount, site.device.index,
                             utilization_next_instance, info->lastSeenTimeStamp);
        if (r == NVML_SUCCESS || r == NVML_ERROR_INSUFFICIENT_SIZE)
                info->sampleValType = NVML_VALUE_TYPE_UNSIGNED_INT;
        if (r == NVML_SUCCESS && info->vgpuUtilArray)
                fill_instances(info, site.device.index);
        return r;
}

nvmlReturn_t our_nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t handle,
                                                     unsigned long long last_seen_us,
                                                     unsigned int *count,
                                                     nvmlVgpuProcessUtilizationSample_t *samples)
{
        struct utilization one;
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = utilization_room(samples, count, site.device.index, utilization_next_process,
                             last_seen_us);
        if (r != NVML_SUCCESS || !samples)
                return r;
        for (uint32_t cursor = 0;
             n < *count && utilization_next_new(&one, &cursor, site.device.index,
                                                utilization_next_process, last_seen_us);
             n++) {
                samples[n] = (nvmlVgpuProcessUtilizationSample_t){
                        .vgpuInstance = one.sample.instance,
                        .pid = one.sample.pid,
                        .timeStamp = one.sample.timestamp_us,
                        .smUtil = one.sample.gpu,
                        .memUtil = one.sample.memory,
                        .encUtil = one.sample.encoder,
                        .decUtil = one.sample.decoder,
                };
                snprintf(samples[n].processName, sizeof(samples[n].processName), "%.63s", one.name);
        }
        *count = n;
        return NVML_SUCCESS;
}

static void fill_processes(nvmlVgpuProcessesUtilizationInfo_v1_t *info, uint32_t device)
{
        struct utilization one;
        unsigned int n = 0;

        for (uint32_t cursor = 0;
             n < info->vgpuProcessCount &&
             utilization_next_new(&one, &cursor, device, utilization_next_process,
                                  info->lastSeenTimeStamp);
             n++) {
                nvmlVgpuProcessUtilizationInfo_v1_t *sample = &info->vgpuProcUtilArray[n];

                *sample = (nvmlVgpuProcessUtilizationInfo_v1_t){
                        .timeStamp = one.sample.timestamp_us,
                        .vgpuInstance = one.sample.instance,
                        .pid = one.sample.pid,
                        .smUtil = one.sample.gpu,
                        .memUtil = one.sample.memory,
                        .encUtil = one.sample.encoder,
                        .decUtil = one.sample.decoder,
                        .jpgUtil = one.sample.jpeg,
                        .ofaUtil = one.sample.ofa,
                };
                snprintf(sample->processName, sizeof(sample->processName), "%.63s", one.name);
        }
        info->vgpuProcessCount = n;
}

nvmlReturn_t
our_nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_t handle,
                                              nvmlVgpuProcessesUtilizationInfo_v1_t *info)
{
        struct site site;
        nvmlReturn_t r;

        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlVgpuProcessesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = site_of_device(&site, handle);
        if (r != NVML_SUCCESS)
                return r;
        r = utilization_room(info->vgpuProcUtilArray, &info->vgpuProcessCount, site.device.index,
                             utilization_next_process, info->lastSeenTimeStamp);
        if (r == NVML_SUCCESS && info->vgpuProcUtilArray)
                fill_processes(info, site.device.index);
        return r;
}
