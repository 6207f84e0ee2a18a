/* SPDX-License-Identifier: Apache-2.0 */
/* Performance states, what holds clocks down, fans, firmware, and the fabric of links. */
#include <string.h>

#include "abi/nvml-device.h"
#include "abi/nvml-fabric.h"
#include "base/test.h"
#include "nvml/fixture.h"

static const struct state_sensors measured = { .fan = 30,
                                               .fan_rpm = 1500,
                                               .clock_graphics_max = 1980,
                                               .clock_memory_max = 3201,
                                               .performance_state = 2,
                                               .throttled_power = 11,
                                               .throttled_thermal = 22,
                                               .throttled_sync_boost = 33,
                                               .throttled_hw_thermal = 44,
                                               .throttled_power_brake = 55 };

static nvmlDevice_t device_at(unsigned int index)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        return device;
}

static nvmlDevice_t measure(struct fixture *fixture)
{
        state_write_sensors(fixture->state_page, 0, &measured);
        return device_at(0);
}

static void test_p0_and_the_present_state_are_supported(void **state)
{
        nvmlDevice_t device = measure(*state);
        nvmlPstates_t states[4];
        unsigned int least, most;

        assert_int_equal(nvmlDeviceGetSupportedPerformanceStates(device, states, sizeof(states)),
                         NVML_SUCCESS);
        assert_int_equal(states[0], NVML_PSTATE_0);
        assert_int_equal(states[1], 2);
        assert_int_equal(states[2], NVML_PSTATE_UNKNOWN);
        assert_int_equal(states[3], NVML_PSTATE_UNKNOWN);
        assert_int_equal(nvmlDeviceGetSupportedPerformanceStates(device, states, 4),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(
                nvmlDeviceGetSupportedPerformanceStates(device_at(1), states, sizeof(states)),
                NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMinMaxClockOfPState(device, NVML_CLOCK_GRAPHICS,
                                                          NVML_PSTATE_0, &least, &most),
                         NVML_SUCCESS);
        assert_int_equal(least, 1980);
        assert_int_equal(most, 1980);
        assert_int_equal(
                nvmlDeviceGetMinMaxClockOfPState(device, NVML_CLOCK_GRAPHICS, 2, &least, &most),
                NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMinMaxClockOfPState(device, NVML_CLOCK_COUNT, NVML_PSTATE_0,
                                                          &least, &most),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_clocks_have_no_offset(void **state)
{
        nvmlClockOffset_v1_t offset = { .version = 0x1000018,
                                        .type = NVML_CLOCK_MEM,
                                        .maxClockOffsetMHz = 7 };
        nvmlDevicePerfModes_v1_t modes = { .version = 0x1000804 };
        nvmlDevice_t device = measure(*state);

        assert_int_equal(nvmlDeviceGetClockOffsets(device, &offset), NVML_SUCCESS);
        assert_int_equal(offset.maxClockOffsetMHz, 0);
        offset.version = 1;
        assert_int_equal(nvmlDeviceGetClockOffsets(device, &offset),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        assert_int_equal(nvmlDeviceGetPerformanceModes(device, &modes), NVML_SUCCESS);
        assert_non_null(strstr(modes.str, "perf=0, nvclock=1980, "));
        assert_non_null(strstr(modes.str, "memtransferrate=6402, "));
        modes.version = 7;
        assert_int_equal(nvmlDeviceGetPerformanceModes(device, &modes),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static unsigned long long get_field(nvmlDevice_t device, unsigned int id, nvmlReturn_t code)
{
        nvmlFieldValue_t value = { .fieldId = id };

        assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &value), NVML_SUCCESS);
        assert_int_equal(value.nvmlReturn, code);
        return value.value.ullVal;
}

/* The reasons have other numbers with the drivers from 580.82 on. */
static void test_times_of_throttling_are_told_by_reason(void **state)
{
        struct fixture *fixture = *state;
        nvmlDevice_t device = measure(fixture);
        nvmlViolationTime_t time;

        assert_int_equal(nvmlDeviceGetViolationStatus(device, NVML_PERF_POLICY_THERMAL, &time),
                         NVML_SUCCESS);
        assert_int_equal(time.violationTime, 22000);
        assert_int_equal(nvmlDeviceGetViolationStatus(device, NVML_PERF_POLICY_RELIABILITY, &time),
                         NVML_SUCCESS);
        assert_int_equal(time.violationTime, 0);
        assert_int_equal(get_field(device, NVML_FI_DEV_PERF_POLICY_POWER, NVML_SUCCESS), 11000);
        assert_int_equal(get_field(device, NVML_FI_DEV_PERF_POLICY_POWER + 2, NVML_SUCCESS), 33000);
        assert_int_equal(get_field(device, NVML_FI_DEV_PERF_POLICY_POWER + 3, NVML_SUCCESS), 0);
        assert_int_equal(get_field(device, 269, NVML_SUCCESS), 22000);
        assert_int_equal(get_field(device, 271, NVML_SUCCESS), 55000);
        (void)get_field(device, 251, NVML_ERROR_NOT_SUPPORTED);
        strcpy(fixture->state_page->driver_name, "580.65.06");
        assert_int_equal(get_field(device, 252, NVML_SUCCESS), 44000);
        (void)get_field(device, 269, NVML_ERROR_NOT_SUPPORTED);
}

static void test_fans_and_firmware(void **state)
{
        nvmlFanSpeedInfo_v1_t fan = { .version = 0x100000c };
        nvmlDevice_t device = measure(*state);
        unsigned int a, b;
        char version[NVML_GSP_FIRMWARE_VERSION_BUF_SIZE];

        assert_int_equal(nvmlDeviceGetFanSpeedRPM(device, &fan), NVML_SUCCESS);
        assert_int_equal(fan.speed, 1500);
        fan.fan = 1;
        assert_int_equal(nvmlDeviceGetFanSpeedRPM(device, &fan), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetMinMaxFanSpeed(device, &a, &b), NVML_SUCCESS);
        assert_int_equal(b, 100);
        assert_int_equal(nvmlDeviceGetGspFirmwareMode(device, &a, &b), NVML_SUCCESS);
        assert_int_equal(a, 1);
        assert_int_equal(nvmlDeviceGetGspFirmwareVersion(device, version), NVML_SUCCESS);
        assert_string_equal(version, "580.159.04");
        assert_int_equal(nvmlDeviceGetGspFirmwareVersion(device_at(1), version),
                         NVML_ERROR_NOT_SUPPORTED);
}

static void test_a_device_is_registered_with_its_fabric(void **state)
{
        struct state_links links = { .fabric = { .state = 3,
                                                 .clique = 5,
                                                 .health = 0x1aa,
                                                 .summary = 1,
                                                 .cluster = { 0xab } } };
        nvmlGpuFabricInfo_v2_t second = { .version = 0x2000024 };
        nvmlGpuFabricInfo_v3_t third = { .version = 0x3000028 };
        struct fixture *fixture = *state;
        nvmlDevice_t device = measure(fixture);
        nvmlGpuFabricInfo_t info;

        assert_int_equal(nvmlDeviceGetGpuFabricInfo(device, &info), NVML_ERROR_NOT_SUPPORTED);
        state_write_links(fixture->state_page, 0, &links);
        assert_int_equal(nvmlDeviceGetGpuFabricInfo(device, &info), NVML_SUCCESS);
        assert_int_equal(info.state, NVML_GPU_FABRIC_STATE_COMPLETED);
        assert_int_equal(info.cliqueId, 5);
        assert_int_equal(info.clusterUuid[0], 0xab);
        assert_int_equal(nvmlDeviceGetGpuFabricInfoV(device, &second), NVML_SUCCESS);
        assert_int_equal(second.healthMask, 0x1aa);
        assert_int_equal(
                nvmlDeviceGetGpuFabricInfoV(device, (nvmlGpuFabricInfo_v2_t *)(void *)&third),
                NVML_SUCCESS);
        assert_int_equal(third.healthSummary, 1);
        second.version = 3;
        assert_int_equal(nvmlDeviceGetGpuFabricInfoV(device, &second),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void test_the_newest_form_of_the_fabric_lists_cliques(void **state)
{
        struct state_links links = {
                .fabric = { .state = 2, .clique = 5, .health = 0x1aa, .summary = 1 }
        };
        struct fixture *fixture = *state;
        nvmlDevice_t device = measure(fixture);
        nvmlGpuFabricInfo_v4_t info = { .numCliques = 77 };

        assert_int_equal(nvmlDeviceGetGpuFabricInfo_v4(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetGpuFabricInfo_v4(device, &info), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(info.numCliques, 77);
        state_write_links(fixture->state_page, 0, &links);
        assert_int_equal(nvmlDeviceGetGpuFabricInfo_v4(device, &info), NVML_SUCCESS);
        assert_int_equal(info.numCliques, 0); /* not registered yet */
        links.fabric.state = NVML_GPU_FABRIC_STATE_COMPLETED;
        state_write_links(fixture->state_page, 0, &links);
        assert_int_equal(nvmlDeviceGetGpuFabricInfo_v4(device, &info), NVML_SUCCESS);
        assert_int_equal(info.numCliques, 2);
        assert_int_equal(info.cliques[0].type, NVML_GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER);
        assert_int_equal(info.cliques[1].type, NVML_GPU_FABRIC_CLIQUE_TYPE_MULTICAST_POINTER);
        assert_int_equal(info.cliques[0].id, 5);
        assert_int_equal(info.cliques[1].id, 5);
        assert_int_equal(info.healthMask, 0x1aa);
        assert_int_equal(info.healthSummary, 1);
}

static void test_what_is_can_be_set_and_nothing_drains(void **state)
{
        nvmlDevice_t device = measure(*state);
        nvmlReturn_t status = NVML_ERROR_UNKNOWN;
        nvmlEnableState_t drains = 7;
        nvmlPciInfo_t pci;

        assert_int_equal(nvmlDeviceSetMigMode(device, 0, &status), NVML_SUCCESS);
        assert_int_equal(status, NVML_SUCCESS);
        assert_int_equal(nvmlDeviceSetMigMode(device, 1, &status), NVML_ERROR_IN_USE);
        assert_int_equal(nvmlDeviceSetMigMode(device, 2, &status), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &pci), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceQueryDrainState(&pci, &drains), NVML_SUCCESS);
        assert_int_equal(drains, NVML_FEATURE_DISABLED);
        strcpy(pci.busId, "00000000:FF:00.0");
        assert_int_equal(nvmlDeviceQueryDrainState(&pci, &drains), NVML_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_p0_and_the_present_state_are_supported),
                with_state_page(test_clocks_have_no_offset),
                with_state_page(test_times_of_throttling_are_told_by_reason),
                with_state_page(test_fans_and_firmware),
                with_state_page(test_a_device_is_registered_with_its_fabric),
                with_state_page(test_the_newest_form_of_the_fabric_lists_cliques),
                with_state_page(test_what_is_can_be_set_and_nothing_drains),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
