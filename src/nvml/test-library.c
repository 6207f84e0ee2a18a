/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, devices, and what all functions have in common. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "nvml/fixture.h"

static nvmlDevice_t device_0(void)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        return device;
}

static void test_before_init_only_a_few_functions_answer(void **state)
{
        unsigned int count;
        const void *table;
        char text[80];

        (void)state;
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
        assert_int_equal(nvmlDeviceGetName(NULL, NULL, 0), NVML_ERROR_UNINITIALIZED);
        assert_int_equal(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_ERROR_UNINITIALIZED);
        assert_int_equal(nvmlVgpuInstanceGetFbUsage(0, NULL), NVML_ERROR_UNINITIALIZED);
        assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
        assert_string_equal(nvmlErrorString(NVML_ERROR_NOT_FOUND), "Not Found");
        assert_string_equal(nvmlErrorString((nvmlReturn_t)777), "Unknown Error");
        assert_int_equal(nvmlSystemGetNVMLVersion(text, sizeof(text)), NVML_SUCCESS);
        assert_int_equal(nvmlInternalGetExportTable(&table, "not the id of a table"),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_null(table);
        assert_int_equal(nvmlInternalGetExportTable(NULL, text), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_without_manager_and_driver_init_says_so(void **state)
{
        (void)state;
        setenv("OPENVGPU_RUN", "/nonexistent", 1);
        if (access("/proc/driver/nvidia", F_OK) == 0)
                skip();
        assert_int_equal(nvmlInit(), NVML_ERROR_DRIVER_NOT_LOADED);
        assert_int_equal(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
        assert_int_equal(nvmlInitWithFlags(0), NVML_ERROR_DRIVER_NOT_LOADED);
}

static void test_init_is_counted(void **state)
{
        struct fixture *fixture = fixture_new();
        unsigned int count;

        (void)state;
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlInitWithFlags(0), NVML_SUCCESS);
        assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
        assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
        fixture_free(fixture);
}

static void test_a_state_page_whose_manager_ended_in_good_order_is_none(void **state)
{
        struct fixture *fixture = fixture_new();

        (void)state;
        fixture->state_page->closed = 1;
        if (access("/proc/driver/nvidia", F_OK) == 0)
                skip();
        assert_int_equal(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
        fixture_free(fixture);
}

static void test_devices_are_found_by_index_uuid_and_address(void **state)
{
        nvmlUUID_v1_t binary = { .version = NVML_VERSION(nvmlUUID_v1_t, 1),
                                 .type = NVML_UUID_TYPE_BINARY,
                                 .value.bytes = { 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33,
                                                  0x44, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55,
                                                  0x51 } };
        nvmlDevice_t first = device_0(), device;
        unsigned int index;

        (void)state;
        assert_int_equal(nvmlDeviceGetHandleByUUID(FIXTURE_GPU_0_UUID, &device), NVML_SUCCESS);
        assert_ptr_equal(device, first);
        device = NULL;
        assert_int_equal(nvmlDeviceGetHandleByUUID(&FIXTURE_GPU_0_UUID[strlen("GPU-")], &device),
                         NVML_SUCCESS);
        assert_ptr_equal(device, first);
        assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("00000000:17:00.0", &device), 0);
        assert_ptr_equal(device, first);
        assert_int_equal(nvmlDeviceGetHandleByPciBusId("0000:17:00", &device), NVML_SUCCESS);
        assert_ptr_equal(device, first);
        assert_int_equal(nvmlDeviceGetHandleByPciBusId("17:00.0", &device), NVML_SUCCESS);
        assert_ptr_equal(device, first);
        assert_int_equal(nvmlDeviceGetHandleByUUIDV(&binary, &device), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
        assert_int_equal(index, 1);
}

static void test_devices_that_do_not_exist_are_not_found(void **state)
{
        static const char *const garbage[] = {
                "",         "garbage", "17",          "17:00",
                ":17:00.0", "17:00.",  "0:17:00.0.0", "0:0:17:00.0",
                "0:17:00 ", "-1:17:0", "0x0:17:0",    "100000000:17:00.0"
        };
        nvmlUUID_v1_t uuid = { .version = 2 };
        nvmlDevice_t device;

        (void)state;
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetHandleByIndex(0, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-0", &device), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlDeviceGetHandleByUUID(NULL, &device), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetHandleByUUIDV(&uuid, &device),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        uuid.version = NVML_VERSION(nvmlUUID_v1_t, 1);
        assert_int_equal(nvmlDeviceGetHandleByUUIDV(&uuid, &device), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("99:00.0", &device),
                         NVML_ERROR_NOT_FOUND);
        for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
                assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(garbage[i], &device),
                                 NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetHandleBySerial("1", &device), NVML_ERROR_NOT_FOUND);
}

static void test_a_handle_that_is_none_is_refused_and_not_looked_behind(void **state)
{
        const nvmlDevice_t handles[] = { NULL, (nvmlDevice_t)1, (nvmlDevice_t)UINTPTR_MAX,
                                         (nvmlDevice_t)((uintptr_t)device_0() + 2) };
        nvmlGpuVirtualizationMode_t mode;
        nvmlMemory_t memory;
        unsigned int n = 0;
        char text[96];

        (void)state;
        for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
                assert_int_equal(nvmlDeviceGetName(handles[i], text, sizeof(text)),
                                 NVML_ERROR_INVALID_ARGUMENT);
                assert_int_equal(nvmlDeviceGetMemoryInfo(handles[i], &memory),
                                 NVML_ERROR_INVALID_ARGUMENT);
                assert_int_equal(nvmlDeviceGetVirtualizationMode(handles[i], &mode),
                                 NVML_ERROR_INVALID_ARGUMENT);
                assert_int_equal(nvmlDeviceGetActiveVgpus(handles[i], &n, NULL),
                                 NVML_ERROR_INVALID_ARGUMENT);
        }
}

static void test_texts_need_room(void **state)
{
        char text[96] = "untouched";

        (void)state;
        assert_int_equal(nvmlDeviceGetName(device_0(), text, 11), NVML_ERROR_INSUFFICIENT_SIZE);
        assert_string_equal(text, "untouched");
        assert_int_equal(nvmlDeviceGetName(device_0(), text, 12), NVML_SUCCESS);
        assert_string_equal(text, "NVIDIA H200");
        assert_int_equal(nvmlDeviceGetName(device_0(), NULL, 12), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetUUID(device_0(), text, sizeof(text)), NVML_SUCCESS);
        assert_string_equal(text, FIXTURE_GPU_0_UUID);
        assert_int_equal(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
        assert_string_equal(text, "580.159.04");
        assert_int_equal(nvmlSystemGetNVMLVersion(text, sizeof(text)), NVML_SUCCESS);
        assert_string_equal(text, "13.580.159.04");
}

static void test_old_names_write_old_layouts(void **state)
{
        union {
                nvmlPciInfo_v1_t v1;
                nvmlPciInfo_v2_t v2;
                nvmlPciInfo_t v3;
                unsigned char bytes[128];
        } pci;

        (void)state;
        memset(&pci, 0xa5, sizeof(pci));
        assert_int_equal(nvmlDeviceGetPciInfo(device_0(), &pci.v1), NVML_SUCCESS);
        assert_string_equal(pci.v1.busId, "0000:17:00.0");
        assert_int_equal(pci.bytes[31], 0x23);
        assert_int_equal(pci.bytes[32], 0xa5);

        memset(&pci, 0xa5, sizeof(pci));
        assert_int_equal(nvmlDeviceGetPciInfo_v2(device_0(), &pci.v2), NVML_SUCCESS);
        assert_int_equal(pci.v2.pciSubSystemId, 0x18be10de);
        assert_int_equal(pci.bytes[52], 0xa5);

        assert_int_equal(nvmlDeviceGetPciInfo_v3(device_0(), &pci.v3), NVML_SUCCESS);
        assert_string_equal(pci.v3.busId, "00000000:17:00.0");
        assert_int_equal(pci.bytes[68], 0xa5);
}

static void test_memory_has_two_generations(void **state)
{
        nvmlMemory_v2_t v2 = { .version = NVML_VERSION(nvmlMemory_v2_t, 2) };
        nvmlMemory_t v1;

        (void)state;
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_0(), &v1), NVML_SUCCESS);
        assert_int_equal(v1.total, FIXTURE_MEMORY);
        assert_int_equal(v1.used, 9 * GIB);
        assert_int_equal(v1.free, FIXTURE_MEMORY - 9 * GIB);
        assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device_0(), &v2), NVML_SUCCESS);
        assert_int_equal(v2.total, v2.reserved + v2.used + v2.free);
        v2.version = 2; /* as nvtop 3.1 says it */
        assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device_0(), &v2),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_0(), NULL), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_process_lists_have_two_layouts(void **state)
{
        nvmlProcessInfo_v1_t v1[3] = { [2].pid = 99 };
        nvmlProcessInfo_t v3[2];
        unsigned int n = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device_0(), &n, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(n, 2);
        n = 3;
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device_0(), &n, v1), NVML_SUCCESS);
        assert_int_equal(n, 2);
        assert_int_equal(v1[1].pid, 4343);
        assert_int_equal(v1[2].pid, 99);
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device_0(), &n, v3), NVML_SUCCESS);
        assert_int_equal(v3[0].pid, 4242);
        assert_int_equal(v3[1].usedGpuMemory, 3 * GIB);
        assert_int_equal(v3[1].gpuInstanceId, NVML_INVALID_MIG_ID);
        n = 1;
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v2(device_0(), &n, v3),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(n, 2);
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v2(device_0(), &n, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        n = 0;
        assert_int_equal(nvmlDeviceGetGraphicsRunningProcesses_v3(device_0(), &n, NULL), 0);
        assert_int_equal(nvmlDeviceGetMPSComputeRunningProcesses_v3(device_0(), &n, NULL), 0);
}

