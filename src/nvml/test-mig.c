/* SPDX-License-Identifier: Apache-2.0 */
/* GPU instances, compute instances in them, and the MIG devices that those are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml-accounting.h"
#include "abi/nvml-device.h"
#include "abi/nvml-mig.h"
#include "abi/nvml-sensors.h"
#include "base/cleanup.h"
#include "base/test.h"
#include "fake/manager.h"
#include "nvml/fixture.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

#define UUID     "MIG-b5c1b1a0-0000-4000-8000-00000000000"
#define PART     5u  /* id of the GPU instance */
#define PART_AT  9u  /* its slot */
#define FIRST_AT 11u /* slot of the compute instance of one slice */

static struct fixture *fixture;

static const struct state_profile whole = { .id = 9,
                                            .slices = 3,
                                            .max_instances = 2,
                                            .n_multiprocessors = 48,
                                            .n_copy_engines = 3,
                                            .n_decoders = 2,
                                            .n_jpegs = 1,
                                            .n_left = 1,
                                            .memory_slices = 4,
                                            .starts = 0x11,
                                            .memory_size = 70 * GIB,
                                            .name = "3g.71gb" };

static const struct state_gpu_instance part = { .id = PART,
                                                .profile_id = 9,
                                                .placement_size = 4,
                                                .is_heterogeneous = 0,
                                                .memory_total = 70 * GIB };

static void put_compute_instance(uint32_t slot, uint32_t id, uint32_t profile, uint32_t start,
                                 uint32_t size)
{
        struct state_compute_instance record = { .gpu_instance = PART,
                                                 .gpu_instance_slot = PART_AT,
                                                 .id = id,
                                                 .profile = profile,
                                                 .placement_start = start,
                                                 .placement_size = size };

        snprintf(record.uuid, sizeof(record.uuid), UUID "%u", id);
        state_write_compute_instance(fixture->state_page, slot, &record);
}

static int setup(void **state)
{
        struct state_device_detail detail;
        struct state_device device;

        if (fixture_setup(state) < 0)
                return -1;
        fixture = *state;
        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.mig = device.mig_pending = 1;
        state_write_device(fixture->state_page, 0, &device);
        assert_true(state_read_device_detail(fixture->state_page, 0, &detail));
        detail.max_mig_devices = 7;
        detail.bar1_total = 256 * GIB;
        state_write_device_detail(fixture->state_page, 0, &detail);
        state_write_profile(fixture->state_page, state_slot_of_profile(0, 2), &whole);
        state_write_gpu_instance(fixture->state_page, PART_AT, &part);
        put_compute_instance(FIRST_AT, 4, 0, 2, 1);
        return 0;
}

static nvmlDevice_t device_0(void)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        return device;
}

static nvmlGpuInstance_t get_part(void)
{
        nvmlGpuInstance_t handle;

        assert_int_equal(nvmlDeviceGetGpuInstanceById(device_0(), PART, &handle), NVML_SUCCESS);
        return handle;
}

static nvmlDevice_t get_mig(unsigned int index)
{
        nvmlDevice_t mig;

        assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(device_0(), index, &mig),
                         NVML_SUCCESS);
        return mig;
}

