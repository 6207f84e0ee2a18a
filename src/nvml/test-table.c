/* SPDX-License-Identifier: Apache-2.0 */
/* The unnamed table: what old and new nvidia-smi ask of it. */
#include "base/test.h"
#include "nvml/fixture.h"

typedef void (*slot_function)(void);

static const unsigned char table_id[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };

static slot_function get_slot(unsigned int slot)
{
        const slot_function *table;

        assert_int_equal(nvmlInternalGetExportTable((const void **)&table, table_id), 0);
        assert_true((size_t)(uintptr_t)table[0] > slot * sizeof(table[0]));
        assert_non_null(table[slot]);
        return table[slot];
}

static nvmlDevice_t device_0(void)
{
        nvmlReturn_t (*get_handle)(unsigned int, nvmlDevice_t *, unsigned int) =
                (__typeof__(get_handle))get_slot(81);
        nvmlDevice_t device, same;

        assert_int_equal(get_handle(0, &device, 0x22), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &same), NVML_SUCCESS);
        assert_ptr_equal(device, same);
        assert_int_equal(get_handle(2, &device, 0x22), NVML_ERROR_INVALID_ARGUMENT);
        return device;
}

static nvmlReturn_t ask(unsigned int slot, nvmlDevice_t device, unsigned int *number)
{
        nvmlReturn_t (*function)(nvmlDevice_t, unsigned int *) =
                (__typeof__(function))get_slot(slot);

        return function(device, number);
}

static void test_numbers_of_a_device(void **state)
{
        struct fixture *fixture = *state;
        const struct state_sensors sensors = { .pcie_generation_max = 5 };
        unsigned int number = 0;

        assert_int_equal(ask(65, device_0(), &number), NVML_SUCCESS);
        assert_int_equal(number, NVML_DEVICE_ARCH_HOPPER);
        for (unsigned int slot = 72; slot <= 139; slot += 139 - 72) {
                number = 0;
                assert_int_equal(ask(slot, device_0(), &number), NVML_SUCCESS);
                assert_int_equal(number, 1);
        }
        assert_int_equal(ask(230, device_0(), &number), NVML_ERROR_NOT_SUPPORTED);
        state_write_sensors(fixture->state_page, 0, &sensors);
        assert_int_equal(ask(230, device_0(), &number), NVML_SUCCESS);
        assert_int_equal(number, 5);
        assert_int_equal(ask(207, device_0(), &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(ask(211, device_0(), &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(ask(65, NULL, &number), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_the_licence_of_a_vgpu(void **state)
{
        nvmlReturn_t (*get_licence)(nvmlVgpuInstance_t, unsigned int *) =
                (__typeof__(get_licence))get_slot(190);
        struct fixture *fixture = *state;
        struct state_instance instance;
        unsigned int licence;

        assert_int_equal(get_licence(FIXTURE_TRAIN, &licence), NVML_SUCCESS);
        assert_int_equal(licence, STATE_LICENCE_LICENSED);
        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        instance.licence = STATE_LICENCE_UNKNOWN; /* nvidia-smi would print "Licensed" */
        state_write_instance(fixture->state_page, 5, &instance);
        assert_int_equal(get_licence(FIXTURE_TRAIN, &licence), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(get_licence(FIXTURE_ASLEEP, &licence), NVML_ERROR_NOT_FOUND);
        assert_int_equal(get_licence(FIXTURE_TRAIN, NULL), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_lines_are_taken_and_the_third_list_of_processes_is_empty(void **state)
{
        nvmlReturn_t (*take_line)(const char *, const char *, const char *) =
                (__typeof__(take_line))get_slot(26);
        nvmlReturn_t (*list)(nvmlDevice_t, unsigned int *, void *) =
                (__typeof__(list))get_slot(157);
        unsigned int count = 7;
        char room[64];

        (void)state;
        assert_int_equal(take_line("nvidia-smi", "stdout", "text"), NVML_SUCCESS);
        assert_int_equal(list(device_0(), &count, room), NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(list(NULL, &count, room), NVML_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_numbers_of_a_device),
                with_state_page(test_the_licence_of_a_vgpu),
                with_state_page(test_lines_are_taken_and_the_third_list_of_processes_is_empty),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
