/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations under the gate: they look like the driver's own, and the quota is exact. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/memory.h"

static uint64_t used(const struct instance_page *page)
{
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];

        return slot->used[INSTANCE_PAGE_MOVABLE] + slot->used[INSTANCE_PAGE_FIXED];
}

FAKE_TEST(test_ten_thousand_small_allocations_cost_six_mebibytes)
{
        struct instance_page *page = fake_guest_start(GIB);
        static CUdeviceptr pointer[10000];

        for (int i = 0; i < 10000; i++) {
                check(cuMemAlloc_v2(&pointer[i], 256) == CUDA_SUCCESS);
                check(pointer[i] % 512 == 0); /* what a texture wants */
        }
        check(used(page) == 6 * MIB);
        check(page->slot[FAKE_SLOT].n_allocations == 10000);
        for (int i = 0; i < 10000; i++)
                check(cuMemFree_v2(pointer[i]) == CUDA_SUCCESS);
        check(used(page) == 2 * MIB); /* one empty block is kept */
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
        check(used(page) == 64 * MIB);
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
        check(used(page) <= 2 * MIB);
        check(page->slot[FAKE_SLOT].peak <= 200 * MIB);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuMemAlloc_v2(&all, 200 * MIB) == CUDA_SUCCESS);
        check(used(page) == 200 * MIB);
}

/* The driver's answers for an ordinary allocation, of which ours must not be told apart. */
static void compare_answers(CUdeviceptr ours, CUdeviceptr native, size_t size)
{
        static const CUpointer_attribute alike[] = {
                CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_MAPPED,
                CU_POINTER_ATTRIBUTE_HOST_POINTER,   CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        };
        CUdeviceptr base;
        size_t range;

        for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
                uint64_t a = 0, b = 0;

                check(cuPointerGetAttribute(&a, alike[i], ours) ==
                      DRIVER(cuPointerGetAttribute)(&b, alike[i], native));
                if (a != b)
                        fprintf(stderr, "attribute %d: %lx, native %lx\n", alike[i], a, b);
                check(a == b);
        }
        for (size_t offset = 0; offset < size; offset += size / 3 + 1) {
                check(cuMemGetAddressRange_v2(&base, &range, ours + offset) == CUDA_SUCCESS);
                check(base == ours && range == size);
                check(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                            ours + offset) == CUDA_SUCCESS);
                check(base == ours);
        }
}

FAKE_TEST(test_questions_about_a_pointer_are_answered_as_for_ordinary_memory)
{
        static const size_t sizes[] = { 1, 300, 4096, 700000, MIB, 2 * MIB, 4 * MIB + 12345 };

        fake_guest_start(GIB);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                CUdeviceptr ours, native, base;
                uint64_t value;
                size_t range;

                check(cuMemAlloc_v2(&ours, sizes[i]) == CUDA_SUCCESS);
                check(DRIVER(cuMemAlloc_v2)(&native, sizes[i]) == CUDA_SUCCESS);
                compare_answers(ours, native, sizes[i]);
                check(cuMemGetAddressRange_v2(&base, &range, ours + sizes[i]) ==
                      CUDA_ERROR_NOT_FOUND);
                check(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                            ours + sizes[i]) == CUDA_ERROR_INVALID_VALUE);
                check(cuMemFree_v2(ours) == CUDA_SUCCESS);
                check(cuMemGetAddressRange_v2(&base, &range, ours) != CUDA_SUCCESS);
        }
}

FAKE_TEST(test_several_attributes_at_once_are_corrected_as_well)
{
        CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                             CU_POINTER_ATTRIBUTE_CONTEXT,
                                             CU_POINTER_ATTRIBUTE_RANGE_START_ADDR };
        CUdeviceptr pointer, range_start;
        CUcontext context, current;
        size_t size;
        void *data[] = { &size, &context, &range_start };

        fake_guest_start(GIB);
        check(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 777) == CUDA_SUCCESS);
        check(cuPointerGetAttributes(3, attributes, data, pointer + 5) == CUDA_SUCCESS);
        check(size == 777 && context == current && range_start == pointer);
}

FAKE_TEST(test_each_allocation_has_a_buffer_id_of_its_own)
{
        unsigned long long id[3];
        CUdeviceptr pointer[3];

        fake_guest_start(GIB);
        for (int i = 0; i < 3; i++) {
                check(cuMemAlloc_v2(&pointer[i], i < 2 ? 512 : 4 * MIB) == CUDA_SUCCESS);
                check(cuPointerGetAttribute(&id[i], CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer[i]) ==
                      CUDA_SUCCESS);
        }
        check(id[0] != id[1] && id[1] != id[2] && id[0] != id[2]);
}

