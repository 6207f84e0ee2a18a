/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a vGPU: one device as large as the quota, one's own processes, nothing else. */
#include <stdlib.h>
#include <string.h>

#include "abi/nvml-accounting.h"
#include "base/test.h"
#include "nvml/fixture.h"

static int guest_setup(void **state)
{
        setenv("OPENVGPU_VGPU", FIXTURE_TRAIN_UUID, 1);
        return fixture_setup(state);
}

static int guest_teardown(void **state)
{
        unsetenv("OPENVGPU_VGPU");
        return fixture_teardown(state);
}

static nvmlDevice_t the_device(void)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        return device;
}

static void test_a_guest_has_one_device_as_large_as_its_quota(void **state)
{
        nvmlUtilization_t utilization;
        nvmlMemory_v2_t memory = { .version = NVML_VERSION(nvmlMemory_v2_t, 2) };
        nvmlDevice_t device;
        unsigned int count;

        (void)state;
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetHandleByUUID(FIXTURE_GPU_1_UUID, &device),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlDeviceGetMemoryInfo_v2(the_device(), &memory), NVML_SUCCESS);
        assert_int_equal(memory.total, 32 * GIB);
        assert_int_equal(memory.used, 6 * GIB);
        assert_int_equal(nvmlDeviceGetUtilizationRates(the_device(), &utilization), NVML_SUCCESS);
        assert_int_equal(utilization.gpu, 20);
}

static void test_a_guest_is_a_vgpu_and_hosts_none(void **state)
{
        nvmlGridLicensableFeatures_t features;
        nvmlGpuVirtualizationMode_t mode;
        unsigned int count = 0;
        unsigned long long bytes;

        (void)state;
        assert_int_equal(nvmlDeviceGetVirtualizationMode(the_device(), &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_GPU_VIRTUALIZATION_MODE_VGPU);
        assert_int_equal(nvmlDeviceGetActiveVgpus(the_device(), &count, NULL),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetSupportedVgpus(the_device(), &count, NULL),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetGridLicensableFeatures_v4(the_device(), &features), 0);
        assert_int_equal(features.licensableFeaturesCount, 1);
        assert_int_equal(features.gridLicensableFeatures[0].featureState, 1);
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_INFER, &bytes), NVML_ERROR_NOT_FOUND);
}

