/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the utilization by the processes of a device, in the calls that know nothing of vGPUs. */
#include "nvml/slots.h"
#include "nvml/utilization.h"
#include "nvml/view.h"

static void fill_sample(void *element, const struct utilization *one)
{
        *(nvmlProcessUtilizationSample_t *)element =
                (nvmlProcessUtilizationSample_t){ .pid = one->sample.pid,
                                                  .timeStamp = one->sample.timestamp_us,
                                                  .smUtil = one->sample.gpu,
                                                  .memUtil = one->sample.memory,
                                                  .encUtil = one->sample.encoder,
                                                  .decUtil = one->sample.decoder };
}

static void fill_info(void *element, const struct utilization *one)
{
        *(nvmlProcessUtilizationInfo_v1_t *)element =
                (nvmlProcessUtilizationInfo_v1_t){ .timeStamp = one->sample.timestamp_us,
                                                   .pid = one->sample.pid,
                                                   .smUtil = one->sample.gpu,
                                                   .memUtil = one->sample.memory,
                                                   .encUtil = one->sample.encoder,
                                                   .decUtil = one->sample.decoder,
                                                   .jpgUtil = one->sample.jpeg,
                                                   .ofaUtil = one->sample.ofa };
}

static const struct utilization_list samples_list = { .next = utilization_next_process,
                                                      .fill = fill_sample,
                                                      .size = sizeof(
                                                              nvmlProcessUtilizationSample_t) };
static const struct utilization_list info_list = { .next = utilization_next_process,
                                                   .fill = fill_info,
                                                   .size = sizeof(
                                                           nvmlProcessUtilizationInfo_v1_t) };

nvmlReturn_t our_nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                                 nvmlProcessUtilizationSample_t *samples,
                                                 unsigned int *count,
                                                 unsigned long long last_seen_us)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetProcessUtilization)(handle, samples, count,
                                                                  last_seen_us);
        r = view_whole_device(&device, handle, count);
        if (r == NVML_SUCCESS && *count == 0)
                samples =
                        NULL; /* NVIDIA's library takes an array without room for a question, too */
        return r == NVML_SUCCESS ? utilization_answer(&samples_list, device.index, last_seen_us,
                                                      samples, count)
                                 : r;
}

nvmlReturn_t our_nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle,
                                                       nvmlProcessesUtilizationInfo_v1_t *info)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetProcessesUtilizationInfo)(handle, info);
        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = view_whole_device(&device, handle, true);
        return r == NVML_SUCCESS
                       ? utilization_answer(&info_list, device.index, info->lastSeenTimeStamp,
                                            info->procUtilArray, &info->processSamplesCount)
                       : r;
}
