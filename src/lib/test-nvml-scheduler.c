/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler, as drivers of three generations show it and have it set. */
#include <openvgpu/device.h>
#include <openvgpu/placement.h>
#include <openvgpu/scheduler.h>

#include "lib/test-nvml.h"

static void test_scheduler_of_the_newest_driver(void **state)
{
        CLEANUP(freep) struct vgpu_scheduler_capabilities *capabilities = NULL;
        CLEANUP(freep) struct vgpu_scheduler_state *graphics = NULL, *nvenc = NULL;
        CLEANUP(freep) struct vgpu_scheduler_log *log = NULL;
        (void)state;

        assert_int_equal(vgpu_scheduler_lookup_capabilities(fixture.host, 0, &capabilities), 0);
        assert_int_equal(capabilities->n_policies, 2);
        assert_int_equal(capabilities->policies[1], VGPU_SCHEDULER_EQUAL_SHARE);
        assert_int_equal(capabilities->timeslice_min_ns, 1000000);
        assert_int_equal(capabilities->timeslice_max_ns, 30000000);
        assert_true(capabilities->has_arr);
        assert_int_equal(capabilities->frequency_min_hz, 63);
        assert_int_equal(capabilities->average_factor_max, 60);

        assert_int_equal(vgpu_scheduler_lookup_state(fixture.host, 0, ALL, VGPU_SCHEDULER_GRAPHICS,
                                                     &graphics),
                         0);
        assert_int_equal(graphics->policy, VGPU_SCHEDULER_FIXED_SHARE);
        assert_int_equal(graphics->arr, VGPU_SCHEDULER_ARR_ENABLED);
        assert_int_equal(graphics->average_factor, 40);
        assert_int_equal(graphics->timeslice_ns, 1000000);
        assert_int_equal(
                vgpu_scheduler_lookup_state(fixture.host, 0, ALL, VGPU_SCHEDULER_NVENC0, &nvenc),
                0);
        assert_int_equal(nvenc->engine, VGPU_SCHEDULER_NVENC0);
        assert_int_equal(nvenc->arr, VGPU_SCHEDULER_ARR_DEFAULT);

        /* The driver says that there are more entries than there is room for. */
        assert_int_equal(
                vgpu_scheduler_lookup_log(fixture.host, 0, ALL, VGPU_SCHEDULER_GRAPHICS, &log), 0);
        assert_int_equal(log->n_entries, 200);
        assert_int_equal(log->entries[199]->time_ns, 1199);
        assert_int_equal(log->entries[199]->weight, 64);
        assert_int_equal(log->state->average_factor, 33);
        assert_string_equal(vgpu_scheduler_policy_get_name(log->state->policy), "equal-share");
        assert_string_equal(vgpu_scheduler_engine_get_name(VGPU_SCHEDULER_NVENC1), "nvenc1");
        assert_string_equal(vgpu_scheduler_engine_get_name(9), "unknown");
}

static void test_scheduler_of_an_older_driver(void **state)
{
        CLEANUP(freep) struct vgpu_scheduler_state *found = NULL;
        CLEANUP(freep) struct vgpu_scheduler_log *log = NULL;
        struct vgpu_scheduler_state *none = NULL;
        struct fixture old;
        (void)state;

        fixture_open(&old, "550");
        assert_int_equal(
                vgpu_scheduler_lookup_state(old.host, 0, ALL, VGPU_SCHEDULER_GRAPHICS, &found), 0);
        assert_int_equal(found->policy, VGPU_SCHEDULER_EQUAL_SHARE);
        assert_int_equal(found->arr, VGPU_SCHEDULER_ARR_ENABLED);
        assert_int_equal(found->average_factor, 33);
        assert_int_equal(found->timeslice_ns, 2000000);
        assert_int_equal(vgpu_scheduler_lookup_log(old.host, 0, ALL, VGPU_SCHEDULER_GRAPHICS, &log),
                         0);
        assert_int_equal(log->n_entries, 1);
        assert_int_equal(log->state->timeslice_ns, 3000000);
        assert_int_equal(log->state->average_factor, 0);
        assert_int_equal(log->entries[0]->run_total_ns, 500);
        assert_int_equal(log->entries[0]->preemption_total_ns, 5);
        assert_int_equal(log->entries[0]->weight, VGPU_UNKNOWN);
        fixture_expect(&old,
                       vgpu_scheduler_lookup_state(old.host, 0, ALL, VGPU_SCHEDULER_NVENC0, &none),
                       VGPU_ERROR_NOT_IN_DRIVER,
                       "device 0: the scheduler of another engine is not in this driver (needs "
                       "R595");
        assert_null(none);
        fixture_close(&old);
}

