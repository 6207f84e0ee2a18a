/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata, and the question whether a vGPU fits a device, which is a function of two blobs. */
#include <string.h>

#include "base/test.h"
#include "nvml/fixture.h"

union vgpu_blob {
        nvmlVgpuMetadata_t head;
        unsigned char bytes[1024];
};

union device_blob {
        nvmlVgpuPgpuMetadata_t head;
        unsigned char bytes[1024];
};

static unsigned int get_vgpu(union vgpu_blob *blob)
{
        unsigned int size = sizeof(*blob);

        memset(blob, 0xa5, sizeof(*blob));
        assert_int_equal(nvmlVgpuInstanceGetMetadata(FIXTURE_TRAIN, &blob->head, &size), 0);
        return size;
}

static unsigned int get_device(union device_blob *blob, unsigned int index)
{
        unsigned int size = sizeof(*blob);
        nvmlDevice_t device;

        memset(blob, 0xa5, sizeof(*blob));
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetVgpuMetadata(device, &blob->head, &size), NVML_SUCCESS);
        return size;
}

static nvmlVgpuPgpuCompatibility_t compare(union vgpu_blob *vgpu, union device_blob *device)
{
        nvmlVgpuPgpuCompatibility_t compatibility;

        assert_int_equal(nvmlGetVgpuCompatibility(&vgpu->head, &device->head, &compatibility),
                         NVML_SUCCESS);
        return compatibility;
}

static void test_sizes_are_told_before_the_handle_is_looked_at(void **state)
{
        unsigned int size = 0;
        union vgpu_blob blob;

        (void)state;
        assert_int_equal(nvmlVgpuInstanceGetMetadata(0, NULL, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetMetadata(99, NULL, &size),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(size, 468);
        assert_int_equal(nvmlVgpuInstanceGetMetadata(99, NULL, &size), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlVgpuInstanceGetMetadata(99, &blob.head, &size), NVML_ERROR_NOT_FOUND);
        assert_int_equal(size, 468);
}

static void test_blobs_are_as_long_as_they_say(void **state)
{
        union device_blob device;
        union vgpu_blob vgpu;
        unsigned int size;

        (void)state;
        size = get_vgpu(&vgpu);
        assert_int_equal(size, offsetof(nvmlVgpuMetadata_t, opaqueData) + vgpu.head.opaqueDataSize);
        assert_int_equal(vgpu.bytes[size], 0xa5);
        assert_string_equal(vgpu.head.hostDriverVersion, "580.159.04");
        assert_int_equal(vgpu.head.guestInfoState, 1);
        size = get_device(&device, 1);
        assert_int_equal(size,
                         offsetof(nvmlVgpuPgpuMetadata_t, opaqueData) + device.head.opaqueDataSize);
        assert_int_equal(device.bytes[size], 0xa5);
}

static void test_a_vgpu_moves_live_to_a_device_of_its_kind(void **state)
{
        nvmlVgpuPgpuCompatibility_t answer;
        union device_blob device;
        union vgpu_blob vgpu;

        (void)state;
        get_vgpu(&vgpu);
        get_device(&device, 1);
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, 15);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_NONE);
}

static void test_what_stands_in_the_way_is_named(void **state)
{
        struct fixture *fixture = *state;
        nvmlVgpuPgpuCompatibility_t answer;
        struct state_device record;
        union device_blob device;
        union vgpu_blob vgpu;

        get_vgpu(&vgpu);
        get_device(&device, 1);
        strcpy(device.head.hostDriverVersion, "570.1");
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_NONE);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER);

        get_device(&device, 1);
        device.head.hostSupportedVgpuRange.minVersion = vgpu.head.guestVgpuVersion + 1;
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER);

        get_device(&device, 1);
        device.head.pgpuVirtualizationCaps = 0;
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_COLD);

        assert_true(state_read_device(fixture->state_page, 1, &record));
        record.pci_device_id = 0x233010de;
        state_write_device(fixture->state_page, 1, &record);
        get_device(&device, 1);
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_GPU);
}

static void test_a_device_that_cannot_host_the_vgpu_is_no_target(void **state)
{
        struct fixture *fixture = *state;
        nvmlVgpuPgpuCompatibility_t answer;
        struct state_device record;
        union device_blob device;
        union vgpu_blob vgpu;

        get_vgpu(&vgpu);
        assert_true(state_read_device(fixture->state_page, 1, &record));
        record.memory_total = 10 * GIB; /* the vGPU has 32 GiB */
        state_write_device(fixture->state_page, 1, &record);
        get_device(&device, 1);
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_NONE);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_GPU);
}