static void test_a_name_that_is_nvidias_alone_is_not_supported(void **state)
{
        nvmlEnableState_t current, pending;

        (void)state;
        assert_int_equal(nvmlDeviceGetEccMode(device_0(), &current, &pending),
                         NVML_ERROR_NOT_SUPPORTED);
}

static void test_a_new_manager_is_noticed(void **state)
{
        struct fixture *fixture = *state;
        struct state_device device;
        nvmlMemory_t memory;

        fixture_publish(fixture);
        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.memory_used = GIB;
        state_write_device(fixture->state_page, 0, &device);
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_0(), &memory), NVML_SUCCESS);
        assert_int_equal(memory.used, GIB);
}

static void test_what_a_manager_left_goes_on_being_answered(void **state)
{
        struct fixture *fixture = *state;
        nvmlMemory_t memory;

        fixture_beat(fixture, 2 * STATE_STALE_NS);
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_0(), &memory), NVML_SUCCESS);
        unlink(fixture->path);
        fixture->state_page->closed = 1;
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_0(), &memory), NVML_SUCCESS);
        assert_int_equal(memory.used, 9 * GIB);
}

static void test_events_can_be_waited_for_in_vain(void **state)
{
        nvmlEventData_t event;
        nvmlEventSet_t set;

        (void)state;
        assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
        assert_int_equal(nvmlEventSetWait_v2(set, &event, 1), NVML_ERROR_TIMEOUT);
        assert_int_equal(nvmlEventSetFree(set), NVML_SUCCESS);
        assert_int_equal(nvmlEventSetWait_v2(NULL, &event, 1), NVML_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_before_init_only_a_few_functions_answer),
                cmocka_unit_test(test_without_manager_and_driver_init_says_so),
                cmocka_unit_test(test_init_is_counted),
                cmocka_unit_test(test_a_state_page_whose_manager_ended_in_good_order_is_none),
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
                with_state_page(test_devices_are_found_by_index_uuid_and_address),
                with_state_page(test_devices_that_do_not_exist_are_not_found),
                with_state_page(test_a_handle_that_is_none_is_refused_and_not_looked_behind),
                with_state_page(test_texts_need_room),
                with_state_page(test_old_names_write_old_layouts),
                with_state_page(test_memory_has_two_generations),
                with_state_page(test_process_lists_have_two_layouts),
                with_state_page(test_a_name_that_is_nvidias_alone_is_not_supported),
                with_state_page(test_a_new_manager_is_noticed),
                with_state_page(test_what_a_manager_left_goes_on_being_answered),
                with_state_page(test_events_can_be_waited_for_in_vain),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
