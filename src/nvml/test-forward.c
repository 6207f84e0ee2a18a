/* SPDX-License-Identifier: Apache-2.0 */
/* With NVIDIA's library behind us: its answers, its handles, and our vGPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml-accounting.h"
#include "base/test.h"
#include "nvml/fixture.h"

static const unsigned char table_id[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };

static void publish_real(struct fixture *fixture, const char *path)
{
        fixture->state_page->simulated = 0;
        snprintf(fixture->state_page->real_nvml, sizeof(fixture->state_page->real_nvml), "%s",
                 path);
        state_write_device(fixture->state_page, 1, NULL);
        fixture->state_page->n_devices = 1;
}

static int real_setup(void **state)
{
        *state = fixture_new();
        publish_real(*state, getenv("TEST_FAKE_NVIDIA"));
        return nvmlInit_v2() == NVML_SUCCESS ? 0 : -1;
}

/* The state page of a manager that is neither root's nor ours. */
static void test_a_strangers_state_page_names_no_library_to_load(void **state)
{
        struct fixture *fixture = fixture_new();
        nvmlDevice_t device;
        char name[96];

        (void)state;
        publish_real(fixture, getenv("TEST_FAKE_NVIDIA"));
        if (chown(fixture->path, 65534, (gid_t)-1) < 0) {
                fixture_free(fixture);
                skip(); /* only root can give a file away */
        }
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetName(device, name, sizeof(name)), NVML_SUCCESS);
        assert_string_equal(name, "NVIDIA H200");
        nvmlShutdown();
        fixture_free(fixture);
}

/* What the path is of may change between a look at it and its opening: so nobody else's link is followed. */
static void test_a_link_of_a_stranger_leads_to_no_state_page(void **state)
{
        struct fixture *fixture = fixture_new();
        char real[sizeof(fixture->path) + 8];

        (void)state;
        publish_real(fixture, getenv("TEST_FAKE_NVIDIA"));
        snprintf(real, sizeof(real), "%s-there", fixture->path);
        assert_int_equal(rename(fixture->path, real), 0);
        assert_int_equal(symlink(real, fixture->path), 0);
        if (lchown(fixture->path, 65534, (gid_t)-1) == 0)
                assert_int_not_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(lchown(fixture->path, geteuid(), (gid_t)-1), 0);
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        nvmlShutdown();
        assert_int_equal(rename(real, fixture->path), 0);
        fixture_free(fixture);
}

/* The state page is root's, and says what is in a folder of somebody else. */
static void test_a_strangers_library_is_not_loaded(void **state)
{
        char folder[] = "/tmp/vgnvml-XXXXXX", path[64];
        struct fixture *fixture = fixture_new();
        nvmlDevice_t device;
        char name[96];

        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/library", folder);
        assert_int_equal(symlink(getenv("TEST_FAKE_NVIDIA"), path), 0);
        publish_real(fixture, path);
        if (chown(folder, 65534, (gid_t)-1) == 0) {
                assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
                assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
                assert_int_equal(nvmlDeviceGetName(device, name, sizeof(name)), NVML_SUCCESS);
                assert_string_equal(name, "NVIDIA H200"); /* the state page's */
                nvmlShutdown();
        }
        fixture_free(fixture);
        (void)unlink(path);
        (void)rmdir(folder);
}

static int guest_setup(void **state)
{
        setenv("OPENVGPU_VGPU", FIXTURE_TRAIN_UUID, 1);
        return real_setup(state);
}

static int guest_teardown(void **state)
{
        unsetenv("OPENVGPU_VGPU");
        return fixture_teardown(state);
}

static nvmlDevice_t device_at(unsigned int index)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        return device;
}

static void test_devices_and_their_state_are_nvidias(void **state)
{
        nvmlMemory_t memory;
        unsigned int count;
        char name[96];

        (void)state;
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlDeviceGetName(device_at(0), name, sizeof(name)), NVML_SUCCESS);
        assert_string_equal(name, "real " FIXTURE_GPU_0_UUID);
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_at(0), &memory), NVML_SUCCESS);
        assert_int_equal(memory.total, 1000);
}

