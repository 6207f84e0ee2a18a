/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the utilization of vGPUs and of their processes, each in its old and its new layout, in percent of
 * the physical device.
 */
#include <stdio.h>

#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/utilization.h"

static nvmlValue_t percent(unsigned int value)
{
        return (nvmlValue_t){ .uiVal = value };
}

static void fill_instance_sample(void *element, const struct utilization *one)
{
        *(nvmlVgpuInstanceUtilizationSample_t *)element = (nvmlVgpuInstanceUtilizationSample_t){
                .vgpuInstance = one->sample.instance,
                .timeStamp = one->sample.timestamp_us,
                .smUtil = percent(one->sample.gpu),
                .memUtil = percent(one->sample.memory),
                .encUtil = percent(one->sample.encoder),
                .decUtil = percent(one->sample.decoder),
        };
}

static void fill_instance_info(void *element, const struct utilization *one)
{
        *(nvmlVgpuInstanceUtilizationInfo_v1_t *)element = (nvmlVgpuInstanceUtilizationInfo_v1_t){
                .timeStamp = one->sample.timestamp_us,
                .vgpuInstance = one->sample.instance,
                .smUtil = percent(one->sample.gpu),
                .memUtil = percent(one->sample.memory),
                .encUtil = percent(one->sample.encoder),
                .decUtil = percent(one->sample.decoder),
                .jpgUtil = percent(one->sample.jpeg),
                .ofaUtil = percent(one->sample.ofa),
        };
}

static void fill_process_sample(void *element, const struct utilization *one)
{
        nvmlVgpuProcessUtilizationSample_t *sample = element;

        *sample = (nvmlVgpuProcessUtilizationSample_t){ .vgpuInstance = one->sample.instance,
                                                        .pid = one->sample.pid,
                                                        .timeStamp = one->sample.timestamp_us,
                                                        .smUtil = one->sample.gpu,
                                                        .memUtil = one->sample.memory,
                                                        .encUtil = one->sample.encoder,
                                                        .decUtil = one->sample.decoder };
        snprintf(sample->processName, sizeof(sample->processName), "%.63s", one->name);
}

static void fill_process_info(void *element, const struct utilization *one)
{
        nvmlVgpuProcessUtilizationInfo_v1_t *info = element;

        *info = (nvmlVgpuProcessUtilizationInfo_v1_t){ .timeStamp = one->sample.timestamp_us,
                                                       .vgpuInstance = one->sample.instance,
                                                       .pid = one->sample.pid,
                                                       .smUtil = one->sample.gpu,
                                                       .memUtil = one->sample.memory,
                                                       .encUtil = one->sample.encoder,
                                                       .decUtil = one->sample.decoder,
                                                       .jpgUtil = one->sample.jpeg,
                                                       .ofaUtil = one->sample.ofa };
        snprintf(info->processName, sizeof(info->processName), "%.63s", one->name);
}

static const struct utilization_list
        instance_samples = { utilization_next_instance, fill_instance_sample,
                             sizeof(nvmlVgpuInstanceUtilizationSample_t) },
        instance_info = { utilization_next_instance, fill_instance_info,
                          sizeof(nvmlVgpuInstanceUtilizationInfo_v1_t) },
        process_samples = { utilization_next_process, fill_process_sample,
                            sizeof(nvmlVgpuProcessUtilizationSample_t) },
        process_info = { utilization_next_process, fill_process_info,
                         sizeof(nvmlVgpuProcessUtilizationInfo_v1_t) };

/* The type of the values is told with the values, and with their number. */
static nvmlReturn_t tell_type(nvmlValueType_t *ret_type, nvmlReturn_t r)
{
        if (r == NVML_SUCCESS || r == NVML_ERROR_INSUFFICIENT_SIZE)
                *ret_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetVgpuUtilization(nvmlDevice_t handle, unsigned long long last_seen_us,
                                              nvmlValueType_t *value_type, unsigned int *count,
                                              nvmlVgpuInstanceUtilizationSample_t *samples)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        if (r != NVML_SUCCESS)
                return r; /* before the pointers */
        if (!value_type || !count)
                return NVML_ERROR_INVALID_ARGUMENT;
        return tell_type(value_type, utilization_answer(&instance_samples, site.device.index,
                                                        last_seen_us, samples, count));
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
        r = site_of_device(&site, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        return tell_type(&info->sampleValType,
                         utilization_answer(&instance_info, site.device.index,
                                            info->lastSeenTimeStamp, info->vgpuUtilArray,
                                            &info->vgpuInstanceCount));
}

nvmlReturn_t our_nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t handle,
                                                     unsigned long long last_seen_us,
                                                     unsigned int *count,
                                                     nvmlVgpuProcessUtilizationSample_t *samples)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        if (r != NVML_SUCCESS)
                return r; /* before the pointers */
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        return utilization_answer(&process_samples, site.device.index, last_seen_us, samples,
                                  count);
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
        r = site_of_device(&site, handle, true);
        return r == NVML_SUCCESS
                       ? utilization_answer(&process_info, site.device.index,
                                            info->lastSeenTimeStamp, info->vgpuProcUtilArray,
                                            &info->vgpuProcessCount)
                       : r;
}
