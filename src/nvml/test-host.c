/* SPDX-License-Identifier: Apache-2.0 */
/* A device as a host of vGPUs: lists, types, utilization, placement. */
#include <string.h>

#include "base/test.h"
#include "catalog/catalog.h"
#include "nvml/fixture.h"

static nvmlDevice_t device_at(unsigned int index)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        return device;
}

static nvmlVgpuTypeId_t type_of(nvmlVgpuInstance_t instance)
{
        nvmlVgpuTypeId_t type;

        assert_int_equal(nvmlVgpuInstanceGetType(instance, &type), NVML_SUCCESS);
        return type;
}

static void test_a_device_hosts_vgpus(void **state)
{
        nvmlGpuVirtualizationMode_t mode;
        nvmlHostVgpuMode_t host_mode;
        unsigned int flag;

        (void)state;
        assert_int_equal(nvmlDeviceGetVirtualizationMode(device_at(0), &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU);
        assert_int_equal(nvmlDeviceGetHostVgpuMode(device_at(0), &host_mode), NVML_SUCCESS);
        assert_int_equal(host_mode, NVML_HOST_VGPU_MODE_NON_SRIOV);
        assert_int_equal(
                nvmlDeviceGetVgpuCapabilities(device_at(0), NVML_DEVICE_VGPU_CAP_COUNT, &flag),
                NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(
                nvmlDeviceGetVgpuCapabilities(
                        device_at(0), NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_SIZES, &flag),
                NVML_SUCCESS);
        assert_int_equal(flag, 1);
        assert_int_equal(nvmlGetVgpuDriverCapabilities(2, &flag), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlGetVgpuDriverCapabilities(0, &flag), NVML_SUCCESS);
}

static void test_active_vgpus_are_listed_by_device(void **state)
{
        nvmlVgpuInstance_t dummy = 0, ids[4];
        unsigned int count = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(0), &count, &dummy),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
        count = 1;
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(0), &count, ids),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(0), &count, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        count = 4;
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(0), &count, ids), NVML_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(ids[0], FIXTURE_TRAIN);
        assert_int_equal(ids[1], FIXTURE_INFER);
        count = 0;
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(1), &count, NULL), NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(1), NULL, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_types_carry_the_frame_buffer_and_nvidias_names(void **state)
{
        static const char *const names[] = { "NVIDIA H200-141C", "NVIDIA H200-70C",
                                             "NVIDIA H200-35C",  "NVIDIA H200-28C",
                                             "NVIDIA H200-17C",  "NVIDIA H200-14C",
                                             "NVIDIA H200-8C",   "NVIDIA H200-7C",
                                             "NVIDIA H200-4C" };
        unsigned int count = 16, size, n;
        uint64_t most;
        nvmlVgpuTypeId_t types[16];
        unsigned long long bytes;
        char text[64];

        (void)state;
        assert_int_equal(nvmlDeviceGetSupportedVgpus(device_at(1), &count, types), NVML_SUCCESS);
        assert_int_equal(count, 9);
        for (unsigned int i = 0; i < count; i++) {
                size = sizeof(text);
                assert_int_equal(nvmlVgpuTypeGetName(types[i], text, &size), NVML_SUCCESS);
                assert_string_equal(text, names[i]);
                assert_int_equal(nvmlVgpuTypeGetFramebufferSize(types[i], &bytes), NVML_SUCCESS);
                assert_int_equal(nvmlVgpuTypeGetMaxInstances(device_at(1), types[i], &n), 0);
                most = n;
                assert_true(most * bytes <= FIXTURE_MEMORY);
                assert_true((most + 1) * bytes > FIXTURE_MEMORY - most * 512 * MIB);
        }
}

static void test_the_type_of_a_vgpu_is_the_smallest_that_holds_its_quota(void **state)
{
        struct fixture *fixture = *state;
        static const struct {
                uint64_t quota;
                const char *name;
        } cases[] = {
                { 1 * MIB, "NVIDIA H200-4C" },   { 17 * GIB, "NVIDIA H200-17C" },
                { 18 * GIB, "NVIDIA H200-28C" }, { 35 * GIB, "NVIDIA H200-35C" },
                { 40 * GIB, "NVIDIA H200-70C" }, { FIXTURE_MEMORY, "NVIDIA H200-141C" },
        };
        struct state_instance instance;
        char text[64];

        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                unsigned int size = sizeof(text);

                instance.frame_buffer_quota = cases[i].quota;
                instance.type_id = catalog_type_of_quota(fixture->state_page, 0, cases[i].quota);
                state_write_instance(fixture->state_page, 5, &instance);
                assert_int_equal(nvmlVgpuTypeGetName(type_of(FIXTURE_TRAIN), text, &size), 0);
                assert_string_equal(text, cases[i].name);
        }
}