/* A device with more types than fit into the bytes that NVIDIA's blobs have. */
static void test_a_blob_has_all_types_of_its_device(void **state)
{
        struct fixture *fixture = *state;
        struct state_offers offers = { .n = STATE_OFFERS_MAX };
        struct state_instance instance;
        nvmlVgpuPgpuCompatibility_t answer;
        union device_blob device;
        union vgpu_blob vgpu;

        for (uint32_t i = 0; i < STATE_OFFERS_MAX; i++) {
                const struct state_type type = { .id = 0x5000 + i, .profile_id = STATE_NONE };

                offers.offer[i].type = (uint16_t)state_add_type(fixture->state_page, &type);
        }
        state_write_offers(fixture->state_page, state_site_of_device(1), &offers);
        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        instance.is_virtual = 1;
        instance.type_id = 0x5000 + STATE_OFFERS_MAX - 1;
        state_write_instance(fixture->state_page, 5, &instance);
        get_vgpu(&vgpu);
        get_device(&device, 1);
        assert_int_equal(compare(&vgpu, &device).vgpuVmCompatibility, 15);

        instance.type_id = 0x5000 + STATE_OFFERS_MAX;
        state_write_instance(fixture->state_page, 5, &instance);
        get_vgpu(&vgpu);
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_NONE);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_GPU);
}

static void test_blobs_that_are_not_ours_are_refused_quietly(void **state)
{
        nvmlVgpuPgpuCompatibility_t answer;
        union device_blob device;
        union vgpu_blob vgpu;

        (void)state;
        get_device(&device, 1);
        get_vgpu(&vgpu);
        vgpu.head.opaqueDataSize = UINT32_MAX;
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_OTHER);
        get_vgpu(&vgpu);
        device.head.version++;
        strcpy(device.head.hostDriverVersion, "570.1"); /* means what the other version says */
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_OTHER);
        memset(&vgpu, 0, sizeof(vgpu));
        memset(&device, 0, sizeof(device));
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_NONE);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_OTHER);
        assert_int_equal(nvmlGetVgpuCompatibility(NULL, &device.head, &answer),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_the_metadata_string_tells_kinds_of_devices_apart(void **state)
{
        nvmlDevice_t device;
        unsigned int size = 0;
        char text[256];

        (void)state;
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetPgpuMetadataString(device, NULL, &size),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        size = sizeof(text);
        assert_int_equal(nvmlDeviceGetPgpuMetadataString(device, text, &size), NVML_SUCCESS);
        assert_string_equal(text, "233518BE00000000");
        assert_int_equal(size, strlen(text) + 1);
}

static void test_a_machine_without_a_driver_can_only_start_elsewhere(void **state)
{
        struct fixture *fixture = *state;
        nvmlVgpuPgpuCompatibility_t answer;
        struct state_instance instance;
        union device_blob device;
        union vgpu_blob vgpu;

        assert_true(state_read_instance(fixture->state_page, 5, &instance));
        instance.guest_driver = STATE_GUEST_DRIVER_STOPPED;
        state_write_instance(fixture->state_page, 5, &instance);
        get_vgpu(&vgpu);
        get_device(&device, 1);
        assert_int_equal(vgpu.head.guestInfoState, 0);
        assert_string_equal(vgpu.head.guestDriverVersion, "");
        assert_int_equal(vgpu.head.guestVgpuVersion, 0);
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_COLD);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER);
}

static void test_what_a_vgpu_uses_may_keep_it_where_it_is(void **state)
{
        struct fixture *fixture = *state;
        nvmlVgpuPgpuCompatibility_t answer;
        union device_blob device;
        union vgpu_blob vgpu;
        struct state_vm vm;

        assert_true(state_read_vm(fixture->state_page, 5, &vm));
        vm.uses = 1ull << 40;
        state_write_vm(fixture->state_page, 5, &vm);
        get_vgpu(&vgpu);
        get_device(&device, 1);
        answer = compare(&vgpu, &device);
        assert_int_equal(answer.vgpuVmCompatibility, NVML_VGPU_VM_COMPATIBILITY_COLD);
        assert_int_equal(answer.compatibilityLimitCode, NVML_VGPU_COMPATIBILITY_LIMIT_OTHER);
}

static void test_the_version_range_is_the_hosts_and_so_is_that_of_its_devices(void **state)
{
        struct fixture *fixture = *state;
        struct state_host host = { .supported_min = 0x180001,
                                   .supported_max = 0x1c0001,
                                   .current_min = 0x190000,
                                   .current_max = 0x1a0000 };
        nvmlVgpuVersion_t supported, current;
        union device_blob device;

        state_write_host(fixture->state_page, 0, &host);
        assert_int_equal(nvmlGetVgpuVersion(&supported, &current), NVML_SUCCESS);
        assert_int_equal(supported.maxVersion, 0x1c0001);
        assert_int_equal(current.minVersion, 0x190000);
        get_device(&device, 0);
        assert_int_equal(device.head.hostSupportedVgpuRange.maxVersion, 0x1a0000);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_sizes_are_told_before_the_handle_is_looked_at),
                with_state_page(test_blobs_are_as_long_as_they_say),
                with_state_page(test_a_vgpu_moves_live_to_a_device_of_its_kind),
                with_state_page(test_what_stands_in_the_way_is_named),
                with_state_page(test_a_device_that_cannot_host_the_vgpu_is_no_target),
                with_state_page(test_a_blob_has_all_types_of_its_device),
                with_state_page(test_blobs_that_are_not_ours_are_refused_quietly),
                with_state_page(test_the_metadata_string_tells_kinds_of_devices_apart),
                with_state_page(test_a_machine_without_a_driver_can_only_start_elsewhere),
                with_state_page(test_what_a_vgpu_uses_may_keep_it_where_it_is),
                with_state_page(test_the_version_range_is_the_hosts_and_so_is_that_of_its_devices),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
