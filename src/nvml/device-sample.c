/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers samples of a device. The state page has a ring of samples that say how busy the device was, and
 * only the newest sample of its sensors. A guest learns how busy its vGPU was.
 */
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* Where a kind of sample is: in the ring, or among the sensors. */
static const struct source {
        bool is_sensor;
        bool is_known;
        size_t offset;
} sources[NVML_SAMPLINGTYPE_COUNT] = {
#define USE(name)                                                               \
        {                                                                       \
                .is_known = true, .offset = offsetof(struct state_sample, name) \
        }
#define MEASURED(name)                                                      \
        {                                                                   \
                .is_known = true, .is_sensor = true, .offset = SENSOR(name) \
        }
        [NVML_TOTAL_POWER_SAMPLES] = MEASURED(power),
        [NVML_GPU_UTILIZATION_SAMPLES] = USE(gpu),
        [NVML_MEMORY_UTILIZATION_SAMPLES] = USE(memory),
        [NVML_ENC_UTILIZATION_SAMPLES] = USE(encoder),
        [NVML_DEC_UTILIZATION_SAMPLES] = USE(decoder),
        [NVML_PROCESSOR_CLK_SAMPLES] = MEASURED(clock_sm),
        [NVML_MEMORY_CLK_SAMPLES] = MEASURED(clock_memory),
        [NVML_JPG_UTILIZATION_SAMPLES] = USE(jpeg),
        [NVML_OFA_UTILIZATION_SAMPLES] = USE(ofa),
};

/* The ring: of the device, or of the vGPU of a guest. */
struct past {
        const struct state_page *state_page;
        uint32_t slot;
        bool is_own;
        struct state_sample now; /* where nothing is in the ring yet */
};

static bool open_past(struct past *past, const struct state_device *device)
{
        struct view_instance own = { .state_page = view_state_page(), .slot = device->index };

        past->is_own = view_is_guest();
        if (past->is_own && !view_own_instance(&own))
                return false;
        past->state_page = own.state_page;
        past->slot = own.slot;
        past->now = (struct state_sample){ .timestamp_us = view_sample_us(),
                                           .gpu = device->utilization_gpu,
                                           .memory = device->utilization_memory,
                                           .encoder = device->utilization_encoder,
                                           .decoder = device->utilization_decoder,
                                           .jpeg = device->utilization_jpeg,
                                           .ofa = device->utilization_ofa };
        return true;
}

static uint64_t past_begin(const struct past *past)
{
        return past->is_own ? state_first_sample(past->state_page, past->slot)
                            : state_first_device_sample(past->state_page, past->slot);
}

static uint64_t past_end(const struct past *past)
{
        return past->is_own ? state_count_sample(past->state_page, past->slot)
                            : state_count_device_sample(past->state_page, past->slot);
}

static bool past_read(const struct past *past, uint64_t number, struct state_sample *ret_sample)
{
        return past->is_own
                       ? state_read_sample(past->state_page, past->slot, number, ret_sample)
                       : state_read_device_sample(past->state_page, past->slot, number, ret_sample);
}

static void put(nvmlSample_t *to, const struct state_sample *sample, size_t offset)
{
        const char *number = (const char *)sample + offset;

        *to = (nvmlSample_t){ .timeStamp = sample->timestamp_us,
                              .sampleValue.uiVal = *(const uint32_t *)(const void *)number };
}

/* Those that are newer than the caller has seen, the oldest first, so that none is left out for ever. */
static nvmlReturn_t answer_past(const struct past *past, size_t offset,
                                unsigned long long last_seen_us, unsigned int *count,
                                nvmlSample_t *samples)
{
        uint64_t end = past_end(past);
        struct state_sample sample;
        unsigned int n = 0;

        for (uint64_t i = past_begin(past); i < end && n < *count; i++)
                if (past_read(past, i, &sample) && sample.timestamp_us > last_seen_us)
                        put(&samples[n++], &sample, offset);
        if (end == 0 && past->now.timestamp_us > last_seen_us)
                put(&samples[n++], &past->now, offset);
        if (n == 0)
                return NVML_ERROR_NOT_FOUND;
        *count = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t answer_use(const struct state_device *device, size_t offset,
                               unsigned long long last_seen_us, unsigned int *count,
                               nvmlSample_t *samples)
{
        struct past past;
        uint64_t n;

        if (device->mig == 1)
                return NVML_ERROR_NOT_SUPPORTED;
        if (!open_past(&past, device))
                return NVML_ERROR_NOT_FOUND;
        if (samples)
                return answer_past(&past, offset, last_seen_us, count, samples);
        n = past_end(&past) - past_begin(&past);
        *count = n > 0 ? (unsigned int)n : 1;
        return NVML_SUCCESS;
}

static nvmlReturn_t answer_sensor(nvmlDevice_t handle, size_t offset,
                                  unsigned long long last_seen_us, unsigned int *count,
                                  nvmlSample_t *samples)
{
        unsigned long long now_us = view_sample_us();
        unsigned int number;
        nvmlReturn_t r = sensors_answer(handle, &number, offset);

        if (r == NVML_SUCCESS && last_seen_us >= now_us)
                r = NVML_ERROR_NOT_FOUND;
        if (r != NVML_SUCCESS)
                return r;
        *count = 1;
        if (samples)
                samples[0] = (nvmlSample_t){ .timeStamp = now_us, .sampleValue.uiVal = number };
        return NVML_SUCCESS;
}

/* No array asks how much room there has to be. */
nvmlReturn_t our_nvmlDeviceGetSamples(nvmlDevice_t handle, nvmlSamplingType_t kind,
                                      unsigned long long last_seen_us, nvmlValueType_t *type,
                                      unsigned int *count, nvmlSample_t *samples)
{
        struct state_device device;
        nvmlReturn_t r;

        if (kind >= NVML_SAMPLINGTYPE_COUNT || !type || !count || (samples && *count == 0))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = view_device(&device, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        if (!sources[kind].is_known)
                return NVML_ERROR_NOT_SUPPORTED;
        r = sources[kind].is_sensor
                    ? answer_sensor(handle, sources[kind].offset, last_seen_us, count, samples)
                    : answer_use(&device, sources[kind].offset, last_seen_us, count, samples);
        if (r == NVML_SUCCESS)
                *type = NVML_VALUE_TYPE_UNSIGNED_INT;
        return r;
}
