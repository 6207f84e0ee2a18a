/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers metrics between two samples if NVIDIA's library is not in use: a scenario states them for a device
 * of Hopper or later. A sample is a moment. Between two samples, the device's past says how busy it was, and
 * its links count what they carried. Nobody knows what units within a multiprocessor did.
 *
 * A guest has no metrics, because they would tell it what others did.
 */
#include "nvml/gpm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

#define SAMPLES_MAX 1024

/* No address, like the device handles. */
#define HANDLE_BASE ((uintptr_t)0x4f56470000050001)

struct sample {
        bool is_there, is_taken;
        const struct state_page *state_page; /* that of another manager counts anew */
        uint32_t device;
        uint64_t at_us;
        struct state_sample use;
        uint32_t pcie_tx, pcie_rx; /* KB/s; STATE_NONE */
        struct state_links links;
};

static struct {
        pthread_mutex_t lock;
        struct sample of[SAMPLES_MAX];
} samples = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct sample *find(nvmlGpmSample_t handle)
{
        uintptr_t index = (uintptr_t)handle - HANDLE_BASE;

        return index < SAMPLES_MAX && samples.of[index].is_there ? &samples.of[index] : NULL;
}

void gpm_forget(void)
{
        pthread_mutex_lock(&samples.lock);
        for (size_t i = 0; i < SAMPLES_MAX; i++)
                samples.of[i].is_there = false;
        pthread_mutex_unlock(&samples.lock);
}

/* NOT_SUPPORTED: an older one, one that nobody measures, or one that is cut by MIG. */
static nvmlReturn_t check_device(nvmlDevice_t handle, struct state_device *ret_device)
{
        nvmlDeviceArchitecture_t architecture;
        struct state_sensors sensors;
        nvmlReturn_t r = view_whole_device(ret_device, handle, true);

        if (r == NVML_SUCCESS)
                r = sensors_find(&sensors, handle, true);
        if (r == NVML_SUCCESS)
                r = our_nvmlDeviceGetArchitecture(handle, &architecture);
        if (r != NVML_SUCCESS)
                return r;
        return architecture >= NVML_DEVICE_ARCH_HOPPER && architecture != NVML_DEVICE_ARCH_UNKNOWN
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlGpmSupport_t *support)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!support)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (support->version != NVML_GPM_SUPPORT_VERSION)
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = check_device(handle, &device);
        if (r != NVML_SUCCESS && r != NVML_ERROR_NOT_SUPPORTED)
                return r;
        support->isSupportedDevice = r == NVML_SUCCESS;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGpmSampleAlloc(nvmlGpmSample_t *ret_handle)
{
        nvmlReturn_t r = NVML_ERROR_MEMORY;

        if (!ret_handle)
                return NVML_ERROR_INVALID_ARGUMENT;
        pthread_mutex_lock(&samples.lock);
        for (size_t i = 0; i < SAMPLES_MAX && r != NVML_SUCCESS; i++) {
                if (samples.of[i].is_there)
                        continue;
                samples.of[i] = (struct sample){ .is_there = true };
                *ret_handle = (nvmlGpmSample_t)(HANDLE_BASE + i);
                r = NVML_SUCCESS;
        }
        pthread_mutex_unlock(&samples.lock);
        return r;
}

