/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML tells of one vGPU, and in which order it finds fault. */
#include <string.h>

#include "base/test.h"
#include "nvml/fixture.h"

/* A getter that writes at most 16 bytes; what is asked for has no other argument. */
typedef nvmlReturn_t (*getter)(nvmlVgpuInstance_t instance, void *out);

#define GETTER(name)                                \
        {                                           \
#name, (getter)(void (*)(void))name \
        }
static const struct {
        const char *name;
        getter get;
} getters[] = {
        GETTER(nvmlVgpuInstanceGetFbUsage),        GETTER(nvmlVgpuInstanceGetLicenseStatus),
        GETTER(nvmlVgpuInstanceGetType),           GETTER(nvmlVgpuInstanceGetFrameRateLimit),
        GETTER(nvmlVgpuInstanceGetEccMode),        GETTER(nvmlVgpuInstanceGetEncoderCapacity),
        GETTER(nvmlVgpuInstanceGetFBCStats),       GETTER(nvmlVgpuInstanceGetGpuInstanceId),
        GETTER(nvmlVgpuInstanceGetAccountingMode), GETTER(nvmlVgpuInstanceGetLicenseInfo_v2),
        GETTER(nvmlVgpuInstanceGetLicenseInfo),
};

static void test_getters_refuse_null_and_zero_and_find_only_active_vgpus(void **state)
{
        unsigned char out[64];

        (void)state;
        for (size_t i = 0; i < sizeof(getters) / sizeof(getters[0]); i++) {
                print_message("%s\n", getters[i].name);
                assert_int_equal(getters[i].get(FIXTURE_TRAIN, NULL), NVML_ERROR_INVALID_ARGUMENT);
                assert_int_equal(getters[i].get(0, out), NVML_ERROR_INVALID_ARGUMENT);
                assert_int_equal(getters[i].get(99, out), NVML_ERROR_NOT_FOUND);
                assert_int_equal(getters[i].get(FIXTURE_ASLEEP, out), NVML_ERROR_NOT_FOUND);
        }
}

static void test_numbers_are_those_of_the_state_page(void **state)
{
        unsigned int number, fps, latency;
        unsigned long long bytes;
        nvmlEnableState_t mode;
        nvmlFBCStats_t stats;

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_TRAIN, &bytes), NVML_SUCCESS);
        assert_int_equal(bytes, 6 * GIB);
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_INFER, &bytes), NVML_SUCCESS);
        assert_int_equal(bytes, 3 * GIB);
        assert_int_equal(nvmlVgpuInstanceGetGpuInstanceId(FIXTURE_TRAIN, &number), NVML_SUCCESS);
        assert_int_equal(number, NVML_INVALID_MIG_ID);
        assert_int_equal(nvmlVgpuInstanceGetFrameRateLimit(FIXTURE_TRAIN, &number),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlVgpuInstanceGetEccMode(FIXTURE_TRAIN, &mode),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlVgpuInstanceGetEncoderStats(FIXTURE_TRAIN, &number, &fps, &latency),
                         NVML_SUCCESS);
        assert_int_equal(number, 0);
        assert_int_equal(nvmlVgpuInstanceGetFBCStats(FIXTURE_TRAIN, &stats), NVML_SUCCESS);
        assert_int_equal(stats.sessionsCount, 0);
}

static void test_texts_have_the_order_of_checks_that_clients_met(void **state)
{
        nvmlVgpuVmIdType_t kind;
        char text[80];

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetVmID(99, NULL, 79, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetVmID(FIXTURE_TRAIN, text, 4, &kind),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(nvmlVgpuInstanceGetVmID(FIXTURE_TRAIN, text, 5, &kind), NVML_SUCCESS);
        assert_int_equal(nvmlVgpuInstanceGetVmID(99, text, 80, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetVmID(99, text, 80, &kind), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetVmID(FIXTURE_TRAIN, text, 80, &kind), NVML_SUCCESS);
        assert_string_equal(text, "1000");
        assert_int_equal(kind, NVML_VGPU_VM_ID_DOMAIN_ID);

        assert_int_equal(nvmlVgpuInstanceGetUUID(99, text, 1), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, NULL, 80),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, text, 36),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, text, 37), NVML_SUCCESS);
        assert_string_equal(text, FIXTURE_TRAIN_UUID);

        assert_int_equal(nvmlVgpuInstanceGetVmDriverVersion(FIXTURE_TRAIN, text, 80), NVML_SUCCESS);
        assert_string_equal(text, "580.159.04");
        assert_int_equal(nvmlVgpuInstanceGetMdevUUID(FIXTURE_TRAIN, text, 80),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlVgpuInstanceGetMdevUUID(99, text, 80), NVML_ERROR_NOT_FOUND);
}