static void test_a_guest_clears_nothing_of_its_device(void **state)
{
        nvmlFieldValue_t value = { .fieldId = 138 };

        (void)state;
        assert_int_equal(nvmlDeviceClearFieldValues(the_device(), 1, &value), NVML_SUCCESS);
        assert_int_equal(value.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceClearFieldValues(the_device(), 1, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_a_guest_sees_its_own_processes(void **state)
{
        nvmlProcessInfo_t processes[2];
        unsigned int count = 2;

        (void)state;
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(the_device(), &count, processes),
                         NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(processes[0].pid, 4242);
}

static void test_an_array_without_room_asks_how_many_processes_there_are(void **state)
{
        nvmlProcessUtilizationSample_t samples[2] = { { .pid = 1 } };
        unsigned int count = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetProcessUtilization(the_device(), samples, &count, 0),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 1);
        assert_int_equal(samples[0].pid, 1);
        assert_int_equal(nvmlDeviceGetProcessUtilization(the_device(), samples, &count, 0),
                         NVML_SUCCESS);
        assert_int_equal(samples[0].pid, 4242);
}

static void test_a_guests_device_has_the_accounts_of_its_vgpu(void **state)
{
        nvmlAccountingStats_t stats;
        unsigned int pids[4], count = 4;
        nvmlEnableState_t mode;

        (void)state;
        assert_int_equal(nvmlDeviceGetAccountingMode(the_device(), &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_FEATURE_ENABLED);
        assert_int_equal(nvmlDeviceGetAccountingPids(the_device(), &count, pids), NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(pids[0], 4242);
        assert_int_equal(nvmlDeviceGetAccountingStats(the_device(), 4242, &stats), NVML_SUCCESS);
        assert_int_equal(stats.maxMemoryUsage, 6 * GIB);
        assert_int_equal(nvmlDeviceGetAccountingStats(the_device(), 4343, &stats),
                         NVML_ERROR_NOT_FOUND);
}

static void test_the_newer_stats_have_sums_of_samples(void **state)
{
        struct fixture *fixture = *state;
        struct state_account account = { .instance = FIXTURE_TRAIN,
                                         .pid = 11,
                                         .utilization_gpu = 50,
                                         .utilization_memory = 7,
                                         .n_samples = 3,
                                         .sum_gpu = 151,
                                         .sum_memory = 22,
                                         .max_memory = GIB,
                                         .time_ms = 9500 };
        nvmlAccountingStats_v2_t stats = { .pid = 11 };

        state_append_account(fixture->state_page, 5, &account);
        assert_int_equal(nvmlDeviceGetAccountingStats_v2(the_device(), &stats), NVML_SUCCESS);
        assert_int_equal(stats.sampleCount, 3);
        assert_int_equal(stats.sumGpuUtil, 151);
        assert_int_equal(stats.sumFbUtil, 22);
        assert_int_equal(stats.maxMemoryUsage, GIB);
        assert_int_equal(stats.time, 9500);
        account.pid = 12; /* measured in time, not in samples: one for each second */
        account.n_samples = 0;
        state_append_account(fixture->state_page, 5, &account);
        stats.pid = 12;
        assert_int_equal(nvmlDeviceGetAccountingStats_v2(the_device(), &stats), NVML_SUCCESS);
        assert_int_equal(stats.sampleCount, 10);
        assert_int_equal(stats.sumGpuUtil, 500);
        stats.pid = 4242; /* nothing is recorded of its utilization */
        assert_int_equal(nvmlDeviceGetAccountingStats_v2(the_device(), &stats), NVML_SUCCESS);
        assert_int_equal(stats.isRunning, 1);
        assert_int_equal(stats.sampleCount, 0);
        stats.pid = 4343;
        assert_int_equal(nvmlDeviceGetAccountingStats_v2(the_device(), &stats),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlDeviceGetAccountingStats_v2(the_device(), NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_old_feature_lists_keep_their_size(void **state)
{
        union {
                nvmlGridLicensableFeatures_v1_t v1;
                nvmlGridLicensableFeatures_v2_t v2;
                nvmlGridLicensableFeatures_v3_t v3;
                unsigned char bytes[1000];
        } list;

        (void)state;
        memset(&list, 0xa5, sizeof(list));
        assert_int_equal(nvmlDeviceGetGridLicensableFeatures(the_device(), &list.v1), 0);
        assert_int_equal(list.v1.licensableFeaturesCount, 1);
        assert_int_equal(list.bytes[416], 0xa5);
        memset(&list, 0xa5, sizeof(list));
        assert_int_equal(nvmlDeviceGetGridLicensableFeatures_v2(the_device(), &list.v2), 0);
        assert_string_equal(list.v2.gridLicensableFeatures[0].productName, "OpenVGPU");
        assert_int_equal(list.bytes[800], 0xa5);
        memset(&list, 0xa5, sizeof(list));
        assert_int_equal(nvmlDeviceGetGridLicensableFeatures_v3(the_device(), &list.v3), 0);
        assert_int_equal(list.v3.gridLicensableFeatures[0].featureEnabled, 1);
        assert_int_equal(list.bytes[812], 0xa5);
}

static void test_a_guest_follows_its_vgpu_to_another_device(void **state)
{
        struct fixture *fixture = *state;
        nvmlDevice_t before = the_device();
        struct state_instance instance;
        char uuid[96];

        assert_int_equal(nvmlDeviceGetUUID(before, uuid, sizeof(uuid)), NVML_SUCCESS);
        assert_string_equal(uuid, FIXTURE_GPU_0_UUID);
        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        instance.device = 1;
        state_write_instance(fixture->state_page, 5, &instance);
        assert_int_equal(nvmlDeviceGetUUID(before, uuid, sizeof(uuid)), NVML_SUCCESS);
        assert_string_equal(uuid, FIXTURE_GPU_1_UUID);
        assert_int_equal(nvmlDeviceGetUUID(the_device(), uuid, sizeof(uuid)), NVML_SUCCESS);
        assert_string_equal(uuid, FIXTURE_GPU_1_UUID);
}

static void test_a_vgpu_that_the_manager_does_not_know_makes_no_guest(void **state)
{
        unsigned int count;

        nvmlShutdown();
        setenv("OPENVGPU_VGPU", "no such vGPU", 1);
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
        assert_int_equal(count, 2);
        (void)state;
}

int main(void)
{
#define in_guest(test) cmocka_unit_test_setup_teardown(test, guest_setup, guest_teardown)
        const struct CMUnitTest tests[] = {
                in_guest(test_a_guest_has_one_device_as_large_as_its_quota),
                in_guest(test_a_guest_is_a_vgpu_and_hosts_none),
                in_guest(test_a_guest_clears_nothing_of_its_device),
                in_guest(test_a_guest_sees_its_own_processes),
                in_guest(test_an_array_without_room_asks_how_many_processes_there_are),
                in_guest(test_a_guests_device_has_the_accounts_of_its_vgpu),
                in_guest(test_the_newer_stats_have_sums_of_samples),
                in_guest(test_old_feature_lists_keep_their_size),
                in_guest(test_a_guest_follows_its_vgpu_to_another_device),
                in_guest(test_a_vgpu_that_the_manager_does_not_know_makes_no_guest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
