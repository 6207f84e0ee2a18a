/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML answers arrives whole: numbers, texts of any length, lists that grow meanwhile. */
#include <stdio.h>
#include <string.h>

#include <openvgpu/accounting.h>
#include <openvgpu/device.h>
#include <openvgpu/gpu-instance.h>
#include <openvgpu/instance.h>
#include <openvgpu/licence.h>
#include <openvgpu/metadata.h>
#include <openvgpu/placement.h>
#include <openvgpu/scheduler.h>
#include <openvgpu/session.h>
#include <openvgpu/type.h>
#include <openvgpu/utilization.h>

#include "abi/nvml-vgpu.h"
#include "base/size.h"
#include "base/test.h"
#include "fake/nvml-host.h"

#define ALL VGPU_WHOLE_DEVICE

static struct fixture fixture;

static int open_newest(void **state)
{
        (void)state;
        fixture_open(&fixture, "610");
        return 0;
}

static int close_newest(void **state)
{
        (void)state;
        fixture_close(&fixture);
        return 0;
}

/* The question @call_ succeeds and its number is @value_. */
#define EXPECT_NUMBER(value_, call_, ...)                                        \
        do {                                                                     \
                uint32_t number_ = 4711;                                         \
                                                                                 \
                assert_int_equal(call_(fixture.host, __VA_ARGS__, &number_), 0); \
                assert_int_equal(number_, value_);                               \
        } while (0)
#define EXPECT_BYTES(value_, call_, ...)                                         \
        do {                                                                     \
                uint64_t number_ = 4711;                                         \
                                                                                 \
                assert_int_equal(call_(fixture.host, __VA_ARGS__, &number_), 0); \
                assert_int_equal(number_, value_);                               \
        } while (0)
#define EXPECT_TEXT(value_, call_, ...)                                        \
        do {                                                                   \
                CLEANUP(freep) char *text_ = NULL;                             \
                                                                               \
                assert_int_equal(call_(fixture.host, __VA_ARGS__, &text_), 0); \
                assert_string_equal(text_, value_);                            \
        } while (0)

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
                       VGPU_ERROR_INVALID_PARAMETER, "vGPU type 500: has 1 heads, and no head 1");
        fixture_expect(&fixture, vgpu_type_get_frame_rate_limit(fixture.host, FAKE_TYPE_BIG, &a),
                       VGPU_ERROR_NOT_SUPPORTED, "vGPU type 500");
        fixture_expect(&fixture, vgpu_type_get_capability(fixture.host, FAKE_TYPE_BIG, 99, &flag),
                       VGPU_ERROR_INVALID_PARAMETER, "there is no capability 99");
}