static void test_creatable_types_are_those_that_fit_beside_what_runs(void **state)
{
        struct fixture *fixture = *state;
        struct state_instance instance;
        nvmlVgpuTypeId_t types[16];
        unsigned int count = 16;

        /* 32 + 17 GiB of 140 are taken: all but the whole device. */
        assert_int_equal(nvmlDeviceGetCreatableVgpus(device_at(0), &count, types), NVML_SUCCESS);
        assert_int_equal(count, 8);
        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        instance.frame_buffer_quota = FIXTURE_MEMORY - 17 * GIB;
        state_write_instance(fixture->state_page, 5, &instance);
        fixture_update_offers(fixture, 0);
        count = 0;
        assert_int_equal(nvmlDeviceGetCreatableVgpus(device_at(0), &count, NULL), NVML_SUCCESS);
        assert_int_equal(count, 0);
}

static void test_a_board_that_we_do_not_know_has_types_too(void **state)
{
        struct fixture *fixture = *state;
        struct state_device device;
        nvmlVgpuTypeId_t types[16];
        unsigned int count = 16, size = 64;
        char text[64];

        assert_true(state_read_device(fixture->state_page, 1, &device));
        device.pci_device_id = 0x123410de;
        device.memory_total = 24 * GIB;
        strcpy(device.name, "NVIDIA Test Board");
        state_write_device(fixture->state_page, 1, &device);
        assert_int_equal(catalog_publish(fixture->state_page, &device), 0);
        assert_int_equal(nvmlDeviceGetSupportedVgpus(device_at(1), &count, types), NVML_SUCCESS);
        assert_int_equal(count, 5); /* 24, 12, 6, 3, 1.5; a 32nd would be below 1 GiB */
        assert_int_equal(nvmlVgpuTypeGetName(types[1], text, &size), NVML_SUCCESS);
        assert_string_equal(text, "NVIDIA Test Board-12C");
}

static void test_type_questions_have_the_order_of_checks_that_clients_met(void **state)
{
        nvmlVgpuTypeMaxInstance_v1_t most = { .version = 1 };
        nvmlVgpuTypeBar1Info_v1_t bar = { .version = 1 };
        const nvmlVgpuTypeId_t type = type_of(FIXTURE_TRAIN);
        unsigned int size = 15, x, y;
        unsigned long long device_id, subsystem;
        char text[128];

        (void)state;
        assert_int_equal(nvmlVgpuTypeGetName(0, NULL, &size), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetName(1, NULL, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetName(type, NULL, &size), NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(size, sizeof("NVIDIA H200-35C"));
        assert_int_equal(nvmlVgpuTypeGetName(type, text, &size), NVML_SUCCESS);
        assert_int_equal(nvmlVgpuTypeGetName(1, text, &size), NVML_ERROR_INVALID_ARGUMENT);
        size = 16;
        assert_int_equal(nvmlVgpuTypeGetClass(type, text, &size), NVML_SUCCESS);
        assert_string_equal(text, "Compute");
        assert_int_equal(nvmlVgpuTypeGetLicense(type, text, 48), NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(nvmlVgpuTypeGetLicense(type, text, 49), NVML_SUCCESS);
        assert_int_equal(nvmlVgpuTypeGetDeviceID(type, &device_id, &subsystem), NVML_SUCCESS);
        assert_int_equal(device_id, 0x2335);
        assert_int_equal(nvmlVgpuTypeGetResolution(type, 0, &x, &y), NVML_SUCCESS);
        assert_int_equal(nvmlVgpuTypeGetResolution(type, 1, &x, &y), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetCapabilities(type, NVML_VGPU_CAP_COUNT, &x),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetFrameRateLimit(type, &x), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlVgpuTypeGetGpuInstanceProfileId(type, &x), NVML_SUCCESS);
        assert_int_equal(x, NVML_INVALID_GPU_INSTANCE_PROFILE_ID);
        assert_int_equal(nvmlVgpuTypeGetBAR1Info(0, &bar), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetBAR1Info(1, &bar), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        bar.version = 0x1000010;
        assert_int_equal(nvmlVgpuTypeGetBAR1Info(1, &bar), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetBAR1Info(type, &bar), NVML_SUCCESS);
        most.vgpuTypeId = type;
        assert_int_equal(nvmlVgpuTypeGetMaxInstancesPerGpuInstance(&most),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        most.version = 0x100000c;
        assert_int_equal(nvmlVgpuTypeGetMaxInstancesPerGpuInstance(&most),
                         NVML_ERROR_NOT_SUPPORTED);
}

static void test_utilization_is_told_once_for_each_sample(void **state)
{
        struct fixture *fixture = *state;
        nvmlVgpuInstanceUtilizationSample_t samples[3];
        nvmlValueType_t type = NVML_VALUE_TYPE_DOUBLE;
        unsigned int count = 0;

        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(0), 0, &type, &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
        assert_int_equal(type, NVML_VALUE_TYPE_UNSIGNED_INT);
        count = 0;
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(0), 0, &type, &count, samples),
                         NVML_ERROR_INVALID_ARGUMENT);
        count = 3;
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(0), 0, &type, &count, samples),
                         NVML_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(samples[0].vgpuInstance, FIXTURE_TRAIN);
        assert_int_equal(samples[0].smUtil.uiVal, 20);
        assert_int_equal(samples[0].memUtil.uiVal, 5);
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(0), samples[0].timeStamp, &type,
                                                      &count, samples),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(0), samples[0].timeStamp - 1, &type,
                                                      &count, samples),
                         NVML_SUCCESS);
        fixture->state_page->heartbeat_ns += 1000000;
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(0), samples[0].timeStamp, &type,
                                                      &count, samples),
                         NVML_SUCCESS);
        count = 0;
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(1), 0, &type, &count, NULL),
                         NVML_SUCCESS);
        count = 3;
        assert_int_equal(nvmlDeviceGetVgpuUtilization(device_at(1), 0, &type, &count, samples),
                         NVML_ERROR_NOT_FOUND);
}