static void test_vgpus_are_found_by_the_uuid_of_their_device(void **state)
{
        nvmlGpuVirtualizationMode_t mode;
        unsigned int count = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetVirtualizationMode(device_at(0), &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU);
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(0), &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
}

static void test_a_device_that_the_manager_does_not_have_hosts_none(void **state)
{
        nvmlGpuVirtualizationMode_t mode;
        unsigned int count = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetVirtualizationMode(device_at(1), &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_GPU_VIRTUALIZATION_MODE_NONE);
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(1), &count, NULL),
                         NVML_ERROR_NOT_SUPPORTED);
}

/* A handle that the manager does not have may be one of NVIDIA's library; NULL is none of any library. */
static void test_no_handle_is_no_device_without_vgpus(void **state)
{
        nvmlVgpuPgpuMetadata_t metadata;
        unsigned int size = 0, count = 0;
        nvmlVgpuSchedulerSetState_t scheduler = { 0 };
        nvmlHostVgpuMode_t mode;

        (void)state;
        assert_int_equal(nvmlDeviceGetHostVgpuMode(NULL, &mode), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetActiveVgpus(NULL, &count, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetVgpuMetadata(NULL, &metadata, &size),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuTypeGetMaxInstances(NULL, 1, &count), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceSetVgpuSchedulerState(NULL, &scheduler),
                         NVML_ERROR_INVALID_ARGUMENT);
}

struct by_value {
        double a, b;
        long c;
};

extern int nvmlDeviceGetThermalSettings(struct by_value v, int i, double d, int *ret_sum, int e,
                                        int f, int g, int h, int on_the_stack);
extern nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *t);
extern nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *r);
extern nvmlReturn_t nvmlUnitGetLedState(void *unit, void *state);
extern nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type);
extern nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit);

static void test_a_forwarded_call_has_its_arguments_and_its_result(void **state)
{
        unsigned int celsius;
        int sum = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetThermalSettings((struct by_value){ 1, 20, 300 }, 4000, 50000,
                                                      &sum, 1, 2, 3, 4, 600000),
                         4711);
        assert_int_equal(sum, 654331);
        assert_int_equal(nvmlDeviceGetTemperature(device_at(1), 2, &celsius), NVML_SUCCESS);
        assert_int_equal(celsius, 42);
}

static void test_a_name_that_the_driver_lacks_is_not_found(void **state)
{
        (void)state;
        assert_int_equal(nvmlUnitGetLedState(NULL, NULL), NVML_ERROR_FUNCTION_NOT_FOUND);
}

static void test_nobody_pulls_a_device_away_from_under_its_vgpus(void **state)
{
        nvmlReturn_t activation;

        (void)state;
        assert_int_equal(nvmlDeviceSetMigMode(device_at(0), 1, &activation), NVML_ERROR_IN_USE);
        assert_int_equal(nvmlDeviceSetMigMode(device_at(0), 0, &activation), NVML_SUCCESS);
}

static void test_the_table_of_unnamed_functions_is_nvidias_with_our_vgpus(void **state)
{
        nvmlReturn_t (*hosts_vgpus)(nvmlDevice_t, unsigned int *);
        const void *const *table;
        unsigned int flag = 0;

        (void)state;
        assert_int_equal(nvmlInternalGetExportTable((const void **)&table, table_id), NVML_SUCCESS);
        assert_int_equal((uintptr_t)table[0], 245 * 8);
        assert_non_null(table[200]);
        assert_null(table[201]);
        memcpy(&hosts_vgpus, &table[72], sizeof(hosts_vgpus));
        assert_int_equal(hosts_vgpus(device_at(0), &flag), NVML_SUCCESS);
        assert_int_equal(flag, 1);
        assert_int_equal(hosts_vgpus(device_at(1), &flag), NVML_SUCCESS);
        assert_int_equal(flag, 0);
}