static void expect_set(const struct fixture *of, unsigned int generation, unsigned int policy,
                       unsigned int arr, unsigned int a, unsigned int b)
{
        assert_int_equal(of->fake->set[0], generation);
        assert_int_equal(of->fake->set[2], policy);
        assert_int_equal(of->fake->set[3], arr);
        assert_int_equal(of->fake->set[4], a);
        assert_int_equal(of->fake->set[5], b);
}

static void test_the_scheduler_is_set_by_the_call_that_can(void **state)
{
        struct vgpu_scheduler_settings average = VGPU_SCHEDULER_SETTINGS_INIT;
        struct vgpu_scheduler_settings slice = VGPU_SCHEDULER_SETTINGS_INIT;
        struct vgpu_scheduler_settings unset = { 0 };
        struct fixture old;
        (void)state;

        average.policy = VGPU_SCHEDULER_EQUAL_SHARE;
        average.arr = VGPU_SCHEDULER_ARR_ENABLED;
        average.average_factor = 33;
        average.frequency_hz = 480;
        slice.policy = VGPU_SCHEDULER_FIXED_SHARE;
        slice.timeslice_ns = 2000000;

        assert_int_equal(vgpu_scheduler_set_state(fixture.host, 0, ALL, &average), 0);
        expect_set(&fixture, 2, 2, 0, 33, 480);
        assert_int_equal(vgpu_scheduler_set_state(fixture.host, 0, ALL, &slice), 0);
        expect_set(&fixture, 1, 3, 0, 2000000, 0);
        assert_int_equal(vgpu_scheduler_set_state(fixture.host, 1, 5, &slice), 0);
        expect_set(&fixture, 1, 3, 0, 2000000, 0);
        assert_int_equal(vgpu_scheduler_set_state(fixture.host, 1, 5, &average), 0);
        expect_set(&fixture, 2, 2, 0, 33, 480);
        fixture_expect(&fixture, vgpu_scheduler_set_state(fixture.host, 0, ALL, &unset),
                       VGPU_ERROR_INVALID_PARAMETER, "the options were not initialized");

        fixture_open(&old, "550");
        assert_int_equal(vgpu_scheduler_set_state(old.host, 0, ALL, &average), 0);
        expect_set(&old, 1, 2, 2, 33, 480);
        fixture_close(&old);
}

