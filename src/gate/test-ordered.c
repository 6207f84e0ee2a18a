/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of pools, in the order of streams: as the driver's, but it can be moved. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

static struct instance_page *page;

static uint64_t movable(void)
{
        return page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE];
}

static uint64_t fixed(void)
{
        return page->slot[FAKE_SLOT].used[INSTANCE_PAGE_FIXED];
}

static CUstream new_stream(void)
{
        CUstream stream;

        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        return stream;
}

/* A stream that does not go on until it is told to. */
static atomic_bool is_held;

static void hold(void *unused)
{
        (void)unused;
        while (atomic_load(&is_held))
                usleep(100);
}

static void hold_stream(CUstream stream)
{
        atomic_store(&is_held, true);
        check(cuLaunchHostFunc(stream, hold, NULL) == CUDA_SUCCESS);
}

static void let_go(CUstream stream)
{
        atomic_store(&is_held, false);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
}

static CUdeviceptr allocate(size_t size, CUstream stream)
{
        CUdeviceptr pointer;

        check(cuMemAllocAsync(&pointer, size, stream) == CUDA_SUCCESS);
        check(pointer % 512 == 0);
        return pointer;
}

static void release(CUdeviceptr pointer, CUstream stream)
{
        check(cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
}

static CUmemoryPool default_pool(void)
{
        CUmemoryPool pool;

        check(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
        return pool;
}

static uint64_t attribute(CUmemoryPool pool, int which)
{
        uint64_t value = 0;

        check(cuMemPoolGetAttribute(pool, which, &value) == CUDA_SUCCESS);
        return value;
}

static void set_threshold(CUmemoryPool pool, uint64_t bytes)
{
        check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes) ==
              CUDA_SUCCESS);
}

static void set(CUmemoryPool pool, int which, int value)
{
        check(cuMemPoolSetAttribute(pool, which, &value) == CUDA_SUCCESS);
}

FAKE_TEST(test_memory_of_pools_moves_away_and_comes_back)
{
        static unsigned char contents[5 * MIB];
        CUdeviceptr large, small;
        CUstream stream;

        page = fake_guest_start(GIB);
        stream = new_stream();
        large = allocate(sizeof(contents), stream);
        small = allocate(1000, stream);
        check(movable() == 8 * MIB && fixed() == 0);
        check(page->slot[FAKE_SLOT].n_allocations == 2);
        check(cuMemsetD8Async(large, 7, sizeof(contents), stream) == CUDA_SUCCESS);
        check(cuMemsetD8Async(small, 9, 1000, stream) == CUDA_SUCCESS);
        fake_guest_move();
        check(cuMemcpyDtoH_v2(contents, large, sizeof(contents)) == CUDA_SUCCESS);
        for (size_t i = 0; i < sizeof(contents); i++)
                check(contents[i] == 7);
        check(cuMemcpyDtoH_v2(contents, small, 1000) == CUDA_SUCCESS);
        for (size_t i = 0; i < 1000; i++)
                check(contents[i] == 9);
        release(large, stream);
        release(small, stream);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(movable() == 0);
}

FAKE_TEST(test_a_stream_has_at_once_what_it_freed_and_another_when_that_is_done)
{
        CUstream first, second;
        CUdeviceptr pointer, other;

        page = fake_guest_start(GIB);
        set_threshold(default_pool(), UINT64_MAX);
        first = new_stream();
        second = new_stream();
        pointer = allocate(4 * MIB, first);
        hold_stream(first);
        release(pointer, first);
        other = allocate(4 * MIB, second);
        check(other != pointer);
        check(allocate(4 * MIB, first) == pointer);
        release(pointer, first);
        let_go(first);
        check(allocate(4 * MIB, second) == pointer);
        check(movable() == 8 * MIB);
}

FAKE_TEST(test_who_had_memory_before_is_waited_for_although_the_next_one_is_through)
{
        CUstream first, second;
        CUdeviceptr pointer;

        page = fake_guest_start(GIB);
        set_threshold(default_pool(), UINT64_MAX);
        first = new_stream();
        second = new_stream();
        pointer = allocate(4 * MIB, first);
        hold_stream(first);
        release(pointer, first);
        check(allocate(4 * MIB, first) == pointer);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS); /* it was never used */
        check(allocate(4 * MIB, second) != pointer);
        let_go(first);
        check(allocate(4 * MIB, second) == pointer);
}