static void test_the_pci_id_tells_the_room_that_it_needs(void **state)
{
        unsigned int size = 16;
        char text[32];

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetGpuPciId(FIXTURE_TRAIN, text, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetGpuPciId(FIXTURE_TRAIN, text, &size),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(size, 17);
        assert_int_equal(nvmlVgpuInstanceGetGpuPciId(FIXTURE_TRAIN, text, &size), NVML_SUCCESS);
        assert_string_equal(text, "00000000:1A:00.0"); /* as all bus ids of NVML */
}

static void test_the_licence_is_permanent_and_the_old_call_writes_20_bytes(void **state)
{
        unsigned char old[24];
        nvmlVgpuLicenseInfo_t info;
        unsigned int licensed;

        (void)state;
        memset(old, 0xa5, sizeof(old));
        assert_int_equal(nvmlVgpuInstanceGetLicenseInfo(FIXTURE_TRAIN,
                                                        (nvmlVgpuLicenseInfo_v1_t *)(void *)old),
                         NVML_SUCCESS);
        assert_int_equal(old[0], 1);
        assert_int_equal(old[20], 0xa5);
        assert_int_equal(nvmlVgpuInstanceGetLicenseInfo_v2(FIXTURE_TRAIN, &info), NVML_SUCCESS);
        assert_int_equal(info.isLicensed, 1);
        assert_int_equal(info.licenseExpiry.status, NVML_GRID_LICENSE_EXPIRY_PERMANENT);
        assert_int_equal(info.currentState, NVML_GRID_LICENSE_STATE_LICENSED);
        assert_int_equal(nvmlVgpuInstanceGetLicenseStatus(FIXTURE_TRAIN, &licensed), NVML_SUCCESS);
        assert_int_equal(licensed, 1);
}

static void test_sessions_are_counted_without_an_array(void **state)
{
        nvmlEncoderSessionInfo_t session;
        unsigned int count = 0;

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetEncoderSessions(FIXTURE_TRAIN, &count, NULL),
                         NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(nvmlVgpuInstanceGetEncoderSessions(FIXTURE_TRAIN, &count, &session),
                         NVML_SUCCESS); /* as go-nvml asks */
        assert_int_equal(nvmlVgpuInstanceGetFBCSessions(FIXTURE_TRAIN, &count, NULL), NVML_SUCCESS);
        assert_int_equal(nvmlVgpuInstanceGetFBCSessions(FIXTURE_TRAIN, NULL, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_the_numbers_of_processes_are_those_of_one_vgpu(void **state)
{
        unsigned int pids[4000], count = 0;

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(99, &count, NULL), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 4000);
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(99, &count, pids), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, pids),
                         NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(pids[0], 4242);
}

static void test_accounting_tells_of_processes_that_run(void **state)
{
        nvmlAccountingStats_t stats;

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4242, &stats),
                         NVML_SUCCESS);
        assert_int_equal(stats.isRunning, 1);
        assert_int_equal(stats.time, 0);
        assert_int_equal(stats.maxMemoryUsage, 6 * GIB);
        assert_int_equal(stats.startTime, 1700000000000000);
        assert_int_equal(stats.gpuUtilization, UINT32_MAX);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4343, &stats),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4242, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_versioned_structs_want_their_version_word(void **state)
{
        nvmlVgpuPlacementId_v1_t placement = { .version = 7 };
        nvmlVgpuRuntimeState_v1_t runtime = { .version = 7 };

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetPlacementId(99, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetPlacementId(99, &placement),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        placement.version = 0x1000008;
        assert_int_equal(nvmlVgpuInstanceGetPlacementId(99, &placement), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetPlacementId(FIXTURE_TRAIN, &placement), NVML_SUCCESS);
        assert_int_equal(placement.placementId, NVML_INVALID_VGPU_PLACEMENT_ID);

        assert_int_equal(nvmlVgpuInstanceGetRuntimeStateSize(99, NULL), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlVgpuInstanceGetRuntimeStateSize(FIXTURE_TRAIN, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetRuntimeStateSize(FIXTURE_TRAIN, &runtime),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        runtime.version = 0x1000010;
        assert_int_equal(nvmlVgpuInstanceGetRuntimeStateSize(FIXTURE_TRAIN, &runtime),
                         NVML_SUCCESS);
}

static void test_a_vgpu_that_wakes_up_is_active_again(void **state)
{
        struct fixture *fixture = *state;
        struct state_instance instance;
        unsigned long long bytes;

        assert_true(state_read_instance(fixture->state_page, 7, &instance));
        instance.state = STATE_RUNNING;
        instance.frame_buffer_used = GIB;
        state_write_instance(fixture->state_page, 7, &instance);
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_ASLEEP, &bytes), NVML_SUCCESS);
        assert_int_equal(bytes, GIB);

        state_write_instance(fixture->state_page, 7, NULL);
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_ASLEEP, &bytes), NVML_ERROR_NOT_FOUND);
}

static void test_a_vgpu_is_found_where_the_manager_moved_its_record(void **state)
{
        struct fixture *fixture = *state;
        struct state_instance instance;
        unsigned long long bytes;

        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_TRAIN, &bytes), NVML_SUCCESS);
        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        state_write_instance(fixture->state_page, 5, NULL);
        state_write_instance(fixture->state_page, 100, &instance);
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(FIXTURE_TRAIN, &bytes), NVML_SUCCESS);
        assert_int_equal(bytes, 6 * GIB);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_getters_refuse_null_and_zero_and_find_only_active_vgpus),
                with_state_page(test_numbers_are_those_of_the_state_page),
                with_state_page(test_texts_have_the_order_of_checks_that_clients_met),
                with_state_page(test_the_pci_id_tells_the_room_that_it_needs),
                with_state_page(test_the_licence_is_permanent_and_the_old_call_writes_20_bytes),
                with_state_page(test_sessions_are_counted_without_an_array),
                with_state_page(test_the_numbers_of_processes_are_those_of_one_vgpu),
                with_state_page(test_accounting_tells_of_processes_that_run),
                with_state_page(test_versioned_structs_want_their_version_word),
                with_state_page(test_a_vgpu_that_wakes_up_is_active_again),
                with_state_page(test_a_vgpu_is_found_where_the_manager_moved_its_record),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
