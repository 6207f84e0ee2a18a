/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML answers arrives whole: numbers, texts of any length, lists that grow meanwhile. */
#include <string.h>

#include <openvgpu/device-event.h>
#include <openvgpu/gpu-instance.h>
#include <openvgpu/instance.h>
#include <openvgpu/placement.h>
#include <openvgpu/session.h>
#include <openvgpu/type.h>
#include <openvgpu/utilization.h>

#include "base/size.h"
#include "lib/test-nvml.h"

static void test_types(void **state)
{
        uint32_t a, b;
        bool flag;
        (void)state;

        EXPECT_TEXT("NVIDIA H200-70C", vgpu_type_get_name, FAKE_TYPE_BIG);
        EXPECT_TEXT("Compute", vgpu_type_get_class, FAKE_TYPE_BIG);
        EXPECT_TEXT("NVIDIA Virtual Compute,9.0", vgpu_type_get_licence, FAKE_TYPE_BIG);
        EXPECT_NUMBER(VGPU_UNKNOWN, vgpu_type_get_profile_id, FAKE_TYPE_BIG);
        EXPECT_NUMBER(19, vgpu_type_get_profile_id, FAKE_TYPE_MIG);
        EXPECT_BYTES(70 * GIB, vgpu_type_get_frame_buffer, FAKE_TYPE_BIG);
        EXPECT_NUMBER(1, vgpu_type_get_heads, FAKE_TYPE_BIG);
        EXPECT_NUMBER(60, vgpu_type_get_frame_rate_limit, FAKE_TYPE_SMALL);
        EXPECT_NUMBER(2, vgpu_type_get_max_instances, 0, FAKE_TYPE_BIG);
        EXPECT_NUMBER(16, vgpu_type_get_max_instances_per_vm, FAKE_TYPE_BIG);
        EXPECT_NUMBER(3, vgpu_type_get_max_instances_per_gpu_instance, FAKE_TYPE_MIG);
        EXPECT_BYTES(4 * GIB, vgpu_type_get_bar1, FAKE_TYPE_BIG);
        EXPECT_BYTES(100 * MIB, vgpu_type_get_gsp_heap, FAKE_TYPE_BIG);
        EXPECT_BYTES(200 * MIB, vgpu_type_get_reservation, FAKE_TYPE_BIG);
        assert_int_equal(vgpu_type_get_device_id(fixture.host, FAKE_TYPE_BIG, &a, &b), 0);
        assert_int_equal(a, 0x233510de);
        assert_int_equal(b, 0x18be10de);
        assert_int_equal(vgpu_type_get_resolution(fixture.host, FAKE_TYPE_BIG, 0, &a, &b), 0);
        assert_int_equal(a, 4096);
        assert_int_equal(b, 2160);
        assert_int_equal(
                vgpu_type_get_capability(fixture.host, FAKE_TYPE_BIG, VGPU_TYPE_GPUDIRECT, &flag),
                0);
        assert_true(flag);
        assert_string_equal(vgpu_type_capability_get_name(VGPU_TYPE_EXCLUSIVE_SIZE),
                            "exclusive-size");

        fixture_expect(&fixture, vgpu_type_get_resolution(fixture.host, FAKE_TYPE_BIG, 1, &a, &b),
                       VGPU_ERROR_INVALID_PARAMETER, "vGPU type 500: it has 1 head, and no head 1");
        fixture_expect(&fixture, vgpu_type_get_frame_rate_limit(fixture.host, FAKE_TYPE_BIG, &a),
                       VGPU_ERROR_NOT_SUPPORTED, "vGPU type 500");
        fixture_expect(&fixture, vgpu_type_get_capability(fixture.host, FAKE_TYPE_BIG, 99, &flag),
                       VGPU_ERROR_INVALID_PARAMETER, "there is no capability 99");
}

