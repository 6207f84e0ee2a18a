/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a device: the newest one. Only of vGPUs is there a past (vgpu-utilization.c). A guest
 * is told how busy its vGPU is.
 */
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* Where a kind of sample is: in the device's record, or among its sensors. */
static const struct source {
        bool is_sensor;
        bool is_known;
        size_t offset;
} sources[NVML_SAMPLINGTYPE_COUNT] = {
#define USE(name)                                                               \
        {                                                                       \
                .is_known = true, .offset = offsetof(struct board_device, name) \
        }
#define MEASURED(name)                                                      \
        {                                                                   \
                .is_known = true, .is_sensor = true, .offset = SENSOR(name) \
        }
        [NVML_TOTAL_POWER_SAMPLES] = MEASURED(power),
        [NVML_GPU_UTILIZATION_SAMPLES] = USE(utilization_gpu),
        [NVML_MEMORY_UTILIZATION_SAMPLES] = USE(utilization_memory),
        [NVML_ENC_UTILIZATION_SAMPLES] = USE(utilization_encoder),
        [NVML_DEC_UTILIZATION_SAMPLES] = USE(utilization_decoder),
        [NVML_PROCESSOR_CLK_SAMPLES] = MEASURED(clock_sm),
        [NVML_MEMORY_CLK_SAMPLES] = MEASURED(clock_memory),
        [NVML_JPG_UTILIZATION_SAMPLES] = USE(utilization_jpeg),
        [NVML_OFA_UTILIZATION_SAMPLES] = USE(utilization_ofa),
};

static nvmlReturn_t read_newest(unsigned int *number, nvmlDevice_t handle,
                                const struct source *source)
{
        struct board_device device;
        nvmlReturn_t r = view_device(&device, handle, true);

        if (r != NVML_SUCCESS)
                return r;
        if (!source->is_known || (!source->is_sensor && device.mig == 1))
                return NVML_ERROR_NOT_SUPPORTED;
        if (source->is_sensor)
                return sensors_answer(handle, number, source->offset);
        *number = *(const uint32_t *)(const void *)((const char *)&device + source->offset);
        return NVML_SUCCESS;
}

/* No array asks how much room there has to be. */
nvmlReturn_t our_nvmlDeviceGetSamples(nvmlDevice_t handle, nvmlSamplingType_t kind,
                                      unsigned long long last_seen_us, nvmlValueType_t *type,
                                      unsigned int *count, nvmlSample_t *samples)
{
        unsigned long long now_us = view_sample_us();
        unsigned int number;
        nvmlReturn_t r;

        if (kind >= NVML_SAMPLINGTYPE_COUNT || !type || !count || (samples && *count == 0))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = read_newest(&number, handle, &sources[kind]);
        if (r == NVML_SUCCESS && last_seen_us >= now_us)
                r = NVML_ERROR_NOT_FOUND;
        if (r != NVML_SUCCESS)
                return r;
        *type = NVML_VALUE_TYPE_UNSIGNED_INT;
        *count = 1;
        if (samples)
                samples[0] = (nvmlSample_t){ .timeStamp = now_us, .sampleValue.uiVal = number };
        return NVML_SUCCESS;
}