static void test_a_gpu_instance_has_profiles_for_compute_instances(void **state)
{
        nvmlComputeInstanceProfileInfo_v2_t named = { .version = 0x2000088 };
        nvmlComputeInstanceProfileInfo_v3_t third = { .version = 0x300008c, .capabilities = 7 };
        nvmlComputeInstancePlacement_t places[4];
        nvmlComputeInstanceProfileInfo_t info;
        unsigned int count;

        (void)state;
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfo(get_part(), 1, 0, &info),
                         NVML_SUCCESS);
        assert_int_equal(info.id, 1);
        assert_int_equal(info.sliceCount, 2);
        assert_int_equal(info.instanceCount, 1);
        assert_int_equal(info.multiprocessorCount, 32);
        assert_int_equal(info.sharedDecoderCount, 2);
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfoV(get_part(), 0, 0, &named),
                         NVML_SUCCESS);
        assert_string_equal(named.name, "MIG 1c.3g.71gb");
        assert_int_equal(
                nvmlGpuInstanceGetComputeInstanceProfileInfoV(
                        get_part(), 2, 0, (nvmlComputeInstanceProfileInfo_v2_t *)(void *)&third),
                NVML_SUCCESS);
        assert_string_equal(third.name, "MIG 3g.71gb");
        named.version++;
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfoV(get_part(), 0, 0, &named),
                         NVML_ERROR_INVALID_ARGUMENT); /* as NVIDIA's, and its header */
        assert_int_equal(third.capabilities, 0);
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfo(get_part(), 4, 0, &info),
                         NVML_ERROR_NOT_SUPPORTED); /* seven slices */
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfo(get_part(), 9, 0, &info),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceProfileInfo(get_part(), 0, 1, &info),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(
                nvmlGpuInstanceGetComputeInstancePossiblePlacements(get_part(), 0, places, &count),
                NVML_SUCCESS);
        assert_int_equal(count, 3);
        assert_int_equal(places[2].start, 2);
        assert_int_equal(places[2].size, 1);
        /* The one that is there takes the last slice. */
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceRemainingCapacity(get_part(), 0, &count),
                         NVML_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceRemainingCapacity(get_part(), 2, &count),
                         NVML_SUCCESS);
        assert_int_equal(count, 0);
}