FAKE_TEST(test_what_is_wrong_with_ordinary_memory_is_wrong_with_ours)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, 3 };
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;

        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer + 512) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemUnmap(pointer, 4 * MIB) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAddressFree(pointer, 4 * MIB) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemSetAccess(pointer, 4 * MIB, &access, 1) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemRetainAllocationHandle(&handle, (void *)pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemsetD8_v2(pointer, 1, 4 * MIB) == CUDA_SUCCESS); /* all still there */
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFree_v2(0) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 0) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(NULL, 1) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(&pointer, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
}

FAKE_TEST(test_the_driver_is_not_asked_about_addresses_that_come_again)
{
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemAddressFree@1=999", 1) == 0);
        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemAddressFree(pointer, 4 * MIB) == CUDA_ERROR_INVALID_VALUE);
}

FAKE_TEST(test_a_failing_driver_call_leaves_nothing_behind)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL",
                     "cuMemAddressReserve@1=2,cuMemAddressReserve@2=2," /* the arena's, and one */
                     "cuMemCreate@1=2,cuMemMap@1=2,cuMemSetAccess@1=2",
                     1) == 0);
        page = fake_guest_start(16 * MIB);
        for (int i = 0; i < 4; i++) {
                check(cuMemAlloc_v2(&pointer, 16 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
                check(used(page) == 0);
        }
        check(cuMemAlloc_v2(&pointer, 16 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 1, 16 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(used(page) == 0);
}

FAKE_TEST(test_memory_is_kept_when_the_device_fails_before_it_can_be_freed)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuCtxSynchronize@1=999", 1) == 0);
        page = fake_guest_start(16 * MIB);
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_UNKNOWN);
        check(used(page) == 8 * MIB);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(used(page) == 0);
}

FAKE_TEST(test_memory_that_the_driver_does_not_unmap_is_in_nobodys_way)
{
        struct instance_page *page;
        CUdeviceptr stays, pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemUnmap@1=999", 1) == 0);
        page = fake_guest_start(16 * MIB);
        check(cuMemAlloc_v2(&stays, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(stays) == CUDA_ERROR_UNKNOWN);
        check(used(page) == 4 * MIB && page->slot[FAKE_SLOT].n_allocations == 1);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(stays, 1, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemFree_v2(stays) == CUDA_SUCCESS);
        check(used(page) == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
}

FAKE_TEST(test_an_address_that_cannot_be_unmapped_is_not_given_out_again)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemSetAccess@1=999,cuMemUnmap@1=999,cuMemUnmap@2=999",
                     1) == 0);
        page = fake_guest_start(16 * MIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_ERROR_UNKNOWN);
        check(used(page) == 4 * MIB); /* the device does hold it */
        check(cuMemAlloc_v2(&pointer, 100) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS); /* where its block is not unmapped */
        check(used(page) == 6 * MIB && page->slot[FAKE_SLOT].n_allocations == 0);
        fake_context();
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 1, 4 * MIB) == CUDA_SUCCESS);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(used(page) == 6 * MIB);
}

static __typeof__(&cuMemRelease) real_release;
static pthread_barrier_t both_inside;

static CUresult release_when_both_are_inside(CUmemGenericAllocationHandle handle)
{
        pthread_barrier_wait(&both_inside);
        return real_release(handle);
}

