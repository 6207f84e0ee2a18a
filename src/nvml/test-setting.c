/* SPDX-License-Identifier: Apache-2.0 */
/* What changes something: what the manager is asked, and what its answers mean. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "abi/nvml-accounting.h"
#include "base/cleanup.h"
#include "base/test.h"
#include "fake/manager.h"
#include "nvml/fixture.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

#define DEVICE "'device':'" FIXTURE_GPU_0_UUID "'"

static nvmlDevice_t device(void)
{
        nvmlDevice_t handle;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &handle), NVML_SUCCESS);
        return handle;
}

static nvmlReturn_t set_virtualization(void)
{
        return nvmlDeviceSetVirtualizationMode(device(), NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU);
}

static nvmlReturn_t set_heterogeneous(void)
{
        const nvmlVgpuHeterogeneousMode_v1_t mode = { .version = 0x1000008, .mode = 1 };

        return nvmlDeviceSetVgpuHeterogeneousMode(device(), &mode);
}

static nvmlReturn_t set_capability(void)
{
        return nvmlDeviceSetVgpuCapabilities(device(), NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU,
                                             NVML_FEATURE_DISABLED);
}

static nvmlReturn_t unload(void)
{
        return nvmlDeviceVgpuForceGspUnload(device());
}

static nvmlReturn_t set_accounting(void)
{
        return nvmlDeviceSetAccountingMode(device(), NVML_FEATURE_ENABLED);
}

static nvmlReturn_t set_range(void)
{
        nvmlVgpuVersion_t range = { FIXTURE_VGPU_VERSION, FIXTURE_VGPU_VERSION };

        return nvmlSetVgpuVersion(&range);
}

static nvmlReturn_t set_encoder(void)
{
        return nvmlVgpuInstanceSetEncoderCapacity(FIXTURE_INFER, 40);
}

static nvmlReturn_t clear_accounting(void)
{
        return nvmlVgpuInstanceClearAccountingPids(FIXTURE_INFER);
}

/* As nvidia-smi asks: -p 2 -a 0 -ts 2000000. */
static nvmlReturn_t set_turns(void)
{
        nvmlVgpuSchedulerSetState_t state = {
                .schedulerPolicy = 2,
                .enableARRMode = NVML_VGPU_SCHEDULER_ARR_DISABLE,
                .schedulerParams.vgpuSchedData.timeslice = 2000000,
        };

        return nvmlDeviceSetVgpuSchedulerState(device(), &state);
}

static nvmlReturn_t set_adaptive_turns(void)
{
        nvmlVgpuSchedulerSetState_t state = {
                .schedulerPolicy = 3,
                .enableARRMode = NVML_VGPU_SCHEDULER_ARR_ENABLE,
                .schedulerParams.vgpuSchedDataWithARR = { .avgFactor = 10, .frequency = 100 },
        };

        return nvmlDeviceSetVgpuSchedulerState(device(), &state);
}

static nvmlReturn_t set_usual_turns(void)
{
        nvmlVgpuSchedulerSetState_t state = {
                .schedulerPolicy = 2,
                .schedulerParams.vgpuSchedDataWithARR = { .avgFactor = 10, .frequency = 100 },
        };

        return nvmlDeviceSetVgpuSchedulerState(device(), &state);
}

static nvmlReturn_t set_turns_v2(void)
{
        nvmlVgpuSchedulerState_v2_t state = {
                .engineId = 2, .schedulerPolicy = 1, .avgFactor = 5, .frequency = 200
        };

        return nvmlDeviceSetVgpuSchedulerState_v2(device(), &state);
}

static const struct {
        nvmlReturn_t (*set)(void);
        const char *method;
        const char *parameters;
} changes[] = {
        { set_virtualization, "SetVirtualizationMode", DEVICE ",'mode':3" },
        { set_heterogeneous, "SetVgpuHeterogeneousMode", DEVICE ",'enabled':true" },
        { set_capability, "SetVgpuCapability", DEVICE ",'capability':6,'enabled':false" },
        { unload, "ForceGspUnload", DEVICE },
        { set_accounting, "SetAccountingMode", DEVICE ",'enabled':true" },
        { set_range, "SetVgpuVersionRange", "'min':65536,'max':65536" },
        { set_encoder, "SetVgpuEncoderCapacity", "'name':'3000000012','percent':40" },
        { clear_accounting, "ClearVgpuAccounting", "'name':'3000000012'" },
        { set_turns, "SetVgpuSchedulerState",
          DEVICE ",'engine':1,'policy':2,'arr':false,'averaging_factor':0,'frequency':0,"
                 "'time_slice':2000000" },
        { set_adaptive_turns, "SetVgpuSchedulerState",
          DEVICE ",'engine':1,'policy':3,'arr':true,'averaging_factor':10,'frequency':100,"
                 "'time_slice':0" },
        { set_usual_turns, "SetVgpuSchedulerState",
          DEVICE ",'engine':1,'policy':2,'averaging_factor':10,'frequency':100,'time_slice':0" },
        { set_turns_v2, "SetVgpuSchedulerState",
          DEVICE ",'engine':2,'policy':1,'averaging_factor':5,'frequency':200,'time_slice':0" },
};