static void expect_list(const struct vgpu_number_list *list, size_t n, const uint32_t *numbers)
{
        assert_int_equal(list->n_numbers, n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(list->numbers[i], numbers[i]);
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
                       VGPU_ERROR_INVALID_PARAMETER, "vGPU 11: 101 is too much for an encoder");

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
        assert_int_equal(list->gpu_instances[1].id, 6);
        assert_int_equal(list->gpu_instances[1].profile, 19);
        assert_int_equal(list->gpu_instances[1].start, 1);
        assert_int_equal(list->gpu_instances[1].slices, 1);
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
        assert_int_equal(log->entries[199].time_ns, 1199);
        assert_int_equal(log->entries[199].weight, 64);
        assert_int_equal(log->state.average_factor, 33);
        assert_string_equal(vgpu_scheduler_policy_get_name(log->state.policy), "equal-share");
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
        assert_int_equal(log->state.timeslice_ns, 3000000);
        assert_int_equal(log->state.average_factor, 0);
        assert_int_equal(log->entries[0].run_total_ns, 500);
        assert_int_equal(log->entries[0].preemption_total_ns, 5);
        assert_int_equal(log->entries[0].weight, VGPU_UNKNOWN);
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

static void test_utilization_new_and_old(void **state)
{
        CLEANUP(freep) struct vgpu_utilization_list *all = NULL, *processes = NULL, *later = NULL;
        CLEANUP(freep) struct vgpu_utilization_list *old_all = NULL, *old_processes = NULL;
        struct fixture old;
        (void)state;

        assert_int_equal(vgpu_utilization_lookup_instances(fixture.host, 0, 0, &all), 0);
        assert_int_equal(all->n_samples, 2);
        assert_int_equal(all->last_us, 5000000);
        assert_int_equal(all->samples[0].instance, FAKE_TRAIN);
        assert_int_equal(all->samples[0].sm, 20);
        assert_int_equal(all->samples[0].decoder, 1);
        assert_int_equal(all->samples[0].ofa, 9);
        assert_int_equal(all->samples[0].pid, 0);
        assert_string_equal(all->samples[0].name, "");
        assert_int_equal(all->samples[1].instance, FAKE_INFER);

        assert_int_equal(vgpu_utilization_lookup_processes(fixture.host, 0, 0, &processes), 0);
        assert_int_equal(processes->n_samples, 2);
        assert_int_equal(processes->samples[0].pid, 4242);
        assert_string_equal(processes->samples[0].name, "train.py");
        assert_int_equal(processes->samples[0].jpeg, 8);
        assert_int_equal(strlen(processes->samples[1].name), 64);

        assert_int_equal(vgpu_utilization_lookup_instances(fixture.host, 0, all->last_us, &later),
                         0);
        assert_int_equal(later->n_samples, 0);
        assert_int_equal(later->last_us, 5000000);
        assert_int_equal(vgpu_host_get_error(fixture.host)->kind, VGPU_ERROR_NONE);

        fixture_open(&old, "535");
        assert_int_equal(vgpu_utilization_lookup_instances(old.host, 0, 0, &old_all), 0);
        assert_int_equal(old_all->n_samples, 2);
        assert_int_equal(old_all->samples[1].memory, 3);
        assert_int_equal(old_all->samples[1].jpeg, VGPU_UNKNOWN);
        assert_int_equal(vgpu_utilization_lookup_processes(old.host, 0, 0, &old_processes), 0);
        assert_int_equal(old_processes->n_samples, 1);
        assert_string_equal(old_processes->samples[0].name, "train.py");
        assert_int_equal(old_processes->samples[0].ofa, VGPU_UNKNOWN);
        fixture_close(&old);
}

static void test_sessions(void **state)
{
        CLEANUP(freep) struct vgpu_session_stats *encoder = NULL, *capture = NULL;
        CLEANUP(freep) struct vgpu_encoder_session_list *encoders = NULL, *none = NULL;
        CLEANUP(freep) struct vgpu_capture_session_list *captures = NULL;
        (void)state;

        assert_int_equal(vgpu_session_lookup_encoder_stats(fixture.host, FAKE_TRAIN, &encoder), 0);
        assert_int_equal(encoder->n_sessions, 2);
        assert_int_equal(encoder->average_fps, 59);
        assert_int_equal(encoder->average_latency_us, 1234);
        assert_int_equal(vgpu_session_lookup_capture_stats(fixture.host, FAKE_TRAIN, &capture), 0);
        assert_int_equal(capture->average_latency_us, 900);

        assert_int_equal(vgpu_session_lookup_encoders(fixture.host, FAKE_TRAIN, &encoders), 0);
        assert_int_equal(encoders->n_sessions, 2);
        assert_int_equal(encoders->sessions[1].pid, 4243);
        assert_int_equal(encoders->sessions[1].width, 3840);
        assert_string_equal(vgpu_codec_get_name(encoders->sessions[1].codec), "av1");
        assert_string_equal(vgpu_codec_get_name(VGPU_CODEC_UNKNOWN), "unknown");
        assert_int_equal(vgpu_session_lookup_encoders(fixture.host, FAKE_INFER, &none), 0);
        assert_int_equal(none->n_sessions, 0);
        assert_int_equal(vgpu_session_lookup_captures(fixture.host, FAKE_TRAIN, &captures), 0);
        assert_int_equal(captures->n_sessions, 1);
        assert_int_equal(captures->sessions[0].max_width, 4096);
        assert_int_equal(captures->sessions[0].flags,
                         VGPU_CAPTURE_DIFFERENCE_MAP | VGPU_CAPTURE_NO_WAIT);
        assert_string_equal(vgpu_capture_kind_get_name(captures->sessions[0].kind), "cuda");
}

static void test_licences(void **state)
{
        CLEANUP(freep) struct vgpu_licence *licence = NULL, *older = NULL;
        struct vgpu_licence *none = NULL;
        struct fixture old;
        bool is_licensed;
        (void)state;

        assert_int_equal(vgpu_licence_get_status(fixture.host, FAKE_TRAIN, &is_licensed), 0);
        assert_true(is_licensed);
        assert_int_equal(vgpu_licence_get_status(fixture.host, FAKE_INFER, &is_licensed), 0);
        assert_false(is_licensed);
        assert_int_equal(vgpu_licence_lookup(fixture.host, FAKE_TRAIN, &licence), 0);
        assert_true(licence->is_licensed);
        assert_int_equal(licence->state, VGPU_LICENCE_LICENSED);
        assert_int_equal(licence->expiry, VGPU_LICENCE_EXPIRY_VALID);
        assert_string_equal(licence->expiry_text, "2026-11-23 05:02:12 GMT");
        assert_int_equal(licence->expiry_seconds, 1795410132);
        assert_string_equal(vgpu_licence_state_get_name(licence->state), "licensed");
        assert_string_equal(vgpu_licence_expiry_get_name(VGPU_LICENCE_EXPIRY_PERMANENT),
                            "permanent");
        fixture_expect(&fixture, vgpu_licence_lookup(fixture.host, FAKE_INFER, &none),
                       VGPU_ERROR_NOT_LOADED, "vGPU 3251634327");
        assert_null(none);

        /* R390 only knows yes and no. */
        fixture_open(&old, "390");
        assert_int_equal(vgpu_licence_get_status(old.host, FAKE_TRAIN, &is_licensed), 0);
        assert_true(is_licensed);
        fixture_expect(&old, vgpu_licence_lookup(old.host, FAKE_TRAIN, &none),
                       VGPU_ERROR_NOT_IN_DRIVER, "needs R495 or newer");
        fixture_close(&old);
        assert_null(none);

        /* A driver that has dropped the deprecated call. */
        fixture.fake->answer_of = "nvmlVgpuInstanceGetLicenseStatus";
        fixture.fake->answer = NVML_ERROR_FUNCTION_NOT_FOUND;
        assert_int_equal(vgpu_licence_get_status(fixture.host, FAKE_TRAIN, &is_licensed), 0);
        assert_true(is_licensed);

        /* One that has the first form only. */
        fixture.fake->answer_of = "nvmlVgpuInstanceGetLicenseInfo_v2";
        assert_int_equal(vgpu_licence_lookup(fixture.host, FAKE_TRAIN, &older), 0);
        assert_int_equal(older->state, VGPU_LICENCE_LICENSED);
        assert_string_equal(older->expiry_text, "2026-11-23 05:02:12 GMT");
}

static void test_accounting(void **state)
{
        CLEANUP(freep) struct vgpu_number_list *pids = NULL;
        CLEANUP(freep) struct vgpu_accounting_stats *stats = NULL;
        const uint32_t all[] = { 4242, 4243, 4000000000 };
        struct vgpu_accounting_stats *none = NULL;
        bool is_on;
        (void)state;

        assert_int_equal(vgpu_accounting_get_mode(fixture.host, FAKE_TRAIN, &is_on), 0);
        assert_true(is_on);
        assert_int_equal(vgpu_accounting_lookup_pids(fixture.host, FAKE_TRAIN, &pids), 0);
        expect_list(pids, 3, all);
        assert_int_equal(vgpu_accounting_lookup_stats(fixture.host, FAKE_TRAIN, 4242, &stats), 0);
        assert_int_equal(stats->gpu_utilization, 31);
        assert_int_equal(stats->memory_utilization, VGPU_UNKNOWN);
        assert_int_equal(stats->max_memory_used, GIB);
        assert_int_equal(stats->time_ms, 60000);
        assert_false(stats->is_running);
        assert_int_equal(vgpu_accounting_clear(fixture.host, FAKE_TRAIN), 0);

        fixture_expect(&fixture, vgpu_accounting_lookup_stats(fixture.host, FAKE_TRAIN, 1, &none),
                       VGPU_ERROR_NO_SUCH_PROCESS,
                       "process 1 of vGPU 11: nothing is recorded of the process");
        fixture_expect(&fixture, vgpu_accounting_lookup_stats(fixture.host, 99, 4242, &none),
                       VGPU_ERROR_NO_SUCH_VGPU, "vGPU 99");
        fixture_expect(&fixture, vgpu_accounting_get_mode(fixture.host, FAKE_INFER, &is_on),
                       VGPU_ERROR_NOT_LOADED, "guest");
        assert_null(none);
}

static void test_metadata(void **state)
{
        CLEANUP(freep) struct vgpu_metadata *train = NULL, *infer = NULL, *device = NULL;
        CLEANUP(freep) struct vgpu_metadata *copy = NULL, *longer = NULL;
        struct vgpu_compatibility answer = { 0, 0 };
        struct vgpu_metadata *none = NULL;
        char bytes[1024];
        (void)state;

        assert_int_equal(vgpu_metadata_lookup_instance(fixture.host, FAKE_TRAIN, &train), 0);
        assert_int_equal(train->kind, VGPU_METADATA_INSTANCE);
        assert_int_equal(train->size, offsetof(nvmlVgpuMetadata_t, opaqueData) + 256);
        assert_int_equal(train->version, 3);
        assert_true(train->can_migrate);
        assert_true(train->is_guest_known);
        assert_string_equal(train->guest_driver_version, "550.54");
        assert_string_equal(train->host_driver_version, "610.10");
        assert_int_equal(train->guest_version, 0x1a0001);
        assert_int_equal(vgpu_metadata_lookup_instance(fixture.host, FAKE_INFER, &infer), 0);
        assert_false(infer->is_guest_known);
        assert_string_equal(infer->guest_driver_version, "");
        assert_int_equal(vgpu_metadata_lookup_device(fixture.host, 0, &device), 0);
        assert_int_equal(device->versions.maximum, 0x1c0001);
        EXPECT_TEXT("233518BE00000002", vgpu_metadata_get_device_text, 0);

        assert_int_equal(vgpu_metadata_check(fixture.host, train, device, &answer), 0);
        assert_int_equal(answer.power_states, VGPU_POWER_LIVE | VGPU_POWER_SLEEP |
                                                      VGPU_POWER_HIBERNATE | VGPU_POWER_COLD);
        assert_int_equal(answer.limits, 0);
        assert_int_equal(vgpu_metadata_check(fixture.host, infer, device, &answer), 0);
        assert_int_equal(answer.power_states, VGPU_POWER_COLD);
        assert_int_equal(answer.limits, VGPU_LIMIT_OTHER);
        fixture_expect(&fixture, vgpu_metadata_check(fixture.host, device, train, &answer),
                       VGPU_ERROR_INVALID_PARAMETER, "metadata of a vGPU and of a device");

        /* From another host, with something behind it, or with its end cut off. */
        assert_int_equal(vgpu_metadata_new(fixture.host, VGPU_METADATA_INSTANCE, train->bytes,
                                           train->size, &copy),
                         0);
        assert_int_equal(vgpu_metadata_check(fixture.host, copy, device, &answer), 0);
        assert_int_equal(answer.limits, 0);
        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes, train->bytes, train->size);
        assert_int_equal(vgpu_metadata_new(fixture.host, VGPU_METADATA_INSTANCE, bytes,
                                           sizeof(bytes), &longer),
                         0);
        assert_int_equal(longer->size, train->size);
        fixture_expect(&fixture,
                       vgpu_metadata_new(fixture.host, VGPU_METADATA_INSTANCE, train->bytes,
                                         train->size - 1, &none),
                       VGPU_ERROR_INVALID_PARAMETER, "the end is missing");
        fixture_expect(
                &fixture,
                vgpu_metadata_new(fixture.host, VGPU_METADATA_DEVICE, train->bytes, 20, &none),
                VGPU_ERROR_INVALID_PARAMETER, "they are too short");

        fixture.fake->is_crippled = true;
        fixture_expect(&fixture, vgpu_metadata_lookup_instance(fixture.host, FAKE_TRAIN, &none),
                       VGPU_ERROR_DRIVER_FAILED, "has no usable metadata");
        assert_null(none);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_newest, close_newest)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_types),
                TEST(test_devices),
                TEST(test_devices_are_found_by_what_people_write),
                TEST(test_vgpus),
                TEST(test_the_word_of_old_drivers_for_no_guest),
                TEST(test_gpu_instances),
                TEST(test_placements),
                TEST(test_scheduler_of_the_newest_driver),
                TEST(test_scheduler_of_an_older_driver),
                TEST(test_the_scheduler_is_set_by_the_call_that_can),
                TEST(test_utilization_new_and_old),
                TEST(test_sessions),
                TEST(test_licences),
                TEST(test_accounting),
                TEST(test_metadata),
                TEST(test_what_grows_meanwhile_is_read_whole),
                TEST(test_a_driver_that_is_never_content_ends_in_an_error),
        };

        return cmocka_run_group_tests_name("lib-nvml-answers", tests, NULL, NULL);
}