static void test_devices(void **state)
{
        CLEANUP(freep) struct vgpu_number_list *possible = NULL, *creatable = NULL, *none = NULL;
        CLEANUP(freep) struct vgpu_number_list *active = NULL, *in_part = NULL;
        const uint32_t types[] = { FAKE_TYPE_BIG, FAKE_TYPE_SMALL };
        const uint32_t ids[] = { FAKE_TRAIN, FAKE_INFER }, mig[] = { FAKE_MIG };
        enum vgpu_device_mode mode;
        (void)state;

        EXPECT_TEXT("NVIDIA H200", vgpu_device_get_name, 0);
        EXPECT_TEXT("00000000:17:00.0", vgpu_device_get_pci_bus_id, 0);
        assert_int_equal(vgpu_device_get_mode(fixture.host, 0, &mode), 0);
        assert_int_equal(mode, VGPU_DEVICE_SRIOV);
        EXPECT_NUMBER(400, vgpu_device_get_capability, 0, VGPU_DEVICE_WRITE_BANDWIDTH);
        assert_int_equal(
                vgpu_device_set_capability(fixture.host, 0, VGPU_DEVICE_MEDIA_ENGINES, true), 0);
        assert_int_equal(fixture.fake->set[0], 7);
        assert_int_equal(fixture.fake->set[1], 1);
        assert_string_equal(vgpu_device_capability_get_name(VGPU_DEVICE_STREAMING), "streaming");
        assert_string_equal(vgpu_device_capability_get_name(12), "unknown");

        assert_int_equal(vgpu_device_lookup_types(fixture.host, 0, &possible), 0);
        expect_list(possible, 2, types);
        assert_int_equal(vgpu_device_lookup_creatable_types(fixture.host, 0, ALL, &creatable), 0);
        expect_list(creatable, 1, &types[1]);
        assert_int_equal(vgpu_device_lookup_creatable_types(fixture.host, 1, ALL, &none), 0);
        expect_list(none, 0, NULL);
        assert_non_null(none->numbers);
        assert_int_equal(vgpu_device_lookup_instances(fixture.host, 0, ALL, &active), 0);
        expect_list(active, 2, ids);
        assert_int_equal(vgpu_device_lookup_instances(fixture.host, 1, FAKE_GPU_INSTANCE, &in_part),
                         0);
        expect_list(in_part, 1, mig);
}

/* The fake has no clocks, and asked for power it says that it may not tell. */
static void test_sensors_that_are_not_told_are_unknown(void **state)
{
        CLEANUP(freep) struct vgpu_device_sensors *sensors = NULL, *lost = NULL;
        (void)state;

        fixture.fake->answer_of = "nvmlDeviceGetPowerUsage";
        fixture.fake->answer = NVML_ERROR_NO_PERMISSION;
        assert_int_equal(vgpu_device_lookup_sensors(fixture.host, 0, &sensors), 0);
        assert_int_equal(vgpu_host_get_error(fixture.host)->kind, VGPU_ERROR_NONE);
        assert_int_equal(sensors->temperature, 55);
        assert_true(sensors->memory_free == 101 * GIB);
        assert_int_equal(sensors->ecc_corrected, 3);
        assert_int_equal(sensors->ecc_uncorrected, 0);
        assert_int_equal(sensors->power_mw, VGPU_UNKNOWN);
        assert_int_equal(sensors->clock_sm_mhz, VGPU_UNKNOWN);
        assert_true(sensors->energy_mj == UINT64_MAX);

        fixture_expect(&fixture, vgpu_device_lookup_sensors(fixture.host, 2, &lost),
                       VGPU_ERROR_DEVICE_LOST, "device 2: the device fell off the bus");
        assert_null(lost);
}

static void watch_with(const char *age)
{
        CLEANUP(freep) struct vgpu_device_event *event = NULL, *none = NULL;
        struct vgpu_device_watch *watch = NULL;

        fixture_close(&fixture);
        fixture_open(&fixture, age);
        assert_int_equal(vgpu_device_watch_new(&watch, fixture.host, VGPU_DEVICE_EVENT_XID), 0);
        fixture.fake->xid = 79;
        assert_int_equal(vgpu_device_watch_wait(watch, 1, &event), 0);
        assert_int_equal(event->device, 0);
        assert_int_equal(event->kind, VGPU_DEVICE_EVENT_XID);
        assert_int_equal(event->data, 79);
        fixture_expect(&fixture, vgpu_device_watch_wait(watch, 1, &none), VGPU_ERROR_TIMED_OUT,
                       "timed out");
        assert_null(none);
        assert_int_equal(fixture.fake->n_event_sets, 1);
        watch = vgpu_device_watch_free(watch);
        assert_int_equal(fixture.fake->n_event_sets, 0);
        assert_null(vgpu_device_watch_free(NULL));
}

/* Device 1 tells no such events and device 2 is lost: the watch is of device 0. */
static void test_events_reach_who_waits(void **state)
{
        struct vgpu_device_watch *watch = NULL;
        (void)state;

        watch_with("390");
        watch_with("610");
        fixture_expect(&fixture,
                       vgpu_device_watch_new(&watch, fixture.host, VGPU_DEVICE_EVENT_ECC_CORRECTED),
                       VGPU_ERROR_NOT_SUPPORTED, "no device tells such events");
        assert_int_equal(fixture.fake->n_event_sets, 0);
        fixture.fake->answer_of = "nvmlEventSetCreate";
        fixture.fake->answer = NVML_ERROR_MEMORY;
        fixture_expect(&fixture, vgpu_device_watch_new(&watch, fixture.host, VGPU_DEVICE_EVENT_XID),
                       VGPU_ERROR_OUT_OF_MEMORY, "out of memory");
        assert_null(watch);
}