/* The driver says of all of these the same: which one it was, the library finds out. */
static void test_a_refused_setting_is_named_with_its_range(void **state)
{
        struct vgpu_scheduler_settings settings = VGPU_SCHEDULER_SETTINGS_INIT;
        (void)state;

        settings.policy = VGPU_SCHEDULER_EQUAL_SHARE;
        settings.average_factor = 61;
        fixture.fake->answer_of = "nvmlDeviceSetVgpuSchedulerState_v2";
        fixture.fake->answer = NVML_ERROR_INVALID_ARGUMENT;
        fixture_expect(&fixture, vgpu_scheduler_set_state(fixture.host, 0, ALL, &settings),
                       VGPU_ERROR_INVALID_PARAMETER, "average_factor must be 1 to 60, not 61");
        assert_string_equal(vgpu_host_get_error(fixture.host)->parameter, "average_factor");
        assert_string_equal(vgpu_host_get_error(fixture.host)->driver_call,
                            "nvmlDeviceSetVgpuSchedulerState_v2");
        settings.policy = VGPU_SCHEDULER_FIXED_SHARE;
        fixture_expect(&fixture, vgpu_scheduler_set_state(fixture.host, 0, ALL, &settings),
                       VGPU_ERROR_INVALID_PARAMETER, "the device has no policy 3");
        settings.policy = VGPU_SCHEDULER_EQUAL_SHARE;
        settings.average_factor = 0; /* nothing is out of range */
        fixture_expect(&fixture, vgpu_scheduler_set_state(fixture.host, 0, ALL, &settings),
                       VGPU_ERROR_INVALID_PARAMETER, "not a valid value");
        fixture.fake->answer = NVML_ERROR_NOT_SUPPORTED;
        fixture_expect(&fixture, vgpu_scheduler_set_state(fixture.host, 0, ALL, &settings),
                       VGPU_ERROR_NOT_SUPPORTED, "not while a vGPU is active");
        fixture.fake->answer_of = NULL;
}

static void expect_parameter(int r, const char *parameter, const char *message)
{
        fixture_expect(&fixture, r, VGPU_ERROR_INVALID_PARAMETER, message);
        assert_string_equal(vgpu_host_get_error(fixture.host)->parameter, parameter);
}

/* Numbers that nobody knows: some the library must see itself, for the driver would not, or mean another. */
static void test_an_argument_that_there_is_not_is_named(void **state)
{
        struct vgpu_scheduler_settings settings = VGPU_SCHEDULER_SETTINGS_INIT;
        struct vgpu_scheduler_state *is = NULL;
        struct vgpu_placement_list *list = NULL;
        uint32_t value;
        (void)state;

        settings.arr = (enum vgpu_scheduler_arr)7;
        expect_parameter(vgpu_scheduler_set_state(fixture.host, 0, ALL, &settings), "arr",
                         "device 0: arr is 0 (default), 1 (disabled) or 2 (enabled), not 7");
        expect_parameter(vgpu_placement_lookup_possible(fixture.host, 0, 500,
                                                        (enum vgpu_placement_mode)2, &list),
                         "mode", "device 0: there is no mode 2");

        fixture.fake->answer = NVML_ERROR_INVALID_ARGUMENT;
        fixture.fake->answer_of = "nvmlDeviceSetVgpuSchedulerState_v2";
        settings.arr = VGPU_SCHEDULER_ARR_DEFAULT;
        settings.engine = (enum vgpu_scheduler_engine)9;
        expect_parameter(vgpu_scheduler_set_state(fixture.host, 0, ALL, &settings), "engine",
                         "there is no engine 9: device 0: not a valid value");
        fixture.fake->answer_of = "nvmlDeviceGetVgpuSchedulerState_v2";
        expect_parameter(vgpu_scheduler_lookup_state(fixture.host, 0, ALL,
                                                     (enum vgpu_scheduler_engine)9, &is),
                         "engine", "there is no engine 9");
        fixture.fake->answer_of = "nvmlDeviceGetVgpuCapabilities";
        expect_parameter(vgpu_device_get_capability(fixture.host, 0,
                                                    (enum vgpu_device_capability)99, &value),
                         "capability", "there is no capability 99");
        fixture.fake->answer_of = NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_scheduler_of_the_newest_driver),
                TEST(test_scheduler_of_an_older_driver),
                TEST(test_the_scheduler_is_set_by_the_call_that_can),
                TEST(test_a_refused_setting_is_named_with_its_range),
                TEST(test_an_argument_that_there_is_not_is_named),
        };

        return cmocka_run_group_tests_name("lib-nvml-scheduler", tests, NULL, NULL);
}