static void *release(void *argument)
{
        check(cuMemRelease(*(CUmemGenericAllocationHandle *)argument) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_two_threads_may_release_the_two_handles_of_one_allocation)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemGenericAllocationHandle handles[2];
        pthread_t threads[2];
        CUdeviceptr address;

        check(cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemCreate(&handles[0], 2 * MIB, &prop, 0) == CUDA_SUCCESS);
        check(cuMemMap(address, 2 * MIB, 0, handles[0], 0) == CUDA_SUCCESS);
        check(cuMemRetainAllocationHandle(&handles[1], (void *)(uintptr_t)address) == CUDA_SUCCESS);
        check(cuMemUnmap(address, 2 * MIB) == CUDA_SUCCESS);

        check(pthread_barrier_init(&both_inside, NULL, 2) == 0);
        real_release = DRIVER(cuMemRelease);
        entry_real[ENTRY_cuMemRelease] = (entry_function)release_when_both_are_inside;
        for (int i = 0; i < 2; i++)
                check(pthread_create(&threads[i], NULL, release, &handles[i]) == 0);
        for (int i = 0; i < 2; i++)
                check(pthread_join(threads[i], NULL) == 0);
        entry_real[ENTRY_cuMemRelease] = (entry_function)real_release;
        check(used(page) == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuMemRelease(handles[0]) == CUDA_ERROR_INVALID_VALUE);
        check(used(page) == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
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
        check(used(page) == 10 * MIB);
        check(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        check(used(page) == 0);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        check(used(page) == 0);
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
        check(used(page) == 0);
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

/* As the test before, on a device without a byte left. */
FAKE_TEST(test_memory_may_be_freed_in_a_capture_when_the_device_is_full)
{
        CUdeviceptr pointer;
        CUstream stream;
        CUgraph graph;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemAlloc_v2@1=2,cuMemAlloc_v2@2=2", 1) == 0);
        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) != CUDA_SUCCESS); /* refused, as the driver refuses it */
        check(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
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
        _Atomic uint64_t *fixed = &page->slot[FAKE_SLOT].used[INSTANCE_PAGE_FIXED];
        CUmemGenericAllocationHandle handle, again;
        CUdeviceptr address;

        handle = create(8 * MIB, CUDA_SUCCESS);
        check(*fixed == 8 * MIB);
        check(cuMemAddressReserve(&address, 8 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemMap(address, 8 * MIB, 0, handle, 0) == CUDA_SUCCESS);
        check(cuMemRelease(handle) == CUDA_SUCCESS);
        check(*fixed == 8 * MIB);
        check(cuMemRetainAllocationHandle(&again, (void *)address) == CUDA_SUCCESS);
        check(cuMemUnmap(address, 8 * MIB) == CUDA_SUCCESS);
        check(*fixed == 8 * MIB);
        check(cuMemRelease(again) == CUDA_SUCCESS);
        check(*fixed == 0);
        check(cuMemAddressFree(address, 8 * MIB) == CUDA_SUCCESS);
        create(66 * MIB, CUDA_ERROR_OUT_OF_MEMORY);
        check(*fixed == 0);
}

static void get_ticket(struct gate_ticket *ret_ticket, CUdeviceptr pointer)
{
        CUipcMemHandle handle;

        check(cuIpcGetMemHandle(&handle, pointer) == CUDA_SUCCESS);
        memcpy(ret_ticket, &handle, sizeof(*ret_ticket));
        check(ret_ticket->process.mark == GATE_TICKET_MARK);
        check(ret_ticket->process.slot == FAKE_SLOT);
}

static CUipcMemHandle handle_of(const struct gate_ticket *ticket)
{
        CUipcMemHandle handle;

        memcpy(&handle, ticket, sizeof(handle));
        return handle;
}

FAKE_TEST(test_a_handle_of_legacy_ipc_is_a_ticket_that_its_own_process_cannot_open)
{
        struct gate_ticket large, small, again;
        CUdeviceptr pointer, opened;

        fake_guest_start(64 * MIB);
        check(cuMemAlloc_v2(&opened, 4096) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 4096) == CUDA_SUCCESS);
        get_ticket(&small, pointer);
        check(small.offset == pointer - opened && small.size == 4096);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        get_ticket(&large, pointer);
        get_ticket(&again, pointer + 1000);
        check(memcmp(&large, &again, sizeof(large)) == 0);
        check(large.offset == 0 && large.size == 4 * MIB);
        check(memcmp(large.name, small.name, sizeof(large.name)) != 0);
        check(cuIpcOpenMemHandle_v2(&opened, handle_of(&large), 1) == CUDA_ERROR_INVALID_CONTEXT);
        check(cuIpcOpenMemHandle_v2(&opened, handle_of(&large), 0) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_the_variable_for_legacy_ipc_makes_memory_native_and_counts_it)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        check(setenv("OPENVGPU_NATIVE_IPC", "1", 1) == 0);
        page = fake_guest_start(64 * MIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB + 1) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_FIXED] == 4 * MIB + 1);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 0);
        check(cuMemAlloc_v2(&pointer, 60 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(used(page) == 0);
}

FAKE_TEST(test_memory_of_a_peer_can_be_used_once_that_is_enabled)
{
        CUdeviceptr before, after, here;
        CUcontext context[2];
        unsigned char value;
        int n_devices;

        fake_host("2xH200:1G");
        check(cuInit(0) == CUDA_SUCCESS);
        check(cuDeviceGetCount(&n_devices) == CUDA_SUCCESS);
        if (n_devices < 2)
                return; /* a real machine with one */
        for (int i = 0; i < 2; i++)
                check(cuDevicePrimaryCtxRetain(&context[i], i) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[1]) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&before, 4 * MIB) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&here, 4 * MIB) == CUDA_SUCCESS);
        check(cuCtxEnablePeerAccess(context[1], 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[1]) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&after, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(before, 11, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(after, 22, 4 * MIB) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        check(cuMemcpyDtoD_v2(here, before, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&value, here + 4 * MIB - 1, 1) == CUDA_SUCCESS && value == 11);
        check(cuMemcpyDtoD_v2(here, after, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&value, here, 1) == CUDA_SUCCESS && value == 22);
}

static CUdeviceptr made_meanwhile;

static void *make(void *context)
{
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&made_meanwhile, 4 * MIB) == CUDA_SUCCESS);
        return NULL;
}