static void test_devices_are_found_by_what_people_write(void **state)
{
        uint32_t device;
        (void)state;

        EXPECT_NUMBER(1, vgpu_device_find, "1");
        EXPECT_NUMBER(1, vgpu_device_find, "GPU-aaab1111-2222-3333-4444-555555555555");
        EXPECT_NUMBER(1, vgpu_device_find, "gpu-aaab");
        EXPECT_NUMBER(1, vgpu_device_find, "00000000:3b:00.0");
        fixture_expect(&fixture, vgpu_device_find(fixture.host, "GPU-aaa", &device),
                       VGPU_ERROR_INVALID_PARAMETER, "several devices begin with 'GPU-aaa'");
        fixture_expect(&fixture, vgpu_device_find(fixture.host, "3", &device),
                       VGPU_ERROR_NO_SUCH_DEVICE, "there is no device '3'");
        fixture_expect(&fixture, vgpu_device_find(fixture.host, "", &device),
                       VGPU_ERROR_NO_SUCH_DEVICE, "there is no device ''");
        fixture_expect(&fixture, vgpu_device_find(fixture.host, "99999999999999999999", &device),
                       VGPU_ERROR_NO_SUCH_DEVICE, "there is no device");
}

static void test_vgpus(void **state)
{
        CLEANUP(freep) struct vgpu_vm *vm = NULL, *long_vm = NULL;
        uint32_t number;
        char *text = NULL;
        bool flag;
        (void)state;

        assert_int_equal(vgpu_instance_check(fixture.host, FAKE_TRAIN), 0);
        EXPECT_NUMBER(FAKE_INFER, vgpu_instance_find, "3251634327");
        EXPECT_NUMBER(FAKE_MIG, vgpu_instance_find, "E5C1B1A0-0000-4000-8000-000000000002");
        EXPECT_NUMBER(1, vgpu_instance_get_device, FAKE_MIG);
        EXPECT_NUMBER(0, vgpu_instance_get_device, FAKE_INFER);
        EXPECT_NUMBER(FAKE_TYPE_BIG, vgpu_instance_get_type, FAKE_TRAIN);
        EXPECT_NUMBER(70, vgpu_instance_get_placement, FAKE_TRAIN);
        EXPECT_NUMBER(VGPU_UNKNOWN, vgpu_instance_get_placement, FAKE_INFER);
        EXPECT_NUMBER(VGPU_WHOLE_DEVICE, vgpu_instance_get_gpu_instance, FAKE_TRAIN);
        EXPECT_NUMBER(5, vgpu_instance_get_gpu_instance, FAKE_MIG);
        EXPECT_TEXT("e5c1b1a0-0000-4000-8000-000000000000", vgpu_instance_get_uuid, FAKE_TRAIN);
        EXPECT_TEXT("550.54", vgpu_instance_get_vm_driver_version, FAKE_TRAIN);
        EXPECT_TEXT("", vgpu_instance_get_vm_driver_version, FAKE_INFER);
        EXPECT_TEXT("99999999-0000-4000-8000-000000000000", vgpu_instance_get_mdev_uuid,
                    FAKE_TRAIN);
        EXPECT_TEXT("00000000:02:04.0", vgpu_instance_get_pci_bus_id, FAKE_TRAIN);
        EXPECT_BYTES(6 * GIB, vgpu_instance_get_frame_buffer_used, FAKE_TRAIN);
        EXPECT_BYTES(77 * MIB, vgpu_instance_get_runtime_state_size, FAKE_TRAIN);
        EXPECT_NUMBER(60, vgpu_instance_get_frame_rate_limit, FAKE_INFER);
        EXPECT_NUMBER(100, vgpu_instance_get_encoder_capacity, FAKE_TRAIN);
        assert_int_equal(vgpu_instance_get_ecc(fixture.host, FAKE_TRAIN, &flag), 0);
        assert_true(flag);
        assert_int_equal(vgpu_instance_set_encoder_capacity(fixture.host, FAKE_TRAIN, 42), 0);
        assert_int_equal(fixture.fake->set[0], 42);
        fixture_expect(&fixture, vgpu_instance_set_encoder_capacity(fixture.host, FAKE_TRAIN, 101),
                       VGPU_ERROR_INVALID_PARAMETER,
                       "vGPU 11: the percentage of the encoder is 0 to 100, not 101");
        assert_string_equal(vgpu_host_get_error(fixture.host)->parameter, "percent");

        assert_int_equal(vgpu_instance_lookup_vm(fixture.host, FAKE_TRAIN, &vm), 0);
        assert_int_equal(vm->id_kind, VGPU_VM_ID_DOMAIN);
        assert_string_equal(vm->id, "1000");
        assert_int_equal(vgpu_instance_lookup_vm(fixture.host, FAKE_INFER, &long_vm), 0);
        assert_int_equal(long_vm->id_kind, VGPU_VM_ID_UUID);
        assert_int_equal(strlen(long_vm->id), 119);

        fixture_expect(&fixture, vgpu_instance_get_mdev_uuid(fixture.host, FAKE_MIG, &text),
                       VGPU_ERROR_NOT_SUPPORTED, "vGPU 21");
        fixture_expect(&fixture, vgpu_instance_get_pci_bus_id(fixture.host, FAKE_INFER, &text),
                       VGPU_ERROR_NOT_LOADED, "the driver in its guest does not run");
        fixture_expect(&fixture, vgpu_instance_find(fixture.host, "e5c1", &number),
                       VGPU_ERROR_NO_SUCH_VGPU, "there is no active vGPU 'e5c1'");
        fixture_expect(&fixture, vgpu_instance_find(fixture.host, "99", &number),
                       VGPU_ERROR_NO_SUCH_VGPU, "vGPU 99");
        fixture_expect(&fixture, vgpu_instance_get_device(fixture.host, 99, &number),
                       VGPU_ERROR_DEVICE_LOST, "vGPU 99: it may be on device 2, which fell off");
        fixture.fake->answer_of = "nvmlDeviceGetActiveVgpus";
        fixture.fake->answer = NVML_ERROR_NOT_SUPPORTED;
        fixture_expect(&fixture, vgpu_instance_get_device(fixture.host, FAKE_TRAIN, &number),
                       VGPU_ERROR_NO_SUCH_VGPU, "vGPU 11");
        assert_null(text);
}