nvmlReturn_t our_nvmlGpmSampleFree(nvmlGpmSample_t handle)
{
        struct sample *sample;

        pthread_mutex_lock(&samples.lock);
        sample = find(handle);
        if (sample)
                sample->is_there = false;
        pthread_mutex_unlock(&samples.lock);
        return sample ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static struct sample take(const struct state_device *device)
{
        struct sample sample = {
                .is_there = true,
                .is_taken = true,
                .state_page = view_state_page(),
                .device = device->index,
                .at_us = view_sample_us(),
                .use = { .gpu = device->utilization_gpu,
                         .memory = device->utilization_memory,
                         .decoder = device->utilization_decoder,
                         .jpeg = device->utilization_jpeg,
                         .ofa = device->utilization_ofa },
        };
        struct state_sensors sensors;

        if (state_read_sensors(sample.state_page, device->index, &sensors)) {
                sample.pcie_tx = sensors.pcie_tx;
                sample.pcie_rx = sensors.pcie_rx;
        }
        if (!state_read_links(sample.state_page, device->index, &sample.links))
                sample.links.n = 0;
        return sample;
}

nvmlReturn_t our_nvmlGpmSampleGet(nvmlDevice_t handle, nvmlGpmSample_t sample_handle)
{
        struct state_device device;
        struct sample *sample;
        nvmlReturn_t r = check_device(handle, &device);

        if (r != NVML_SUCCESS)
                return r;
        pthread_mutex_lock(&samples.lock);
        sample = find(sample_handle);
        if (sample)
                *sample = take(&device);
        pthread_mutex_unlock(&samples.lock);
        return sample ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* What the past of the device has between the two; nothing in it: as the second was. */
static double get_mean(const struct sample *first, const struct sample *second, size_t offset)
{
        uint64_t end = state_count_device_sample(second->state_page, second->device);
        double sum = 0;
        unsigned int n = 0;

        for (uint64_t i = state_first_device_sample(second->state_page, second->device); i < end;
             i++) {
                struct state_sample past;

                if (!state_read_device_sample(second->state_page, second->device, i, &past) ||
                    past.timestamp_us <= first->at_us || past.timestamp_us > second->at_us)
                        continue;
                sum += *(const uint32_t *)(const void *)((const char *)&past + offset);
                n++;
        }
        return n ? sum / n : *(const uint32_t *)(const void *)((const char *)&second->use + offset);
}

static nvmlReturn_t put(nvmlGpmMetric_t *metric, double value)
{
        metric->value = value;
        return NVML_SUCCESS;
}

static nvmlReturn_t put_pcie(nvmlGpmMetric_t *metric, uint32_t first, uint32_t second)
{
        if (first == STATE_NONE || second == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        return put(metric, ((double)first + second) / 2 / 1024);
}

static nvmlReturn_t put_links(nvmlGpmMetric_t *metric, const struct sample *first,
                              const struct sample *second)
{
        bool is_sum = metric->metricId <= NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC;
        unsigned int at = metric->metricId - NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC;
        unsigned int link = (at - 2) / 2;
        double seconds = (double)(second->at_us - first->at_us) / 1e6;
        double mib = (at % 2 ? (double)(second->links.tx - first->links.tx)
                             : (double)(second->links.rx - first->links.rx)) /
                     1024;

        if (second->links.n == 0 || (!is_sum && link >= second->links.n))
                return NVML_ERROR_NOT_SUPPORTED;
        if (seconds <= 0 || !second->links.active ||
            (!is_sum && !(second->links.active >> link & 1)))
                return put(metric, 0);
        return put(metric, is_sum ? mib / seconds
                                  : mib / seconds / __builtin_popcount(second->links.active));
}

static nvmlReturn_t answer(nvmlGpmMetric_t *metric, const struct sample *first,
                           const struct sample *second)
{
#define MEAN(name) put(metric, get_mean(first, second, offsetof(struct state_sample, name)))
        switch (metric->metricId) {
        case NVML_GPM_METRIC_GRAPHICS_UTIL:
                return MEAN(gpu);
        case NVML_GPM_METRIC_DRAM_BW_UTIL:
                return MEAN(memory);
        case NVML_GPM_METRIC_NVDEC_0_UTIL:
                return MEAN(decoder);
        case NVML_GPM_METRIC_NVJPG_0_UTIL:
                return MEAN(jpeg);
        case NVML_GPM_METRIC_NVOFA_0_UTIL:
                return MEAN(ofa);
        case NVML_GPM_METRIC_PCIE_TX_PER_SEC:
                return put_pcie(metric, first->pcie_tx, second->pcie_tx);
        case NVML_GPM_METRIC_PCIE_RX_PER_SEC:
                return put_pcie(metric, first->pcie_rx, second->pcie_rx);
        default:
                return metric->metricId >= NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC &&
                                       metric->metricId <= NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC
                               ? put_links(metric, first, second)
                               : NVML_ERROR_NOT_SUPPORTED;
        }
#undef MEAN
}

/* Two samples of one device, in either order. */
static nvmlReturn_t order(struct sample *ret_first, struct sample *ret_second,
                          const nvmlGpmMetricsGet_t *metrics)
{
        const struct sample *a, *b;
        nvmlReturn_t r = NVML_ERROR_INVALID_ARGUMENT;

        pthread_mutex_lock(&samples.lock);
        a = find(metrics->sample1);
        b = find(metrics->sample2);
        if (a && b && a->is_taken && b->is_taken && a->device == b->device &&
            a->state_page == b->state_page) {
                *ret_first = a->at_us <= b->at_us ? *a : *b;
                *ret_second = a->at_us <= b->at_us ? *b : *a;
                r = NVML_SUCCESS;
        }
        pthread_mutex_unlock(&samples.lock);
        return r;
}

nvmlReturn_t our_nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics)
{
        struct sample first, second;
        nvmlReturn_t r;

        if (!metrics)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (metrics->version != NVML_GPM_METRICS_GET_VERSION)
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (metrics->numMetrics == 0 || metrics->numMetrics > NVML_GPM_METRIC_MAX)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = order(&first, &second, metrics);
        for (unsigned int i = 0; r == NVML_SUCCESS && i < metrics->numMetrics; i++) {
                nvmlGpmMetric_t *metric = &metrics->metrics[i];

                metric->metricInfo = (__typeof__(metric->metricInfo)){ 0 };
                metric->value = 0;
                metric->nvmlReturn = answer(metric, &first, &second);
        }
        return r;
}