FAKE_TEST(test_a_new_stream_is_not_the_one_whose_handle_it_has)
{
        CUdeviceptr pointer, again;
        CUstream stream;

        page = fake_guest_start(GIB);
        set_threshold(default_pool(), UINT64_MAX);
        set(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
        stream = new_stream();
        pointer = allocate(4 * MIB, stream);
        release(pointer, stream);
        check(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
        for (int i = 0; i < 100; i++) {
                again = allocate(4 * MIB, new_stream());
                check(again != pointer);
        }
}

FAKE_TEST(test_what_is_above_the_threshold_goes_back_when_the_program_waits)
{
        CUmemoryPool pool;
        CUdeviceptr a, b;
        CUstream stream;

        page = fake_guest_start(GIB);
        pool = default_pool();
        stream = new_stream();
        a = allocate(4 * MIB, stream);
        b = allocate(6 * MIB, stream);
        set_threshold(pool, 7 * MIB);
        release(a, stream);
        release(b, stream);
        check(movable() == 10 * MIB);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(movable() <= 6 * MIB && movable() > 0);
        set_threshold(pool, 0);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() == 0);

        set_threshold(pool, UINT64_MAX);
        release(allocate(4 * MIB, stream), stream);
        release(allocate(6 * MIB, stream), stream);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() == 10 * MIB);
        check(cuMemPoolTrimTo(pool, 4 * MIB) == CUDA_SUCCESS);
        check(movable() <= 4 * MIB);
        check(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
        check(movable() == 0);
}

FAKE_TEST(test_a_pool_says_what_is_used_and_reserved)
{
        CUdeviceptr a, b;
        CUmemoryPool pool;
        uint64_t none = 0;

        page = fake_guest_start(GIB);
        pool = default_pool();
        set_threshold(pool, UINT64_MAX);
        a = allocate(4 * MIB, NULL);
        b = allocate(512, NULL);
        check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4 * MIB + 512);
        check(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 6 * MIB);
        release(a, NULL);
        release(b, NULL);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
        check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 4 * MIB + 512);
        check(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 6 * MIB);
        check(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
        check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none) == CUDA_SUCCESS);
        check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
}

FAKE_TEST(test_when_the_quota_is_full_what_is_free_goes_first)
{
        CUdeviceptr pointer;
        CUstream stream;

        page = fake_guest_start(64 * MIB);
        set_threshold(default_pool(), UINT64_MAX);
        stream = new_stream();
        check(cuMemAllocAsync(&pointer, 65 * MIB, stream) == CUDA_ERROR_OUT_OF_MEMORY);
        release(allocate(60 * MIB, stream), stream);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(movable() == 60 * MIB);
        check(cuMemAlloc_v2(&pointer, 40 * MIB) == CUDA_SUCCESS);
        check(movable() == 40 * MIB);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        release(allocate(30 * MIB, stream), stream);
        pointer = allocate(62 * MIB, stream); /* of another size, and just freed */
        check(movable() == 62 * MIB);
        release(pointer, stream);
}

FAKE_TEST(test_when_the_quota_is_full_one_stream_waits_for_another)
{
        static const unsigned char wanted = 2;
        CUstream first, second;
        CUdeviceptr pointer;
        unsigned char value;

        page = fake_guest_start(64 * MIB);
        set_threshold(default_pool(), UINT64_MAX);
        first = new_stream();
        second = new_stream();
        pointer = allocate(60 * MIB, first);
        hold_stream(first);
        check(cuMemsetD8Async(pointer, 1, 60 * MIB, first) == CUDA_SUCCESS);
        release(pointer, first);
        check(allocate(60 * MIB, second) == pointer);
        check(cuMemsetD8Async(pointer, wanted, 60 * MIB, second) == CUDA_SUCCESS);
        check(cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
        let_go(first);
        check(cuStreamSynchronize(second) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&value, pointer + 50 * MIB, 1) == CUDA_SUCCESS);
        check(value == wanted);
}