static void test_the_word_of_old_drivers_for_no_guest(void **state)
{
        struct fixture old;
        char *version = NULL;
        (void)state;

        fixture_open(&old, "390");
        assert_int_equal(vgpu_instance_get_vm_driver_version(old.host, FAKE_INFER, &version), 0);
        assert_string_equal(version, "");
        vgpu_free(version);
        fixture_close(&old);
}

static void test_gpu_instances(void **state)
{
        CLEANUP(freep) struct vgpu_gpu_instance_list *list = NULL;
        struct vgpu_gpu_instance_list *none = NULL;
        (void)state;

        assert_int_equal(vgpu_gpu_instance_lookup_all(fixture.host, 1, &list), 0);
        assert_int_equal(list->n_gpu_instances, 2);
        assert_int_equal(list->gpu_instances[1]->id, 6);
        assert_int_equal(list->gpu_instances[1]->profile, 19);
        assert_int_equal(list->gpu_instances[1]->start, 1);
        assert_int_equal(list->gpu_instances[1]->slices, 1);
        fixture_expect(&fixture, vgpu_gpu_instance_lookup_all(fixture.host, 0, &none),
                       VGPU_ERROR_NOT_SUPPORTED, "device 0: it has no GPU instances (MIG)");
        assert_null(none);
}