static void test_a_guest_sees_its_vgpu_and_the_sensors_of_its_device(void **state)
{
        unsigned int count, celsius;
        nvmlMemory_t memory;

        (void)state;
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_at(0), &memory), NVML_SUCCESS);
        assert_int_equal(memory.total, 32 * GIB);
        assert_int_equal(nvmlDeviceGetTemperature(device_at(0), 0, &celsius), NVML_SUCCESS);
        assert_int_equal(celsius, 40);
}

/* NVIDIA's library has these, and would answer 4711: the whole device, with what others do on it. */
static void test_a_guest_sees_nobody_else_on_its_device_and_changes_nothing(void **state)
{
        unsigned int count = 7, fps, latency;

        (void)state;
        assert_int_equal(nvmlDeviceGetEncoderStats(device_at(0), &count, &fps, &latency), 0);
        assert_int_equal(count, 0);
        assert_int_equal(nvmlDeviceGetAccountingPids(device_at(0), &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 1);
        assert_int_equal(nvmlDeviceSetPowerManagementLimit(device_at(0), 1000),
                         NVML_ERROR_NOT_SUPPORTED);
}

static void test_a_host_has_nvidias_view_of_who_uses_a_device(void **state)
{
        unsigned int count, fps, latency, type = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetEncoderStats(device_at(0), &count, &fps, &latency), 4711);
        assert_int_equal(nvmlDeviceGetAccountingPids(device_at(0), &count, NULL), 4711);
        assert_int_equal(nvmlDeviceGetSamples(device_at(0), type), 4711);
        assert_int_equal(nvmlDeviceSetPowerManagementLimit(device_at(0), 1000), 4711);
}

static void test_without_a_manager_everything_is_nvidias(void **state)
{
        nvmlGpuVirtualizationMode_t mode;
        unsigned int count = 0;

        /* Its library has been loaded before; what stands in for /proc/driver/nvidia is that. */
        fixture_teardown(state);
        *state = NULL;
        if (nvmlInit_v2() == NVML_ERROR_DRIVER_NOT_LOADED)
                skip();
        assert_int_equal(nvmlDeviceGetVirtualizationMode(device_at(0), &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_GPU_VIRTUALIZATION_MODE_NONE);
        assert_int_equal(nvmlDeviceGetActiveVgpus(device_at(0), &count, NULL),
                         NVML_ERROR_FUNCTION_NOT_FOUND);
}

static void test_after_shutdown_nvidias_is_shut_down_too(void **state)
{
        unsigned int count;

        (void)state;
        assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
}

int main(void)
{
#define with_real(test) cmocka_unit_test_setup_teardown(test, real_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        test_a_strangers_state_page_names_no_library_to_load), /* before one is */
                cmocka_unit_test(test_a_strangers_library_is_not_loaded),
                cmocka_unit_test(test_a_link_of_a_stranger_leads_to_no_state_page),
                with_real(test_devices_and_their_state_are_nvidias),
                with_real(test_vgpus_are_found_by_the_uuid_of_their_device),
                with_real(test_a_device_that_the_manager_does_not_have_hosts_none),
                with_real(test_no_handle_is_no_device_without_vgpus),
                with_real(test_a_forwarded_call_has_its_arguments_and_its_result),
                with_real(test_a_name_that_the_driver_lacks_is_not_found),
                with_real(test_nobody_pulls_a_device_away_from_under_its_vgpus),
                with_real(test_the_table_of_unnamed_functions_is_nvidias_with_our_vgpus),
                with_real(test_after_shutdown_nvidias_is_shut_down_too),
                cmocka_unit_test_setup_teardown(
                        test_a_guest_sees_its_vgpu_and_the_sensors_of_its_device, guest_setup,
                        guest_teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_guest_sees_nobody_else_on_its_device_and_changes_nothing,
                        guest_setup, guest_teardown),
                with_real(test_a_host_has_nvidias_view_of_who_uses_a_device),
                with_real(test_without_a_manager_everything_is_nvidias),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