static void test_compute_instances_are_listed_and_found(void **state)
{
        nvmlComputeInstance_t list[3], handle;
        nvmlComputeInstanceInfo_t info;
        unsigned int count = 9;

        (void)state;
        assert_int_equal(nvmlGpuInstanceGetComputeInstances(get_part(), 0, list, &count),
                         NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceById(get_part(), 4, &handle),
                         NVML_SUCCESS);
        assert_ptr_equal(handle, list[0]);
        assert_int_equal(nvmlComputeInstanceGetInfo_v2(handle, &info), NVML_SUCCESS);
        assert_ptr_equal(info.device, device_0());
        assert_ptr_equal(info.gpuInstance, get_part());
        assert_int_equal(info.id, 4);
        assert_int_equal(info.profileId, 0);
        assert_int_equal(info.placement.start, 2);
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceById(get_part(), 0, &handle),
                         NVML_ERROR_NOT_FOUND);
        state_write_compute_instance(fixture->state_page, FIRST_AT, NULL);
        assert_int_equal(nvmlComputeInstanceGetInfo(list[0], &info), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_a_compute_instance_is_a_device(void **state)
{
        const struct state_profile one = { .id = 19, .slices = 1, .n_multiprocessors = 14 };
        nvmlDeviceAttributes_t attributes;
        unsigned int number = 9;
        nvmlDevice_t mig, found;
        nvmlMemory_t memory;
        nvmlBAR1Memory_t bar1;
        char text[96];

        (void)state;
        put_compute_instance(FIRST_AT + 1, 0, 1, 0, 2);
        mig = get_mig(1);
        assert_int_equal(nvmlDeviceIsMigDeviceHandle(mig, &number), NVML_SUCCESS);
        assert_int_equal(number, 1);
        assert_int_equal(nvmlDeviceIsMigDeviceHandle(device_0(), &number), NVML_SUCCESS);
        assert_int_equal(number, 0);
        assert_int_equal(nvmlDeviceGetIndex(mig, &number), NVML_SUCCESS);
        assert_int_equal(number, 1);
        assert_int_equal(nvmlDeviceGetGpuInstanceId(mig, &number), NVML_SUCCESS);
        assert_int_equal(number, PART);
        assert_int_equal(nvmlDeviceGetComputeInstanceId(get_mig(0), &number), NVML_SUCCESS);
        assert_int_equal(number, 4);
        assert_int_equal(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &found), NVML_SUCCESS);
        assert_ptr_equal(found, device_0());
        assert_int_equal(nvmlDeviceGetName(mig, text, sizeof(text)), NVML_SUCCESS);
        assert_string_equal(text, "NVIDIA H200 MIG 2c.3g.71gb");
        assert_int_equal(nvmlDeviceGetUUID(mig, text, sizeof(text)), NVML_SUCCESS);
        assert_string_equal(text, UUID "0");
        assert_int_equal(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS);
        assert_ptr_equal(found, mig);
        assert_int_equal(nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_SUCCESS);
        assert_int_equal(attributes.multiprocessorCount, 32); /* two of three slices */
        state_write_profile(fixture->state_page, state_slot_of_profile(0, 0), &one);
        assert_int_equal(nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_SUCCESS);
        assert_int_equal(attributes.multiprocessorCount, 28); /* a slice alone has less */
        assert_int_equal(attributes.gpuInstanceSliceCount, 3);
        assert_int_equal(attributes.computeInstanceSliceCount, 2);
        assert_int_equal(attributes.memorySizeMB, 70 << 10);
        assert_int_equal(nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
        assert_true(memory.total == 70 * GIB && memory.used == 0);
        assert_int_equal(nvmlDeviceGetBAR1MemoryInfo(mig, &bar1), NVML_SUCCESS);
        assert_true(bar1.bar1Total == 128 * GIB);
}

static void test_most_questions_are_not_for_mig_devices(void **state)
{
        nvmlUtilization_t utilization;
        unsigned int number, count = 0;
        nvmlDevice_t mig, found;
        nvmlDeviceAttributes_t attributes;

        (void)state;
        mig = get_mig(0);
        assert_int_equal(nvmlDeviceGetUtilizationRates(mig, &utilization),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMaxMigDeviceCount(mig, &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMaxMigDeviceCount(device_0(), &number), NVML_SUCCESS);
        assert_int_equal(number, 7);
        assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(device_0(), 1, &found),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlDeviceGetGpuInstanceId(device_0(), &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetAttributes(device_0(), &attributes),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(mig, &count, NULL), NVML_SUCCESS);
        assert_int_equal(count, 0);
        state_write_compute_instance(fixture->state_page, FIRST_AT, NULL);
        assert_int_equal(nvmlDeviceGetGpuInstanceId(mig, &number), NVML_ERROR_INVALID_ARGUMENT);
}

/* What the manager does with a change. */

static void make_compute_instance(void)
{
        put_compute_instance(FIRST_AT + 5, 2, 1, 0, 2);
}

static void make_gpu_instance(void)
{
        struct state_gpu_instance record = part;

        record.id = 6;
        record.placement_start = 4;
        state_write_gpu_instance(fixture->state_page, PART_AT + 1, &record);
}

static struct fake_manager *play(const struct fake_step *step)
{
        struct fake_manager *fake = fake_manager_new(step, 1);

        setenv("OPENVGPU_RUN", fake_manager_get_directory(fake), 1);
        return fake;
}

#define DEVICE "'device':'" FIXTURE_GPU_0_UUID "'"

static void test_a_compute_instance_is_made_by_the_manager(void **state)
{
        const struct fake_step step = { .method = "CreateComputeInstance",
                                        .answers = { "{'parameters':{'id':2}}" },
                                        .before = make_compute_instance };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = play(&step);
        const nvmlComputeInstancePlacement_t place = { .start = 0, .size = 2 }, wide = { 0, 3 };
        nvmlGpuInstance_t gpu_instance = get_part();
        nvmlComputeInstanceInfo_t info;
        nvmlComputeInstance_t handle;

        (void)state;
        assert_int_equal(
                nvmlGpuInstanceCreateComputeInstanceWithPlacement(gpu_instance, 1, &wide, &handle),
                NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(
                nvmlGpuInstanceCreateComputeInstanceWithPlacement(gpu_instance, 1, NULL, &handle),
                NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlGpuInstanceCreateComputeInstance(gpu_instance, 3, &handle),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(
                nvmlGpuInstanceCreateComputeInstanceWithPlacement(gpu_instance, 1, &place, &handle),
                NVML_SUCCESS);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.CreateComputeInstance','parameters':{" DEVICE
                            ",'gpu_instance':5,'profile':1,'start':0}}");
        assert_int_equal(nvmlComputeInstanceGetInfo_v2(handle, &info), NVML_SUCCESS);
        assert_int_equal(info.id, 2);
}

static void test_a_gpu_instance_is_made_by_the_manager(void **state)
{
        const struct fake_step step = { .method = "CreateGpuInstance",
                                        .answers = { "{'parameters':{'id':6}}" },
                                        .before = make_gpu_instance };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = play(&step);
        nvmlGpuInstanceInfo_t info;
        nvmlGpuInstance_t handle;

        (void)state;
        assert_int_equal(nvmlDeviceCreateGpuInstance(device_0(), 77, &handle),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceCreateGpuInstance(device_0(), 9, &handle), NVML_SUCCESS);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.CreateGpuInstance','parameters':{" DEVICE
                            ",'profile':9}}");
        assert_int_equal(nvmlGpuInstanceGetInfo(handle, &info), NVML_SUCCESS);
        assert_int_equal(info.id, 6);
}

static void test_no_room_is_insufficient_resources(void **state)
{
        const struct fake_step step = {
                .answers = { "{'error':'org.openvgpu.NoRoom','parameters':{'message':'full'}}" }
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = play(&step);
        nvmlComputeInstance_t handle = NULL;

        (void)state;
        assert_int_equal(nvmlGpuInstanceCreateComputeInstance(get_part(), 2, &handle),
                         NVML_ERROR_INSUFFICIENT_RESOURCES);
        assert_non_null(strstr(fake_manager_get_call(fake, 0), "CreateComputeInstance"));
        assert_null(handle);
}

static void test_instances_are_ended_by_the_manager(void **state)
{
        const struct fake_step compute = { .method = "DestroyComputeInstance",
                                           .answers = { "{'parameters':{'id':4}}" } };
        const struct fake_step whole_part = {
                .method = "DestroyGpuInstance",
                .answers = { "{'error':'org.openvgpu.InUse','parameters':{}}" }
        };
        struct fake_manager *fake;
        nvmlComputeInstance_t handle;

        (void)state;
        assert_int_equal(nvmlGpuInstanceGetComputeInstanceById(get_part(), 4, &handle),
                         NVML_SUCCESS);
        fake = play(&compute);
        assert_int_equal(nvmlComputeInstanceDestroy(handle), NVML_SUCCESS);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.DestroyComputeInstance','parameters':{" DEVICE
                            ",'gpu_instance':5,'compute_instance':4}}");
        fake_manager_free(fake);
        fake = play(&whole_part);
        assert_int_equal(nvmlGpuInstanceDestroy(get_part()), NVML_ERROR_IN_USE);
        fake_manager_free(fake);
        assert_int_equal(nvmlComputeInstanceDestroy(NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlGpuInstanceDestroy(NULL), NVML_ERROR_INVALID_ARGUMENT);
}

/* Profiles are told by a device that can be cut, whether it is or not. */
static void test_profiles_do_not_depend_on_the_mode(void **state)
{
        nvmlGpuInstanceProfileInfo_t info;
        struct state_device device;
        unsigned int count = 0;

        (void)state;
        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.mig = device.mig_pending = 0;
        state_write_device(fixture->state_page, 0, &device);
        assert_int_equal(nvmlDeviceGetGpuInstanceProfileInfo(device_0(), 2, &info), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetGpuInstancePossiblePlacements_v2(device_0(), 9, NULL, &count),
                         NVML_SUCCESS);
        assert_int_equal(count, 2);
        assert_int_equal(nvmlDeviceGetGpuInstanceRemainingCapacity(device_0(), 9, &count),
                         NVML_ERROR_NOT_SUPPORTED);
}

int main(void)
{
#define with_mig(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_mig(test_a_gpu_instance_has_profiles_for_compute_instances),
                with_mig(test_compute_instances_are_listed_and_found),
                with_mig(test_a_compute_instance_is_a_device),
                with_mig(test_most_questions_are_not_for_mig_devices),
                with_mig(test_a_compute_instance_is_made_by_the_manager),
                with_mig(test_a_gpu_instance_is_made_by_the_manager),
                with_mig(test_no_room_is_insufficient_resources),
                with_mig(test_instances_are_ended_by_the_manager),
                with_mig(test_profiles_do_not_depend_on_the_mode),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
