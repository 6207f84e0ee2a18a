/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics between two samples. */
#include <math.h>

#include "abi/nvml-device.h"
#include "abi/nvml-gpm.h"
#include "base/clock.h"
#include "base/test.h"
#include "nvml/fixture.h"

static nvmlDevice_t device_at(unsigned int index)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        return device;
}

/* The first device is measured; 2 s later it has sent 4 GiB over its links. */
static void measure(struct fixture *fixture, uint64_t sent)
{
        const struct state_sensors sensors = { .power = 1, .pcie_tx = 2048, .pcie_rx = STATE_NONE };
        const struct state_links links = { .n = 2, .active = 3, .tx = sent };

        state_write_sensors(fixture->state_page, 0, &sensors);
        state_write_links(fixture->state_page, 0, &links);
}

static nvmlGpmSample_t take(nvmlDevice_t device)
{
        nvmlGpmSample_t sample;

        assert_int_equal(nvmlGpmSampleAlloc(&sample), NVML_SUCCESS);
        assert_int_equal(nvmlGpmSampleGet(device, sample), NVML_SUCCESS);
        return sample;
}

static void test_metrics_are_what_happened_between_two_samples(void **state)
{
        static const struct {
                unsigned int id;
                nvmlReturn_t code;
                double value;
        } rows[] = {
                { NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_SUCCESS, 50 },
                { NVML_GPM_METRIC_DRAM_BW_UTIL, NVML_SUCCESS, 15 },
                { 2, NVML_ERROR_NOT_SUPPORTED, 0 }, /* of multiprocessors */
                { 5, NVML_ERROR_NOT_SUPPORTED, 0 }, /* of tensor units */
                { NVML_GPM_METRIC_PCIE_TX_PER_SEC, NVML_SUCCESS, 2 },
                { NVML_GPM_METRIC_PCIE_RX_PER_SEC, NVML_ERROR_NOT_SUPPORTED, 0 },
                { NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, NVML_SUCCESS, 2048 },
                { NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, NVML_SUCCESS, 0 },
                { NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC + 1, NVML_SUCCESS, 1024 },
                { NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC + 4, NVML_ERROR_NOT_SUPPORTED, 0 },
                { 332, NVML_ERROR_NOT_SUPPORTED, 0 },
        };
        enum { N = sizeof(rows) / sizeof(rows[0]) };
        nvmlGpmMetricsGet_t metrics = { .version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = N };
        struct fixture *fixture = *state;
        struct state_sample sample;
        uint64_t begin_us;

        measure(fixture, 0);
        fixture_beat(fixture, 2000000000);
        metrics.sample2 = take(device_at(0));
        begin_us = clock_now(CLOCK_REALTIME) / 1000 - 2000000;
        for (uint32_t i = 0; i < 3; i++) {
                /* The first is before all, the others are between the two. */
                sample = (struct state_sample){ .timestamp_us = begin_us - 1000000 + i * 1500000,
                                                .gpu = i == 0 ? 99 : i * 20 + 20,
                                                .memory = i * 10 };
                state_append_device_sample(fixture->state_page, 0, &sample);
        }
        measure(fixture, 4 << 20);
        fixture_beat(fixture, 0);
        metrics.sample1 = take(device_at(0)); /* in either order */
        for (unsigned int i = 0; i < N; i++)
                metrics.metrics[i].metricId = rows[i].id;
        assert_int_equal(nvmlGpmMetricsGet(&metrics), NVML_SUCCESS);
        for (unsigned int i = 0; i < N; i++) {
                assert_int_equal(metrics.metrics[i].nvmlReturn, rows[i].code);
                if (fabs(metrics.metrics[i].value - rows[i].value) > rows[i].value / 20)
                        fail_msg("metric %u: %f", rows[i].id, metrics.metrics[i].value);
        }
}

static void test_samples_are_handles(void **state)
{
        nvmlGpmMetricsGet_t metrics = { .version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = 1 };
        nvmlGpmSample_t sample;

        measure(*state, 0);
        assert_int_equal(nvmlGpmSampleAlloc(NULL), NVML_ERROR_INVALID_ARGUMENT);
        metrics.sample1 = take(device_at(0));
        assert_int_equal(nvmlGpmSampleAlloc(&sample), NVML_SUCCESS);
        metrics.sample2 = sample;
        metrics.metrics[0].metricId = NVML_GPM_METRIC_GRAPHICS_UTIL;
        assert_int_equal(nvmlGpmMetricsGet(&metrics), NVML_ERROR_INVALID_ARGUMENT); /* empty */
        assert_int_equal(nvmlGpmSampleGet(device_at(0), sample), NVML_SUCCESS);
        assert_int_equal(nvmlGpmMetricsGet(&metrics), NVML_SUCCESS);
        assert_true(metrics.metrics[0].value > 36.5 && metrics.metrics[0].value < 37.5);
        metrics.version = 2;
        assert_int_equal(nvmlGpmMetricsGet(&metrics), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        metrics.version = 1;
        metrics.numMetrics = NVML_GPM_METRIC_MAX + 1;
        assert_int_equal(nvmlGpmMetricsGet(&metrics), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlGpmSampleFree(sample), NVML_SUCCESS);
        assert_int_equal(nvmlGpmSampleFree(sample), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlGpmSampleGet(device_at(0), sample), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlGpmSampleFree(metrics.sample1), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_who_is_not_measured_has_no_metrics(void **state)
{
        nvmlGpmSupport_t support = { .version = NVML_GPM_SUPPORT_VERSION, .isSupportedDevice = 7 };
        struct fixture *fixture = *state;
        struct state_device device;
        nvmlGpmSample_t sample;

        measure(fixture, 0);
        assert_int_equal(nvmlGpmQueryDeviceSupport(device_at(0), &support), NVML_SUCCESS);
        assert_int_equal(support.isSupportedDevice, 1);
        assert_int_equal(nvmlGpmQueryDeviceSupport(device_at(1), &support), NVML_SUCCESS);
        assert_int_equal(support.isSupportedDevice, 0);
        assert_int_equal(nvmlGpmSampleAlloc(&sample), NVML_SUCCESS);
        assert_int_equal(nvmlGpmSampleGet(device_at(1), sample), NVML_ERROR_NOT_SUPPORTED);
        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.pci_device_id = 0x20b010de; /* Ampere */
        state_write_device(fixture->state_page, 0, &device);
        assert_int_equal(nvmlGpmQueryDeviceSupport(device_at(0), &support), NVML_SUCCESS);
        assert_int_equal(support.isSupportedDevice, 0);
        support.version = 2;
        assert_int_equal(nvmlGpmQueryDeviceSupport(device_at(0), &support),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_metrics_are_what_happened_between_two_samples),
                with_state_page(test_samples_are_handles),
                with_state_page(test_who_is_not_measured_has_no_metrics),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
