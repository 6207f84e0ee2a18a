/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations under the gate: the quota is exact. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/mapping.h"

FAKE_TEST(test_ten_thousand_small_allocations_cost_six_mebibytes)
{
        struct instance_page *page = fake_guest_start(GIB);
        static CUdeviceptr pointer[10000];

        for (int i = 0; i < 10000; i++) {
                check(cuMemAlloc_v2(&pointer[i], 256) == CUDA_SUCCESS);
                check(pointer[i] % 512 == 0); /* what a texture wants */
        }
        check(fake_guest_used(page) == 6 * MIB);
        check(page->slot[FAKE_SLOT].n_allocations == 10000);
        for (int i = 0; i < 10000; i++)
                check(cuMemFree_v2(pointer[i]) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 2 * MIB); /* one empty block is kept */
        check(page->slot[FAKE_SLOT].n_allocations == 0);
}

FAKE_TEST(test_over_the_quota_is_out_of_memory_and_the_program_goes_on)
{
        struct instance_page *page = fake_guest_start(64 * MIB);
        CUdeviceptr a, b;

        check(cuMemAlloc_v2(&a, 60 * MIB) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&b, 6 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(page->slot[FAKE_SLOT].n_refused == 1);
        check(cuMemAlloc_v2(&b, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(a) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&a, 60 * MIB) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 64 * MIB);
        check(page->slot[FAKE_SLOT].peak == 64 * MIB);
}

FAKE_TEST(test_an_empty_block_makes_room_for_what_would_be_over_the_quota)
{
        CUdeviceptr pointer;

        fake_guest_start(8 * MIB);
        check(cuMemAlloc_v2(&pointer, 100) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
}

FAKE_TEST(test_what_other_processes_use_counts)
{
        struct instance_page *page = fake_guest_start(64 * MIB);
        size_t free_bytes, total;
        CUdeviceptr pointer;

        page->slot[7].used[INSTANCE_PAGE_FIXED] = 32 * MIB;
        check(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
        check(free_bytes == 32 * MIB && total == 64 * MIB);
        check(cuMemAlloc_v2(&pointer, 33 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        page->slot[7].used[INSTANCE_PAGE_FIXED] = UINT64_MAX; /* garbage */
        page->slot[8].used[INSTANCE_PAGE_FIXED] = 5;
        check(cuMemAlloc_v2(&pointer, MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && free_bytes == 0);
        page->slot[7].used[INSTANCE_PAGE_FIXED] = 0;
        check(cuMemAlloc_v2(&pointer, 33 * MIB) == CUDA_SUCCESS);
}

FAKE_TEST(test_the_device_is_as_large_as_the_quota)
{
        struct instance_page *page = fake_guest_start(100 * MIB);
        size_t free_bytes, total;

        check(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == 100 * MIB);
        check(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
        check(free_bytes == 100 * MIB && total == 100 * MIB);
        page->quota = 50 * MIB; /* the manager may change it at any time */
        check(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
        check(free_bytes == 50 * MIB && total == 50 * MIB);
}

#define THREADS 8
#define LIVE    40

static void *allocate_at_random(void *argument)
{
        unsigned int seed = (unsigned int)(uintptr_t)argument;
        CUdeviceptr pointer[LIVE] = { 0 };

        fake_context();
        for (int round = 0; round < 600; round++) {
                int i = rand_r(&seed) % LIVE;
                uint64_t size = 1 + (uint64_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 4096 : 6 * MIB);

                if (pointer[i]) {
                        check(cuMemFree_v2(pointer[i]) == CUDA_SUCCESS);
                        pointer[i] = 0;
                } else if (cuMemAlloc_v2(&pointer[i], size) != CUDA_SUCCESS) {
                        pointer[i] = 0; /* over the quota */
                } else {
                        check(cuMemsetD8_v2(pointer[i], (unsigned char)i, size) == CUDA_SUCCESS);
                }
        }
        for (int i = 0; i < LIVE; i++)
                if (pointer[i])
                        check(cuMemFree_v2(pointer[i]) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_the_sum_is_exact_after_thousands_of_allocations_by_many_threads)
{
        struct instance_page *page = fake_guest_start(200 * MIB);
        pthread_t thread[THREADS];
        CUdeviceptr all;

        for (uintptr_t i = 0; i < THREADS; i++)
                check(pthread_create(&thread[i], NULL, allocate_at_random, (void *)(i + 1)) == 0);
        for (int i = 0; i < THREADS; i++)
                check(pthread_join(thread[i], NULL) == 0);
        check(fake_guest_used(page) <= 2 * MIB);
        check(page->slot[FAKE_SLOT].peak <= 200 * MIB);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuMemAlloc_v2(&all, 200 * MIB) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 200 * MIB);
}

FAKE_TEST(test_pitched_memory_has_the_drivers_pitch_and_can_be_moved)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr ours, native;
        size_t pitch, native_pitch;

        check(DRIVER(cuMemAllocPitch_v2)(&native, &native_pitch, 1000, 3000, 4) == CUDA_SUCCESS);
        check(cuMemAllocPitch_v2(&ours, &pitch, 1000, 3000, 4) == CUDA_SUCCESS);
        check(pitch == native_pitch);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] >= 3000 * pitch);
        check(cuMemAllocPitch_v2(&ours, &pitch, 1000, 3000, 3) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAllocPitch_v2(&ours, &pitch, SIZE_MAX, 2, 4) == CUDA_ERROR_INVALID_VALUE);
}

static __typeof__(&cuMemAllocPitch_v2) real_pitch;
static _Atomic int n_native_rows;

static CUresult count_rows(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                           unsigned int element_size)
{
        n_native_rows++;
        return real_pitch(pointer, pitch, width, height, element_size);
}

/* A native row is given back, which waits for the device. */
FAKE_TEST(test_the_driver_is_asked_for_its_pitch_once)
{
        CUdeviceptr pointer;
        size_t pitch;

        fake_guest_start(GIB);
        real_pitch = DRIVER(cuMemAllocPitch_v2);
        entry_real[ENTRY_cuMemAllocPitch_v2] = (entry_function)count_rows;
        for (unsigned int i = 0; i < 9; i++) {
                check(cuMemAllocPitch_v2(&pointer, &pitch, 1 + 600 * i, 10, 4u << i % 3) ==
                      CUDA_SUCCESS);
                check(pitch % 512 == 0 && pitch - (1 + 600 * i) < 512);
                check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        }
        check(n_native_rows == 3); /* for each size of element */
        check(cuMemAllocPitch_v2(&pointer, &pitch, 1, 1, 5) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAllocPitch_v2(&pointer, &pitch, 1, 1, 5) == CUDA_ERROR_INVALID_VALUE);
        check(n_native_rows == 5);
}

FAKE_TEST(test_memory_ends_with_its_context)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr pointer;
        CUcontext context;

        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 100) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 10 * MIB);
        check(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_memory_that_only_the_driver_can_move_counts_as_fixed)
{
        struct instance_page *page = fake_guest_start(64 * MIB);
        _Atomic uint64_t *fixed = &page->slot[FAKE_SLOT].used[INSTANCE_PAGE_FIXED];
        CUdeviceptr pointer;

        check(cuMemAllocManaged(&pointer, 12 * MIB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        check(*fixed == 12 * MIB);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(*fixed == 0);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS); /* is allowed as well */
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_arrays_count_with_all_their_levels)
{
        const CUDA_ARRAY_DESCRIPTOR flat = { 1024, 512, CU_AD_FORMAT_FLOAT, 4 };
        const CUDA_ARRAY3D_DESCRIPTOR deep = { 256, 256, 0, CU_AD_FORMAT_HALF, 2, 0 };
        struct instance_page *page = fake_guest_start(64 * MIB);
        _Atomic uint64_t *fixed = &page->slot[FAKE_SLOT].used[INSTANCE_PAGE_FIXED];
        CUmipmappedArray levels;
        CUarray array;

        check(cuArrayCreate_v2(&array, &flat) == CUDA_SUCCESS);
        check(*fixed == 1024 * 512 * 4 * 4);
        check(cuMipmappedArrayCreate(&levels, &deep, 3) == CUDA_SUCCESS);
        check(*fixed == 8 * MIB + (256 * 256 + 128 * 128 + 64 * 64) * 4);
        check(cuMipmappedArrayDestroy(levels) == CUDA_SUCCESS);
        check(cuArrayDestroy(array) == CUDA_SUCCESS);
        check(*fixed == 0);
        page->quota = MIB;
        check(cuArrayCreate_v2(&array, &flat) == CUDA_ERROR_OUT_OF_MEMORY);
}

static void *allocate_and_free_relaxed(void *argument)
{
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        CUdeviceptr pointer;

        check(cuCtxSetCurrent(argument) == CUDA_SUCCESS);
        check(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
        for (int i = 0; i < 2; i++) {
                check(cuMemAlloc_v2(&pointer, i ? 1000 : 4 * MIB) == CUDA_SUCCESS);
                check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        }
        return NULL;
}

FAKE_TEST(test_memory_may_be_freed_while_another_thread_captures)
{
        CUcontext context;
        pthread_t thread;
        CUstream stream;
        CUgraph graph;

        fake_guest_start(GIB);
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(pthread_create(&thread, NULL, allocate_and_free_relaxed, context) == 0);
        check(pthread_join(thread, NULL) == 0);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(graph);
}

static CUmemGenericAllocationHandle create(uint64_t size, CUresult expected)
{
        CUmemAllocationProp prop;
        CUmemGenericAllocationHandle handle = 0;

        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        check(cuMemCreate(&handle, size, &prop, 0) == expected);
        return handle;
}

FAKE_TEST(test_memory_of_the_virtual_memory_calls_counts_until_handle_and_mapping_are_gone)
{
        struct instance_page *page = fake_guest_start(64 * MIB);
        _Atomic uint64_t *movable = &page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE];
        CUmemGenericAllocationHandle handle, again;
        CUdeviceptr address;

        handle = create(8 * MIB, CUDA_SUCCESS);
        check(*movable == 8 * MIB);
        check(cuMemAddressReserve(&address, 8 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemMap(address, 8 * MIB, 0, handle, 0) == CUDA_SUCCESS);
        check(cuMemRelease(handle) == CUDA_SUCCESS);
        check(*movable == 8 * MIB);
        check(cuMemRetainAllocationHandle(&again, (void *)address) == CUDA_SUCCESS);
        check(cuMemUnmap(address, 8 * MIB) == CUDA_SUCCESS);
        check(*movable == 8 * MIB);
        check(cuMemRelease(again) == CUDA_SUCCESS);
        check(*movable == 0);
        check(cuMemAddressFree(address, 8 * MIB) == CUDA_SUCCESS);
        create(66 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
        check(*movable == 0);
}

static struct mapping *new_mapping(CUdeviceptr address, uint64_t size)
{
        struct mapping *mapping = calloc(1, sizeof(*mapping));

        check(mapping != NULL);
        mapping->address = address;
        mapping->size = size;
        return mapping;
}

/* As of a process with several large devices; what is behind the arena may be the program's. */
FAKE_TEST(test_a_full_arena_gives_out_no_address_behind_its_end)
{
        const uint64_t arena_size = (uint64_t)1 << 40;
        struct mapping *all = new_mapping(0, arena_size), *one = new_mapping(0, 2 * MIB);

        (void)fake_guest_start(GIB);
        mapping_arena_open();
        check(mapping_table_place(all) == 0);
        check(mapping_table_place(one) == -ENOMEM);
        one->address = all->address + arena_size;
        one->is_outside = true;
        check(!mapping_arena_overlaps(one->address, one->size));
        check(mapping_table_insert(one) == 0);
        check(mapping_table_place(new_mapping(0, 2 * MIB)) == -ENOMEM);
        mapping_table_remove(one);
        mapping_table_remove(all);
}

/* As a real driver answers of all that is mapped by its virtual-memory calls. */
static CUresult answer_with_flags(unsigned int *flags, void *pointer)
{
        (void)pointer;
        *flags = 0;
        return CUDA_SUCCESS;
}

static CUresult answer_with_pointer(CUdeviceptr *device, void *pointer, unsigned int flags)
{
        (void)flags;
        *device = (CUdeviceptr)(uintptr_t)pointer;
        return CUDA_SUCCESS;
}

FAKE_TEST(test_device_memory_is_no_memory_of_the_host)
{
        CUdeviceptr pointer, seen;
        __typeof__(&cuMemHostGetFlags) get_flags = answer_with_flags;
        __typeof__(&cuMemHostGetDevicePointer_v2) get_pointer = answer_with_pointer;
        unsigned int flags;
        void *host;

        (void)fake_guest_start(GIB);
        memcpy(&entry_real[ENTRY_cuMemHostGetFlags], &get_flags, sizeof(get_flags));
        memcpy(&entry_real[ENTRY_cuMemHostGetDevicePointer_v2], &get_pointer, sizeof(get_pointer));
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemAllocHost_v2(&host, 4096) == CUDA_SUCCESS);
        check_answer(cuMemHostGetDevicePointer_v2(&seen, (void *)(uintptr_t)pointer, 0),
                     CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemHostGetFlags(&flags, (void *)(uintptr_t)(pointer + 5)),
                     CUDA_ERROR_INVALID_VALUE);
        check(cuMemHostGetDevicePointer_v2(&seen, host, 0) == CUDA_SUCCESS);
        check(cuMemHostGetFlags(&flags, host) == CUDA_SUCCESS);
        check(cuMemFreeHost(host) == CUDA_SUCCESS && cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ten_thousand_small_allocations_cost_six_mebibytes),
                cmocka_unit_test(test_over_the_quota_is_out_of_memory_and_the_program_goes_on),
                cmocka_unit_test(test_an_empty_block_makes_room_for_what_would_be_over_the_quota),
                cmocka_unit_test(test_what_other_processes_use_counts),
                cmocka_unit_test(test_the_device_is_as_large_as_the_quota),
                cmocka_unit_test(
                        test_the_sum_is_exact_after_thousands_of_allocations_by_many_threads),
                cmocka_unit_test(test_pitched_memory_has_the_drivers_pitch_and_can_be_moved),
                cmocka_unit_test(test_the_driver_is_asked_for_its_pitch_once),
                cmocka_unit_test(test_memory_ends_with_its_context),
                cmocka_unit_test(test_memory_that_only_the_driver_can_move_counts_as_fixed),
                cmocka_unit_test(test_arrays_count_with_all_their_levels),
                cmocka_unit_test(test_memory_may_be_freed_while_another_thread_captures),
                cmocka_unit_test(test_a_full_arena_gives_out_no_address_behind_its_end),
                cmocka_unit_test(test_device_memory_is_no_memory_of_the_host),
                cmocka_unit_test(
                        test_memory_of_the_virtual_memory_calls_counts_until_handle_and_mapping_are_gone),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