static void test_the_new_utilization_call_has_more_columns(void **state)
{
        nvmlVgpuInstanceUtilizationInfo_v1_t samples[2];
        nvmlVgpuInstancesUtilizationInfo_v1_t info = { .version = 1, .vgpuInstanceCount = 1 };

        (void)state;
        assert_int_equal(nvmlDeviceGetVgpuInstancesUtilizationInfo(device_at(0), NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetVgpuInstancesUtilizationInfo(NULL, &info),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        info.version = 0x1000020;
        assert_int_equal(nvmlDeviceGetVgpuInstancesUtilizationInfo(device_at(0), &info),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(info.vgpuInstanceCount, 2);
        info.vgpuUtilArray = samples;
        assert_int_equal(nvmlDeviceGetVgpuInstancesUtilizationInfo(device_at(0), &info),
                         NVML_SUCCESS);
        assert_int_equal(samples[0].smUtil.uiVal, 20);
        assert_int_equal(samples[0].ofaUtil.uiVal, 0);
}

static void test_all_processes_need_room_and_the_busy_ones_have_a_sample(void **state)
{
        struct fixture *fixture = *state;
        struct state_process process;
        nvmlVgpuProcessUtilizationInfo_v1_t info_samples[2];
        nvmlVgpuProcessesUtilizationInfo_v1_t info = { .version = 0x1000018,
                                                       .vgpuProcUtilArray = info_samples,
                                                       .vgpuProcessCount = 2 };
        nvmlVgpuProcessUtilizationSample_t samples[2];
        unsigned int count = 0;

        assert_int_equal(nvmlDeviceGetVgpuProcessUtilization(device_at(0), 0, &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlDeviceGetVgpuProcessUtilization(device_at(0), 0, &count, samples),
                         NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(samples[0].pid, 4242);
        assert_int_equal(samples[0].vgpuInstance, FIXTURE_TRAIN);
        assert_string_equal(samples[0].processName, "train.py");
        assert_int_equal(nvmlDeviceGetVgpuProcessesUtilizationInfo(device_at(0), &info), 0);
        assert_int_equal(info.vgpuProcessCount, 1);
        assert_int_equal(info_samples[0].smUtil, 20);

        assert_true(state_read_process(fixture->state_page, 7, &process));
        process.utilization_gpu = 0;
        state_write_process(fixture->state_page, 7, &process);
        count = 0;
        assert_int_equal(nvmlDeviceGetVgpuProcessUtilization(device_at(0), 0, &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlDeviceGetVgpuProcessUtilization(device_at(0), 0, &count, samples),
                         NVML_ERROR_NOT_FOUND);
}

static void test_both_generations_of_placement_lists_are_answered(void **state)
{
        const nvmlVgpuTypeId_t type = type_of(FIXTURE_TRAIN);
        struct {
                nvmlVgpuPlacementList_v1_t list;
                unsigned char beyond;
        } v1 = { { .version = 0x1000018 }, 0xa5 };
        nvmlVgpuPlacementList_v2_t v2 = { .version = 0x2000020 };
        unsigned int ids[4];

        (void)state;
        assert_int_equal(nvmlDeviceGetVgpuTypeSupportedPlacements(
                                 device_at(0), type, (nvmlVgpuPlacementList_v2_t *)(void *)&v1),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(v1.list.count, 4);
        v1.list.placementIds = ids;
        assert_int_equal(nvmlDeviceGetVgpuTypeSupportedPlacements(
                                 device_at(0), type, (nvmlVgpuPlacementList_v2_t *)(void *)&v1),
                         NVML_SUCCESS);
        assert_int_equal(v1.list.placementSize, 35);
        assert_int_equal(ids[3], 106);
        assert_int_equal(v1.beyond, 0xa5);
        v1.list.count = 0; /* or anything else, as clients of 550 have it */
        assert_int_equal(nvmlDeviceGetVgpuTypeSupportedPlacements(
                                 device_at(0), type, (nvmlVgpuPlacementList_v2_t *)(void *)&v1),
                         NVML_SUCCESS);
        assert_int_equal(v1.list.count, 4);

        v2.count = 4;
        v2.placementIds = ids;
        assert_int_equal(nvmlDeviceGetVgpuTypeCreatablePlacements(device_at(0), type, &v2), 0);
        assert_int_equal(v2.count, 2);
        v2.mode = 2;
        assert_int_equal(nvmlDeviceGetVgpuTypeCreatablePlacements(device_at(0), type, &v2),
                         NVML_ERROR_INVALID_ARGUMENT);
        v2.version = 0x2000018;
        assert_int_equal(nvmlDeviceGetVgpuTypeCreatablePlacements(device_at(0), type, &v2),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void test_placements_that_others_have_are_not_creatable(void **state)
{
        struct fixture *fixture = *state;
        const nvmlVgpuTypeId_t type = type_of(FIXTURE_TRAIN);
        unsigned int ids[4] = { 0 };
        nvmlVgpuPlacementList_v2_t list = { .version = 0x2000020, .count = 4, .placementIds = ids };
        struct state_instance instance;

        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        instance.placement = 35;
        instance.placement_size = 35;
        state_write_instance(fixture->state_page, 5, &instance);
        assert_int_equal(nvmlDeviceGetVgpuTypeCreatablePlacements(device_at(0), type, &list), 0);
        assert_int_equal(list.count, 2); /* a third would fit by its place, but not by its size */
        assert_int_equal(ids[0], 0);
        assert_int_equal(ids[1], 70);
        instance.placement = 34;
        state_write_instance(fixture->state_page, 5, &instance);
        list.count = 4;
        assert_int_equal(nvmlDeviceGetVgpuTypeCreatablePlacements(device_at(0), type, &list), 0);
        assert_int_equal(list.count, 2); /* 0 and 35 are both touched */
        assert_int_equal(ids[0], 70);
        assert_int_equal(ids[1], 106);
}

static void test_whether_sizes_mix_is_what_the_manager_says(void **state)
{
        struct fixture *fixture = *state;
        nvmlVgpuHeterogeneousMode_v1_t mode = { .version = 0x1000008 };
        struct state_device device;

        assert_int_equal(nvmlDeviceGetVgpuHeterogeneousMode(device_at(0), &mode), NVML_SUCCESS);
        assert_int_equal(mode.mode, NVML_FEATURE_ENABLED);
        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.is_heterogeneous = 0;
        state_write_device(fixture->state_page, 0, &device);
        assert_int_equal(nvmlDeviceGetVgpuHeterogeneousMode(device_at(0), &mode), NVML_SUCCESS);
        assert_int_equal(mode.mode, NVML_FEATURE_DISABLED);
        device.is_heterogeneous = STATE_NONE;
        state_write_device(fixture->state_page, 0, &device);
        assert_int_equal(nvmlDeviceGetVgpuHeterogeneousMode(device_at(0), &mode),
                         NVML_ERROR_NOT_SUPPORTED);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_a_device_hosts_vgpus),
                with_state_page(test_active_vgpus_are_listed_by_device),
                with_state_page(test_types_carry_the_frame_buffer_and_nvidias_names),
                with_state_page(test_the_type_of_a_vgpu_is_the_smallest_that_holds_its_quota),
                with_state_page(test_creatable_types_are_those_that_fit_beside_what_runs),
                with_state_page(test_a_board_that_we_do_not_know_has_types_too),
                with_state_page(test_type_questions_have_the_order_of_checks_that_clients_met),
                with_state_page(test_utilization_is_told_once_for_each_sample),
                with_state_page(test_the_new_utilization_call_has_more_columns),
                with_state_page(test_all_processes_need_room_and_the_busy_ones_have_a_sample),
                with_state_page(test_both_generations_of_placement_lists_are_answered),
                with_state_page(test_placements_that_others_have_are_not_creatable),
                with_state_page(test_whether_sizes_mix_is_what_the_manager_says),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