FAKE_TEST(test_frees_do_not_wait_and_may_be_of_any_kind)
{
        CUdeviceptr pointer, plain;
        CUstream stream;

        page = fake_guest_start(GIB);
        stream = new_stream();
        pointer = allocate(4 * MIB, stream);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFreeAsync(pointer, stream) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemAlloc_v2(&plain, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFreeAsync(plain, stream) == CUDA_SUCCESS);
        pointer = allocate(4 * MIB, stream);
        hold_stream(stream);
        release(pointer, stream);
        check(cuMemFreeAsync(pointer, stream) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFreeAsync(pointer + 512, stream) == CUDA_ERROR_INVALID_VALUE);
        let_go(stream);
        check(movable() == 0);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
}

FAKE_TEST(test_a_pointer_says_which_pool_it_is_of)
{
        CUmemoryPool pool = NULL, none = NULL;
        CUdeviceptr pointer, plain, base;
        CUcontext context;
        size_t size;

        page = fake_guest_start(GIB);
        pointer = allocate(5000, NULL);
        check(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer + 4999) ==
              CUDA_SUCCESS);
        check(pool == default_pool());
        check(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) ==
              CUDA_SUCCESS);
        check(context == NULL);
        check(cuMemGetAddressRange_v2(&base, &size, pointer + 100) == CUDA_SUCCESS);
        check(base == pointer && size == 5000);
        check(cuMemGetAddressRange_v2(&base, &size, pointer + 5000) != CUDA_SUCCESS);
        check(cuMemAlloc_v2(&plain, 5000) == CUDA_SUCCESS);
        check(cuPointerGetAttribute(&none, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain) ==
              CUDA_SUCCESS);
        check(none == NULL);
}

static CUmemoryPool new_pool(int handle_types)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = handle_types,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemoryPool pool;

        check(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
        return pool;
}

FAKE_TEST(test_a_pool_ends_with_its_last_allocation)
{
        CUdeviceptr pointer, other;
        CUmemoryPool pool;

        page = fake_guest_start(GIB);
        pool = new_pool(0);
        check(cuMemAllocFromPoolAsync(&pointer, 3 * MIB, pool, NULL) == CUDA_SUCCESS);
        check(movable() == 4 * MIB);
        set_threshold(pool, UINT64_MAX);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync(&other, MIB, pool, NULL) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemsetD8_v2(pointer, 1, 3 * MIB) == CUDA_SUCCESS);
        release(pointer, NULL);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() == 0);
}

static CUresult allocate_from(CUmemoryPool pool, CUdeviceptr *ret_pointer, size_t size)
{
        return cuMemAllocFromPoolAsync(ret_pointer, size, pool, NULL);
}

FAKE_TEST(test_what_can_be_exported_is_ours)
{
        CUdeviceptr pointer;

        page = fake_guest_start(GIB);
        check(allocate_from(new_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), &pointer,
                            3 * MIB) == CUDA_SUCCESS);
        check(movable() == 4 * MIB && fixed() == 0);
        release(pointer, NULL);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() == 0);
}

static CUmemoryPool new_bounded_pool(uint64_t most)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                       .maxSize = most };
        uint64_t all = UINT64_MAX;
        CUmemoryPool pool;

        check(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
        check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) == CUDA_SUCCESS);
        return pool;
}