static void expect_placements(const struct vgpu_placement_list *list, uint32_t slots, size_t n,
                              const uint32_t *placements)
{
        assert_int_equal(list->slots, slots);
        assert_int_equal(list->n_placements, n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(list->placements[i], placements[i]);
}

static void test_placements(void **state)
{
        CLEANUP(freep) struct vgpu_placement_list *mixed = NULL, *equal = NULL, *now = NULL;
        CLEANUP(freep) struct vgpu_placement_list *in_part = NULL, *old_mixed = NULL;
        const uint32_t ids[] = { 0, 35, 70, 105 }, mixed_ids[] = { 0, 70 },
                       part_ids[] = { 3, 6, 9 };
        struct vgpu_placement_list *none = NULL;
        struct fixture old;
        bool is_on;
        (void)state;

        assert_int_equal(vgpu_placement_lookup_possible(fixture.host, 0, FAKE_TYPE_SMALL,
                                                        VGPU_PLACEMENT_HETEROGENEOUS, &mixed),
                         0);
        expect_placements(mixed, 35, 2, mixed_ids);
        assert_int_equal(vgpu_placement_lookup_possible(fixture.host, 0, FAKE_TYPE_SMALL,
                                                        VGPU_PLACEMENT_HOMOGENEOUS, &equal),
                         0);
        expect_placements(equal, 35, 4, ids);
        assert_int_equal(vgpu_placement_lookup_creatable(fixture.host, 0, ALL, FAKE_TYPE_SMALL,
                                                         VGPU_PLACEMENT_HETEROGENEOUS, &now),
                         0);
        expect_placements(now, 35, 1, mixed_ids);
        assert_int_equal(vgpu_placement_lookup_creatable(fixture.host, 1, FAKE_GPU_INSTANCE,
                                                         FAKE_TYPE_MIG,
                                                         VGPU_PLACEMENT_HETEROGENEOUS, &in_part),
                         0);
        expect_placements(in_part, 3, 3, part_ids);

        assert_int_equal(vgpu_placement_get_heterogeneous(fixture.host, 0, ALL, &is_on), 0);
        assert_true(is_on);
        assert_int_equal(vgpu_placement_get_heterogeneous(fixture.host, 1, 5, &is_on), 0);
        assert_false(is_on);
        assert_int_equal(vgpu_placement_set_heterogeneous(fixture.host, 0, ALL, true), 0);
        assert_int_equal(fixture.fake->set[0], 1);
        assert_int_equal(vgpu_placement_set_heterogeneous(fixture.host, 1, 5, false), 0);
        assert_int_equal(fixture.fake->set[0], 0);

        /* Drivers before R570 have a shorter struct. */
        fixture_open(&old, "550");
        assert_int_equal(vgpu_placement_lookup_possible(old.host, 0, FAKE_TYPE_SMALL,
                                                        VGPU_PLACEMENT_HETEROGENEOUS, &old_mixed),
                         0);
        expect_placements(old_mixed, 35, 2, mixed_ids);
        fixture_expect(&old,
                       vgpu_placement_lookup_possible(old.host, 0, FAKE_TYPE_SMALL,
                                                      VGPU_PLACEMENT_HOMOGENEOUS, &none),
                       VGPU_ERROR_NOT_IN_DRIVER,
                       "the list of homogeneous placements is not in this driver (needs R570 or");
        assert_null(none);
        fixture_close(&old);
}

static void test_what_grows_meanwhile_is_read_whole(void **state)
{
        CLEANUP(freep) struct vgpu_encoder_session_list *sessions = NULL;
        CLEANUP(freep) struct vgpu_utilization_list *samples = NULL;
        CLEANUP(freep) struct vgpu_number_list *active = NULL;
        (void)state;

        fixture.fake->grow = 3;
        assert_int_equal(vgpu_device_lookup_instances(fixture.host, 0, ALL, &active), 0);
        assert_int_equal(active->n_numbers, 62);
        assert_int_equal(active->numbers[61], FAKE_INFER);
        fixture.fake->grow = 3;
        assert_int_equal(vgpu_session_lookup_encoders(fixture.host, FAKE_TRAIN, &sessions), 0);
        assert_int_equal(sessions->n_sessions, 62);
        fixture.fake->grow = 2;
        assert_int_equal(vgpu_utilization_lookup_instances(fixture.host, 0, 0, &samples), 0);
        assert_true(samples->n_samples >= 22);
}

static void test_a_driver_that_is_never_content_ends_in_an_error(void **state)
{
        struct vgpu_number_list *list = NULL;
        char *text = NULL;
        (void)state;

        fixture.fake->is_insatiable = true;
        fixture_expect(&fixture, vgpu_device_lookup_types(fixture.host, 0, &list),
                       VGPU_ERROR_DRIVER_FAILED, "device 0: the driver wants ever more room");
        fixture_expect(&fixture, vgpu_instance_get_uuid(fixture.host, FAKE_TRAIN, &text),
                       VGPU_ERROR_DRIVER_FAILED, "vGPU 11: the driver wants");
        fixture_expect(&fixture, vgpu_type_get_name(fixture.host, FAKE_TYPE_BIG, &text),
                       VGPU_ERROR_DRIVER_FAILED, "vGPU type 500: the driver wants");
        assert_null(list);
        assert_null(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_types),
                TEST(test_devices),
                TEST(test_devices_are_found_by_what_people_write),
                TEST(test_sensors_that_are_not_told_are_unknown),
                TEST(test_events_reach_who_waits),
                TEST(test_vgpus),
                TEST(test_the_word_of_old_drivers_for_no_guest),
                TEST(test_gpu_instances),
                TEST(test_placements),
                TEST(test_what_grows_meanwhile_is_read_whole),
                TEST(test_a_driver_that_is_never_content_ends_in_an_error),
        };

        return cmocka_run_group_tests_name("lib-nvml-answers", tests, NULL, NULL);
}