/* It has its memory, and is not yet among those that are there. */
FAKE_TEST(test_memory_that_is_made_while_peer_access_is_enabled_has_it)
{
        const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
        char directory[] = "/tmp/vgpu-test-XXXXXX", path[64];
        unsigned long long flags = 0;
        CUcontext context[2];
        pthread_t thread;

        if (!fake_is_simulated())
                return;
        check(mkdtemp(directory));
        check(setenv("OPENVGPU_FAULT_DIR", directory, 1) == 0);
        check(setenv("OPENVGPU_FAULT", "gate-made=pause", 1) == 0);
        fake_host("2xH200:1G");
        check(cuInit(0) == CUDA_SUCCESS);
        for (int i = 0; i < 2; i++)
                check(cuDevicePrimaryCtxRetain(&context[i], i) == CUDA_SUCCESS);
        check(pthread_create(&thread, NULL, make, context[1]) == 0);
        snprintf(path, sizeof(path), "%s/gate-made", directory);
        while (access(path, F_OK) < 0)
                check(usleep(1000) == 0);
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        check(cuCtxEnablePeerAccess(context[1], 0) == CUDA_SUCCESS);
        check(unlink(path) == 0 && rmdir(directory) == 0);
        check(pthread_join(thread, NULL) == 0);
        check(DRIVER(cuMemGetAccess)(&flags, &location, made_meanwhile) == CUDA_SUCCESS);
        check(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
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
                cmocka_unit_test(
                        test_questions_about_a_pointer_are_answered_as_for_ordinary_memory),
                cmocka_unit_test(test_several_attributes_at_once_are_corrected_as_well),
                cmocka_unit_test(test_each_allocation_has_a_buffer_id_of_its_own),
                cmocka_unit_test(test_what_is_wrong_with_ordinary_memory_is_wrong_with_ours),
                cmocka_unit_test(test_the_driver_is_not_asked_about_addresses_that_come_again),
                cmocka_unit_test(test_a_failing_driver_call_leaves_nothing_behind),
                cmocka_unit_test(test_memory_is_kept_when_the_device_fails_before_it_can_be_freed),
                cmocka_unit_test(test_memory_that_the_driver_does_not_unmap_is_in_nobodys_way),
                cmocka_unit_test(test_an_address_that_cannot_be_unmapped_is_not_given_out_again),
                cmocka_unit_test(test_two_threads_may_release_the_two_handles_of_one_allocation),
                cmocka_unit_test(test_pitched_memory_has_the_drivers_pitch_and_can_be_moved),
                cmocka_unit_test(test_the_driver_is_asked_for_its_pitch_once),
                cmocka_unit_test(test_memory_ends_with_its_context),
                cmocka_unit_test(test_memory_that_only_the_driver_can_move_counts_as_fixed),
                cmocka_unit_test(
                        test_memory_of_the_virtual_memory_calls_counts_until_handle_and_mapping_are_gone),
                cmocka_unit_test(test_arrays_count_with_all_their_levels),
                cmocka_unit_test(test_memory_may_be_freed_while_another_thread_captures),
                cmocka_unit_test(test_memory_may_be_freed_in_a_capture_when_the_device_is_full),
                cmocka_unit_test(
                        test_a_handle_of_legacy_ipc_is_a_ticket_that_its_own_process_cannot_open),
                cmocka_unit_test(
                        test_the_variable_for_legacy_ipc_makes_memory_native_and_counts_it),
                cmocka_unit_test(test_memory_of_a_peer_can_be_used_once_that_is_enabled),
                cmocka_unit_test(test_memory_that_is_made_while_peer_access_is_enabled_has_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