#define N_CHANGES (sizeof(changes) / sizeof(changes[0]))

/* Our library looks for the socket where @fake is, while the state page stays where it is. */
static void point_to(const struct fake_manager *fake)
{
        setenv("OPENVGPU_RUN", fake_manager_get_directory(fake), 1);
}

static nvmlReturn_t try_with(size_t i, const struct fake_step *like)
{
        struct fake_step step = *like;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        char call[512];
        nvmlReturn_t r;

        step.method = changes[i].method;
        fake = fake_manager_new(&step, 1);
        point_to(fake);
        r = changes[i].set();
        snprintf(call, sizeof(call), "{'method':'org.openvgpu.%s','parameters':{%s}}",
                 changes[i].method, changes[i].parameters);
        assert_string_equal(fake_manager_get_call(fake, 0), call);
        return r;
}

static void test_the_manager_is_asked_for_each_change(void **state)
{
        const struct fake_step step = { .answers = { "{'parameters':{'percent':40}}" } };

        (void)state;
        for (size_t i = 0; i < N_CHANGES; i++)
                assert_int_equal(try_with(i, &step), NVML_SUCCESS);
}

static void test_the_managers_refusal_is_nvmls_code(void **state)
{
        const struct fake_step step = {
                .answers = { "{'error':'org.openvgpu.PermissionDenied','parameters':{}}" }
        };

        (void)state;
        for (size_t i = 0; i < N_CHANGES; i++)
                assert_int_equal(try_with(i, &step), NVML_ERROR_NO_PERMISSION);
}

static void test_a_manager_that_makes_no_sense_is_unknown(void **state)
{
        static const struct fake_step steps[] = {
                { .answers = { "nothing of the kind" } },   { .answers = { "{'error':" } },
                { .cut = "{'parameters':{", .hang_up = 1 }, { .hang_up = 1 },
                { .junk = 3u << 20, .hang_up = 1 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                assert_int_equal(try_with(i, &steps[i]), NVML_ERROR_UNKNOWN);
}

static void test_without_a_manager_nothing_can_be_changed(void **state)
{
        (void)state;
        setenv("OPENVGPU_RUN", "/nonexistent", 1);
        assert_int_equal(set_encoder(), NVML_ERROR_UNKNOWN);
}

static void test_a_silent_manager_does_not_hold_us_for_ever(void **state)
{
        const struct fake_step step = { .method = "SetVgpuEncoderCapacity" };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        struct timespec start, end;

        (void)state;
        point_to(fake);
        clock_gettime(CLOCK_MONOTONIC, &start);
        assert_int_equal(set_encoder(), NVML_ERROR_UNKNOWN);
        clock_gettime(CLOCK_MONOTONIC, &end);
        assert_true(end.tv_sec - start.tv_sec >= 4);
}

static void test_arguments_are_checked_before_anybody_is_asked(void **state)
{
        nvmlVgpuSchedulerSetState_t scheduler = { .schedulerPolicy = 4 };
        nvmlVgpuHeterogeneousMode_v1_t mode = { .version = 0x1000008, .mode = 2 };
        nvmlVgpuVersion_t range = { 2, 1 };

        (void)state;
        setenv("OPENVGPU_RUN", "/nonexistent", 1); /* asking would be UNKNOWN */
        assert_int_equal(nvmlVgpuInstanceSetEncoderCapacity(99, 101), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceSetEncoderCapacity(FIXTURE_TRAIN, 101),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceSetVgpuSchedulerState(device(), &scheduler),
                         NVML_ERROR_INVALID_ARGUMENT);
        scheduler = (nvmlVgpuSchedulerSetState_t){ .schedulerPolicy = 1, .enableARRMode = 3 };
        assert_int_equal(nvmlDeviceSetVgpuSchedulerState(device(), &scheduler),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceSetVgpuHeterogeneousMode(device(), &mode),
                         NVML_ERROR_INVALID_ARGUMENT);
        mode.version = 8;
        assert_int_equal(nvmlDeviceSetVgpuHeterogeneousMode(device(), &mode),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        assert_int_equal(nvmlSetVgpuVersion(&range), NVML_ERROR_INVALID_ARGUMENT);
        range = (nvmlVgpuVersion_t){ 0, FIXTURE_VGPU_VERSION };
        assert_int_equal(nvmlSetVgpuVersion(&range), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceSetVirtualizationMode(device(), 5), NVML_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_the_manager_is_asked_for_each_change),
                with_state_page(test_the_managers_refusal_is_nvmls_code),
                with_state_page(test_a_manager_that_makes_no_sense_is_unknown),
                with_state_page(test_without_a_manager_nothing_can_be_changed),
                with_state_page(test_a_silent_manager_does_not_hold_us_for_ever),
                with_state_page(test_arguments_are_checked_before_anybody_is_asked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