FAKE_TEST(test_a_pool_of_a_maximum_size_is_ours_and_has_no_more)
{
        CUdeviceptr first, second, third;
        CUmemoryPool pool;

        page = fake_guest_start(GIB);
        pool = new_bounded_pool(64 * MIB);
        check(allocate_from(pool, &first, 65 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(allocate_from(pool, &first, 3 * MIB) == CUDA_SUCCESS);
        check(movable() == 4 * MIB && fixed() == 0);
        check(allocate_from(pool, &second, 60 * MIB) == CUDA_SUCCESS);
        check(allocate_from(pool, &third, 2 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(page->slot[FAKE_SLOT].holds == 0 && fake_close(FAKE_GUEST_TIMEOUT_MS).holds == 0);
        fake_guest_command(GATE_OPEN);
        release(second, NULL);
        check(allocate_from(pool, &third, 2 * MIB) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&second, 65 * MIB, NULL) == CUDA_SUCCESS); /* of another */
}

/* Two pieces of 32 MiB are no room for one of 48. */
FAKE_TEST(test_what_a_full_pool_has_free_makes_room_in_it)
{
        CUdeviceptr first, second;
        CUmemoryPool pool;

        page = fake_guest_start(GIB);
        pool = new_bounded_pool(64 * MIB);
        check(allocate_from(pool, &first, 32 * MIB) == CUDA_SUCCESS);
        check(allocate_from(pool, &second, 32 * MIB) == CUDA_SUCCESS);
        release(first, NULL);
        release(second, NULL);
        check(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        check(movable() == 64 * MIB);
        check(allocate_from(pool, &first, 48 * MIB) == CUDA_SUCCESS);
        check(movable() == 48 * MIB);
}

FAKE_TEST(test_a_small_maximum_is_rounded_up_to_what_is_reserved)
{
        CUdeviceptr first, second;
        CUmemoryPool pool;

        page = fake_guest_start(GIB);
        pool = new_bounded_pool(1);
        check(allocate_from(pool, &first, 1024) == CUDA_SUCCESS);
        check(allocate_from(pool, &second, 1024) == CUDA_SUCCESS);
        check(movable() == 2 * MIB);
        check(allocate_from(pool, &second, 3 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
}

FAKE_TEST(test_a_variable_leaves_all_pools_to_the_driver)
{
        CUdeviceptr pointer;

        check(setenv("OPENVGPU_NATIVE_POOLS", "1", 1) == 0);
        page = fake_guest_start(64 * MIB);
        pointer = allocate(3 * MIB, NULL);
        check(movable() == 0 && fixed() == 3 * MIB);
        release(pointer, NULL);
        check(fixed() == 0);
        check(cuMemAllocAsync(&pointer, 65 * MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
}

FAKE_TEST(test_memory_may_be_freed_while_another_stream_is_captured)
{
        CUstream stream, captured;
        CUdeviceptr pointer, other;
        CUgraph graph;

        page = fake_guest_start(GIB);
        stream = new_stream();
        captured = new_stream();
        pointer = allocate(3 * MIB, stream);
        other = allocate(3 * MIB, stream);
        check(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        release(pointer, stream);
        check(cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(cuMemFreeAsync(other, captured) != CUDA_SUCCESS);
        (void)cuStreamEndCapture(captured, &graph);
        release(other, stream);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(movable() == 0);
}

FAKE_TEST(test_memory_may_be_freed_in_a_stream_of_another_context)
{
        CUcontext context, second;
        CUdeviceptr pointer;
        CUstream stream;

        page = fake_guest_start(GIB);
        stream = new_stream();
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        check(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
        pointer = allocate(3 * MIB, NULL);
        hold_stream(stream);
        release(pointer, stream);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() == 4 * MIB);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        let_go(stream);
        check(movable() == 0);
}

static unsigned long long access_of(CUdeviceptr pointer, CUdevice device)
{
        const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, device };
        unsigned long long flags = 0;

        check(DRIVER(cuMemGetAccess)(&flags, &location, pointer) == CUDA_SUCCESS);
        return flags;
}

FAKE_TEST(test_memory_is_of_the_device_of_its_stream_and_for_those_that_the_pool_names)
{
        const CUmemAccessDesc all = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                      CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUcontext context[2];
        CUdeviceptr before, after;
        CUmemoryPool pool;
        CUstream stream;
        int ordinal = -1;

        fake_host("2xH200:1G");
        check(cuInit(0) == CUDA_SUCCESS);
        for (int i = 0; i < 2; i++)
                check(cuDevicePrimaryCtxRetain(&context[i], i) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[1]) == CUDA_SUCCESS);
        stream = new_stream();
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        before = allocate(4 * MIB, stream);
        check(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, before) ==
              CUDA_SUCCESS);
        check(ordinal == 1);
        check(access_of(before, 1) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        check(access_of(before, 0) == 0);
        check(cuDeviceGetDefaultMemPool(&pool, 1) == CUDA_SUCCESS);
        check(cuMemPoolSetAccess(pool, &all, 1) == CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync(&after, 4 * MIB, pool, NULL) == CUDA_SUCCESS);
        check(access_of(before, 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        check(access_of(after, 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 8 * MIB);
        release(after, NULL);
        release(before, stream);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        check(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
}

FAKE_TEST(test_memory_of_pools_ends_with_the_last_context)
{
        CUcontext context, second;
        CUdeviceptr pointer;
        CUstream stream;

        page = fake_guest_start(GIB);
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        check(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
        stream = new_stream();
        pointer = allocate(3 * MIB, stream);
        release(allocate(8 * MIB, stream), stream); /* its event ends with the context */
        check(cuCtxDestroy_v2(second) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 1, 3 * MIB) == CUDA_SUCCESS);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() == 4 * MIB);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        check(movable() == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
}

FAKE_TEST(test_a_failing_driver_call_leaves_nothing_behind)
{
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL",
                     "cuMemMap@1=999,cuMemSetAccess@1=999,cuEventCreate@1=999,cuEventRecord@1=999",
                     1) == 0);
        page = fake_guest_start(GIB);
        for (int i = 0; i < 2; i++) {
                check(cuMemAllocAsync(&pointer, 4 * MIB, NULL) == CUDA_ERROR_UNKNOWN);
                check(movable() == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
        }
        pointer = allocate(4 * MIB, NULL);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_ERROR_UNKNOWN);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_ERROR_UNKNOWN);
        check(cuMemsetD8_v2(pointer, 1, 4 * MIB) == CUDA_SUCCESS);
        release(pointer, NULL);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
}

FAKE_TEST(test_a_free_waits_where_a_stream_has_no_event_for_us)
{
        CUdeviceptr pointer;
        CUstream stream;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuEventRecord@1=400", 1) == 0);
        page = fake_guest_start(GIB);
        set_threshold(default_pool(), UINT64_MAX);
        set(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
        stream = new_stream();
        pointer = allocate(4 * MIB, stream);
        check(cuMemsetD8Async(pointer, 1, 4 * MIB, stream) == CUDA_SUCCESS);
        release(pointer, stream);
        check(cuStreamQuery(stream) == CUDA_SUCCESS);
        check(allocate(4 * MIB, new_stream()) == pointer);
}

#define THREADS 4
#define ROUNDS  80
#define CHECKED 8

static struct {
        CUcontext context;
        CUstream stream[3];
} shared;

static void *use_streams(void *argument)
{
        unsigned int seed = (unsigned int)(uintptr_t)argument;
        unsigned char value[CHECKED], number = (unsigned char)seed;

        check(cuCtxSetCurrent(shared.context) == CUDA_SUCCESS);
        for (int i = 0; i < ROUNDS; i++) {
                CUstream stream = shared.stream[(unsigned int)i / CHECKED % 3];
                size_t size = 1 + (size_t)rand_r(&seed) % (i % 2 ? 3000 : 5 * MIB);
                CUdeviceptr pointer = allocate(size, stream);

                check(cuMemsetD8Async(pointer + size - 1, number, 1, stream) == CUDA_SUCCESS);
                check(cuMemcpyDtoHAsync_v2(&value[i % CHECKED], pointer + size - 1, 1, stream) ==
                      CUDA_SUCCESS);
                release(pointer, stream);
                if (i % CHECKED != CHECKED - 1)
                        continue;
                check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
                for (size_t at = 0; at < CHECKED; at++)
                        check(value[at] == number);
        }
        return NULL;
}

FAKE_TEST(test_threads_that_share_streams_do_not_share_memory)
{
        pthread_t thread[THREADS];

        page = fake_guest_start(256 * MIB);
        set_threshold(default_pool(), 16 * MIB);
        check(cuCtxGetCurrent(&shared.context) == CUDA_SUCCESS);
        for (size_t i = 0; i < 3; i++)
                shared.stream[i] = new_stream();
        for (size_t i = 0; i < THREADS; i++)
                check(pthread_create(&thread[i], NULL, use_streams, (void *)(uintptr_t)(i + 1)) ==
                      0);
        for (size_t i = 0; i < THREADS; i++)
                check(pthread_join(thread[i], NULL) == 0);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(movable() <= 16 * MIB);
        check(page->slot[FAKE_SLOT].n_allocations == 0);
}

/* It lies idle in a pool that gives nothing back by itself. */
static void keep_idle(uint64_t bytes)
{
        set_threshold(default_pool(), UINT64_MAX);
        release(allocate(bytes, NULL), NULL);
        check(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        check(attribute(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == bytes);
}

FAKE_TEST(test_idle_memory_of_pools_goes_before_an_allocation_of_any_kind_fails)
{
        const CUmemAllocationProp sparse = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                             .allocFlags.usage = 1 }; /* the driver's */
        const CUDA_ARRAY_DESCRIPTOR array = {
                .Width = 12 * MIB, .Height = 1, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
        };
        CUDA_MEM_ALLOC_NODE_PARAMS node;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        CUgraphNode added;
        CUgraph graph;
        CUarray made;

        page = fake_guest_start(64 * MIB);
        keep_idle(48 * MIB);
        check_answer(cuMemCreate(&handle, 48 * MIB, &sparse, 0), CUDA_SUCCESS);
        check(movable() == 0 && cuMemRelease(handle) == CUDA_SUCCESS);
        keep_idle(48 * MIB);
        check_answer(cuMemAllocManaged(&pointer, 48 * MIB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
        check(movable() == 0 && cuMemFree_v2(pointer) == CUDA_SUCCESS);
        keep_idle(48 * MIB);
        check_answer(cuArrayCreate_v2(&made, &array), CUDA_SUCCESS);
        check(movable() == 0 && cuArrayDestroy(made) == CUDA_SUCCESS);
        keep_idle(48 * MIB);
        memset(&node, 0, sizeof(node));
        node.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        node.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        node.bytesize = 48 * MIB;
        check(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        check_answer(cuGraphAddMemAllocNode(&added, graph, NULL, 0, &node), CUDA_SUCCESS);
        check(movable() == 0 && cuGraphDestroy(graph) == CUDA_SUCCESS);

        keep_idle(8 * MIB); /* which would not be enough: it stays */
        check_answer(cuMemAllocManaged(&pointer, 65 * MIB, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
        check(movable() == 8 * MIB);
}

static CUresult refuse_beside_idle(CUstream *stream, unsigned int flags)
{
        (void)flags;
        *stream = NULL;
        return movable() > 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

FAKE_TEST(test_idle_memory_of_pools_goes_before_the_driver_lacks_some_for_itself)
{
        CUstream stream;

        page = fake_guest_start(64 * MIB);
        keep_idle(8 * MIB);
        entry_real[ENTRY_cuStreamCreate] = (entry_function)refuse_beside_idle;
        check_answer(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
        check(movable() == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_memory_of_pools_moves_away_and_comes_back),
                cmocka_unit_test(
                        test_a_stream_has_at_once_what_it_freed_and_another_when_that_is_done),
                cmocka_unit_test(
                        test_who_had_memory_before_is_waited_for_although_the_next_one_is_through),
                cmocka_unit_test(test_a_new_stream_is_not_the_one_whose_handle_it_has),
                cmocka_unit_test(test_what_is_above_the_threshold_goes_back_when_the_program_waits),
                cmocka_unit_test(test_a_pool_says_what_is_used_and_reserved),
                cmocka_unit_test(test_when_the_quota_is_full_what_is_free_goes_first),
                cmocka_unit_test(test_when_the_quota_is_full_one_stream_waits_for_another),
                cmocka_unit_test(test_frees_do_not_wait_and_may_be_of_any_kind),
                cmocka_unit_test(test_a_pointer_says_which_pool_it_is_of),
                cmocka_unit_test(test_a_pool_ends_with_its_last_allocation),
                cmocka_unit_test(test_what_can_be_exported_is_ours),
                cmocka_unit_test(test_a_pool_of_a_maximum_size_is_ours_and_has_no_more),
                cmocka_unit_test(test_what_a_full_pool_has_free_makes_room_in_it),
                cmocka_unit_test(test_a_small_maximum_is_rounded_up_to_what_is_reserved),
                cmocka_unit_test(test_a_variable_leaves_all_pools_to_the_driver),
                cmocka_unit_test(test_memory_may_be_freed_while_another_stream_is_captured),
                cmocka_unit_test(test_memory_may_be_freed_in_a_stream_of_another_context),
                cmocka_unit_test(
                        test_memory_is_of_the_device_of_its_stream_and_for_those_that_the_pool_names),
                cmocka_unit_test(test_memory_of_pools_ends_with_the_last_context),
                cmocka_unit_test(test_threads_that_share_streams_do_not_share_memory),
                cmocka_unit_test(test_a_failing_driver_call_leaves_nothing_behind),
                cmocka_unit_test(test_a_free_waits_where_a_stream_has_no_event_for_us),
                cmocka_unit_test(
                        test_idle_memory_of_pools_goes_before_an_allocation_of_any_kind_fails),
                cmocka_unit_test(
                        test_idle_memory_of_pools_goes_before_the_driver_lacks_some_for_itself),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
