/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler of a device, its limits and its log, in both generations of the calls. */
#include "base/test.h"
#include "nvml/fixture.h"

static nvmlDevice_t device_at(unsigned int index)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        return device;
}

static void test_the_scheduler_is_told_in_both_generations(void **state)
{
        struct fixture *fixture = *state;
        const struct state_scheduler scheduler = { .policy = STATE_POLICY_EQUAL_SHARE,
                                                   .arr = STATE_ARR_ENABLED,
                                                   .averaging_factor = 33,
                                                   .frequency = 480,
                                                   .time_slice = 2083333 };
        nvmlVgpuSchedulerStateInfo_v2_t second = { .engineId = 1 };
        nvmlVgpuSchedulerCapabilities_t capabilities;
        nvmlVgpuSchedulerGetState_t first;

        assert_int_equal(nvmlDeviceGetVgpuSchedulerCapabilities(device_at(0), &capabilities), 0);
        assert_int_equal(capabilities.supportedSchedulers[2], 3);
        assert_int_equal(capabilities.maxFrequencyForARR, 960);
        assert_int_equal(nvmlDeviceGetVgpuSchedulerState(device_at(0), &first), NVML_SUCCESS);
        assert_int_equal(first.schedulerPolicy, NVML_VGPU_SCHEDULER_POLICY_BEST_EFFORT);

        state_write_scheduler(fixture->state_page, state_slot_of_scheduler(0, 1), &scheduler);
        assert_int_equal(nvmlDeviceGetVgpuSchedulerState(device_at(0), &first), NVML_SUCCESS);
        assert_int_equal(first.schedulerPolicy, 2);
        assert_int_equal(first.arrMode, NVML_VGPU_SCHEDULER_ARR_ENABLE);
        assert_int_equal(first.schedulerParams.vgpuSchedDataWithARR.avgFactor, 33);
        assert_int_equal(first.schedulerParams.vgpuSchedDataWithARR.timeslice, 2083333);
        assert_int_equal(nvmlDeviceGetVgpuSchedulerState_v2(device_at(0), &second), NVML_SUCCESS);
        assert_int_equal(second.avgFactor, 33);
        assert_int_equal(second.timeslice, 2083333);
}

static void test_the_scheduler_log_ends_with_the_newest_turn(void **state)
{
        struct fixture *fixture = *state;
        struct state_turn turn = { .run = 5, .run_list = FIXTURE_TRAIN, .weight = 7 };
        static nvmlVgpuSchedulerLogInfo_v2_t second = { .engineId = 1 };
        static nvmlVgpuSchedulerLog_t first;

        assert_int_equal(nvmlDeviceGetVgpuSchedulerLog(device_at(0), &first), NVML_SUCCESS);
        assert_int_equal(first.entriesCount, 0);
        for (turn.timestamp = 1; turn.timestamp <= 250; turn.timestamp++)
                state_append_turn(fixture->state_page, state_slot_of_scheduler(0, 1), &turn);
        first.engineId = 0x5a5a5a5a; /* clients of the first headers leave it as it is */
        assert_int_equal(nvmlDeviceGetVgpuSchedulerLog(device_at(0), &first), NVML_SUCCESS);
        assert_int_equal(first.engineId, 1);
        assert_int_equal(first.entriesCount, 200);
        assert_int_equal(first.logEntries[0].timestamp, 51);
        assert_int_equal(first.logEntries[199].timestamp, 250);
        assert_int_equal(first.logEntries[199].swRunlistId, FIXTURE_TRAIN);
        assert_int_equal(nvmlDeviceGetVgpuSchedulerLog_v2(device_at(0), &second), NVML_SUCCESS);
        assert_int_equal(second.entriesCount, 200);
        assert_int_equal(second.logEntries[199].timestamp, 250);
        assert_int_equal(second.logEntries[199].weight, 7);
        assert_int_equal(second.logEntries[0].timeRun, 5);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_the_scheduler_is_told_in_both_generations),
                with_state_page(test_the_scheduler_log_ends_with_the_newest_turn),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
