/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets beyond the end of an allocation are refused as the driver does it, and no others. */
#include <stdlib.h>
#include <string.h>

#include "abi/cuda-batch.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/mapping.h"
#include "gate/range.h"

static char host[8 * MIB];

static CUdeviceptr allocate(uint64_t size)
{
        CUdeviceptr pointer;

        check(cuMemAlloc_v2(&pointer, size) == CUDA_SUCCESS);
        return pointer;
}

static void start(void)
{
        (void)fake_guest_start(GIB);
}

FAKE_TEST(test_a_copy_may_reach_the_end_and_no_further)
{
        static const uint64_t sizes[] = { 100, 512, 1000, MIB - 1, MIB, 3 * MIB, 2 * MIB + 1 };

        start();
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                uint64_t size = sizes[i];
                CUdeviceptr at = allocate(size);

                check_answer(cuMemcpyHtoD_v2(at, host, size), CUDA_SUCCESS);
                check_answer(cuMemcpyHtoD_v2(at, host, size + 1), CUDA_ERROR_INVALID_VALUE);
                check_answer(cuMemcpyHtoD_v2(at + size - 1, host, 1), CUDA_SUCCESS);
                check_answer(cuMemcpyHtoD_v2(at + size - 1, host, 2), CUDA_ERROR_INVALID_VALUE);
                check_answer(cuMemcpyHtoD_v2(at + size / 2, host, size - size / 2), CUDA_SUCCESS);
        }
}

/* As the driver: nothing is copied. */
FAKE_TEST(test_every_way_to_copy_or_set_is_looked_at)
{
        const uint64_t size = 3 * MIB - 16;
        CUdeviceptr at, other;
        CUcontext context;
        CUstream stream;

        start();
        at = allocate(size);
        other = allocate(4 * MIB);
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        check(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
#define REFUSED(call) check_answer(call, CUDA_ERROR_INVALID_VALUE)
#define GOOD(call)    check_answer(call, CUDA_SUCCESS)
        REFUSED(cuMemcpyDtoH_v2(host, at, size + 4));
        REFUSED(cuMemcpyDtoD_v2(at, other, size + 4));
        REFUSED(cuMemcpyDtoD_v2(other, at, size + 4));
        REFUSED(cuMemcpy(at, other, size + 4));
        REFUSED(cuMemcpyAsync(other, at, size + 4, stream));
        REFUSED(cuMemcpyHtoDAsync_v2(at, host, size + 4, stream));
        REFUSED(cuMemcpyDtoHAsync_v2(host, at, size + 4, stream));
        REFUSED(cuMemcpyDtoDAsync_v2(other, at, size + 4, stream));
        REFUSED(cuMemcpyPeer(other, context, at, context, size + 4));
        REFUSED(cuMemcpyPeerAsync(at, context, other, context, size + 4, stream));
        REFUSED(cuMemsetD8_v2(at, 1, size + 1));
        REFUSED(cuMemsetD16_v2(at, 1, size / 2 + 1));
        REFUSED(cuMemsetD32_v2(at, 1, size / 4 + 1));
        REFUSED(cuMemsetD8Async(at, 1, size + 1, stream));
        REFUSED(cuMemsetD16Async(at, 1, size / 2 + 1, stream));
        REFUSED(cuMemsetD32Async(at, 1, size / 4 + 1, stream));
        REFUSED(cuMemsetD2D8_v2(at, 1024, 1, 512, size / 1024 + 2));
        REFUSED(cuMemsetD2D32_v2(at + size - 1024, 1024, 1, 256, 2));
        GOOD(cuMemcpyDtoD_v2(other, at, size));
        GOOD(cuMemsetD32_v2(at, 1, size / 4));
        GOOD(cuMemsetD2D32_v2(at + size - 2048, 1024, 1, 256, 2));
        GOOD(cuMemsetD2D8_v2(at + size - 1536, 1024, 1, 512,
                             2)); /* without the end of the last row */
        GOOD(cuMemsetD8_v2(at, 1, 0));
}

FAKE_TEST(test_rows_are_looked_at_where_they_end)
{
        CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcPitch = 1024,
                               .dstMemoryType = CU_MEMORYTYPE_HOST,
                               .dstHost = host,
                               .dstPitch = 512,
                               .WidthInBytes = 512,
                               .Height = 4 };

        start();
        copy.srcDevice = allocate(MIB + 3 * 1024 + 512);
        copy.srcY = 1024;
        check_answer(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
        copy.srcXInBytes = 1;
        check_answer(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
        copy.srcXInBytes = 0;
        copy.Height = 5;
        check_answer(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
}

FAKE_TEST(test_so_are_slices_and_batches)
{
        CUDA_MEMCPY3D copy = { .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstPitch = 256,
                               .dstHeight = 16,
                               .WidthInBytes = 256,
                               .Height = 4,
                               .Depth = 3 };
        CUdeviceptr to[2], from[2];
        size_t sizes[2] = { 4096, 4001 }, failed = 7;

        start();
        from[1] = allocate(4000); /* before the other, which nothing follows */
        to[0] = from[0] = to[1] = copy.dstDevice = allocate((2 * 16 + 4) * 256);
        check(range_3d_is_good((uint64_t)(uintptr_t)&copy));
        copy.dstZ = 1;
        check(!range_3d_is_good((uint64_t)(uintptr_t)&copy));
        copy.dstZ = 0;
        copy.Height = 5;
        check(!range_3d_is_good((uint64_t)(uintptr_t)&copy));
        check(!range_batch_is_good((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from,
                                   (uint64_t)(uintptr_t)sizes, 2, (uint64_t)(uintptr_t)&failed));
        check(failed == 1);
        check(range_batch_is_good((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from,
                                  (uint64_t)(uintptr_t)sizes, 1, 0));
}

/* As the driver: that another allocation follows does not matter. */
FAKE_TEST(test_it_does_not_reach_into_the_next_allocation)
{
        CUdeviceptr first, second, small, next;

        start();
        first = allocate(2 * MIB);
        second = allocate(2 * MIB);
        small = allocate(512);
        next = allocate(512);
        check(second == first + 2 * MIB && next == small + 512);
        check(!range_is_good(first, 4 * MIB));
        check(!range_is_good(first, 2 * MIB + 1));
        check(!range_is_good(small, 1024));
        check(!range_is_good(first, 5 * GIB)); /* nor out of what is ours */
        check(!range_is_good(first + 2 * MIB, UINT64_MAX));
        check(range_is_good(first, 2 * MIB) && range_is_good(second, 2 * MIB));
}

/* As in a process that has more than a TiB. */
FAKE_TEST(test_it_is_the_same_outside_of_the_arena)
{
        struct mapping *arena = calloc(1, sizeof(*arena));
        CUdeviceptr at;

        start();
        check(arena != NULL);
        mapping_arena_open();
        arena->size = RANGE_PAGES * BLOCK_SIZE;
        check(mapping_table_place(arena) == 0);
        at = allocate(3 * MIB);
        check(at - range_base >= RANGE_PAGES * BLOCK_SIZE);
        check(range_is_good(at, 3 * MIB) && range_is_good(at + 3 * MIB - 1, 1));
        check(!range_is_good(at, 3 * MIB + 1));
        check(!range_is_good(at + 3 * MIB - 1, 2));
        check(range_is_good(at + 4 * MIB, 4 * MIB) && range_is_good(at - 1, 1));
        check(cuMemFree_v2(at) == CUDA_SUCCESS);
        check(range_is_good(at, 4 * MIB)); /* of no allocation */
        mapping_table_remove(arena);
}

/* Each slice is as high and each row as long as the copy, where it does not say so. */
FAKE_TEST(test_batches_of_slices_are_looked_at)
{
        CUDA_MEMCPY3D_BATCH_OP copies[2] = {
                { .src.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                  .dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                  .width = 256,
                  .height = 4,
                  .depth = 3 },
        };
        size_t failed = 7;

        start();
        copies[0].src.ptr.ptr = allocate(256 * 4 * 3);
        copies[0].dst.ptr.ptr = allocate((2 * 16 + 4) * 512 - 256);
        copies[0].dst.ptr.rowLength = 512;
        copies[0].dst.ptr.layerHeight = 16;
        copies[1] = copies[0];
#define BATCH(n, failed) \
        range_3d_batch_is_good(n, (uint64_t)(uintptr_t)copies, (uint64_t)(uintptr_t)(failed))
        check(BATCH(2, NULL));
        copies[1].dst.ptr.layerHeight = 17;
        check(BATCH(1, NULL) && !BATCH(2, NULL) && !BATCH(2, &failed));
        check(failed == 1);
        copies[1].dst.ptr.layerHeight = 0;
        check(BATCH(2, NULL));
        copies[1].src.ptr.ptr++;
        check(!BATCH(2, NULL));
        copies[1].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY; /* of elements of an unknown size */
        check(BATCH(2, NULL));
#undef BATCH
}

FAKE_TEST(test_nodes_that_copy_are_looked_at)
{
        CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = host,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .WidthInBytes = 3 * MIB + 1,
                               .Height = 1,
                               .Depth = 1 };
        CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
        CUgraphNode node;
        CUgraph graph;

        start();
        copy.dstDevice = allocate(3 * MIB);
        params.memcpy.copyParams = copy;
        check(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        check_answer(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL),
                     CUDA_ERROR_INVALID_VALUE);
        check_answer(cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params),
                     CUDA_ERROR_INVALID_VALUE);
        check_answer(cuGraphNodeSetParams(NULL, &params), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuGraphExecNodeSetParams(NULL, NULL, &params), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuGraphExecMemcpyNodeSetParams(NULL, NULL, &copy, NULL),
                     CUDA_ERROR_INVALID_VALUE);
        copy.WidthInBytes = 3 * MIB;
        check(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL) != CUDA_ERROR_INVALID_VALUE);
}

/* The driver takes such a set as it is, as a node of a graph; and no such copy. */
FAKE_TEST(test_a_set_that_is_captured_is_left_to_the_driver)
{
        CUdeviceptr at;
        CUstream stream;
        CUgraph graph;

        start();
        at = allocate(3 * MIB - 16);
        check(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check_answer(cuMemsetD8Async(at, 1, 3 * MIB, stream), CUDA_SUCCESS);
        check_answer(cuMemsetD2D8Async(at, 1024, 1, 512, 3 * 1024 + 1, stream), CUDA_SUCCESS);
        check_answer(cuMemcpyHtoDAsync_v2(at, host, 3 * MIB, stream), CUDA_ERROR_INVALID_VALUE);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check_answer(cuMemsetD8Async(at, 1, 3 * MIB, stream), CUDA_ERROR_INVALID_VALUE);
}

/* What the driver says of these is not known: it shall say it. */
FAKE_TEST(test_what_may_be_right_is_left_to_the_driver)
{
        CUdeviceptr second, pooled;
        CUmemoryPool pool;
        CUstream stream;

        start();
        second = allocate(2 * MIB);
        check(range_is_good(second + 2 * MIB, 1)); /* of no allocation */
        check(range_is_good((CUdeviceptr)(uintptr_t)host, sizeof(host) * 2));
        check(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&pooled, 100, stream) == CUDA_SUCCESS);
        check(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
        check(range_is_good(pooled, 4096));
}

FAKE_TEST(test_freed_memory_is_of_no_allocation)
{
        CUdeviceptr small, kept, large;

        start();
        kept = allocate(100);
        small = allocate(2000);
        large = allocate(3 * MIB);
        check(cuMemFree_v2(small) == CUDA_SUCCESS);
        check(!range_is_good(kept, 1000));
        check(range_is_good(small, 4096)); /* it begins in none */
        check(cuMemFree_v2(large) == CUDA_SUCCESS);
        check(range_is_good(large, 4 * MIB));
        check(allocate(4 * MIB) == large);
        check(range_is_good(large, 4 * MIB));
        check(cuMemFree_v2(kept) == CUDA_SUCCESS);
}

/* A copy of another thread may still look at one. */
FAKE_TEST(test_what_is_known_of_small_ones_is_never_freed)
{
        const uint64_t size = 100000, n = BLOCK_SIZE / size + 1;
        CUdeviceptr small[BLOCK_SIZE / 100000 + 1], other;
        const void *block;
        void *mine;

        start();
        for (size_t i = 0; i < n; i++)
                small[i] = allocate(size);
        block = (const void *)(uintptr_t)(range_page[(small[0] - range_base) / BLOCK_SIZE] &
                                          ~RANGE_BLOCK);
        for (size_t i = 0; i < n; i++)
                check(cuMemFree_v2(small[i]) == CUDA_SUCCESS);
        (void)allocate(GIB - BLOCK_SIZE);
        while (cuMemAlloc_v2(&other, size) == CUDA_SUCCESS)
                ;
        mine = calloc(1, sizeof(struct block));
        check(mine && mine != block);
        free(mine);
}

FAKE_TEST(test_it_is_the_same_after_a_move)
{
        CUdeviceptr small, large;

        start();
        small = allocate(100);
        large = allocate(3 * MIB);
        fake_guest_move();
        check_answer(cuMemsetD8_v2(small, 1, 101), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemsetD8_v2(large, 1, 3 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemsetD8_v2(large, 1, 3 * MIB), CUDA_SUCCESS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_copy_may_reach_the_end_and_no_further),
                cmocka_unit_test(test_every_way_to_copy_or_set_is_looked_at),
                cmocka_unit_test(test_rows_are_looked_at_where_they_end),
                cmocka_unit_test(test_so_are_slices_and_batches),
                cmocka_unit_test(test_it_does_not_reach_into_the_next_allocation),
                cmocka_unit_test(test_it_is_the_same_outside_of_the_arena),
                cmocka_unit_test(test_batches_of_slices_are_looked_at),
                cmocka_unit_test(test_nodes_that_copy_are_looked_at),
                cmocka_unit_test(test_a_set_that_is_captured_is_left_to_the_driver),
                cmocka_unit_test(test_what_may_be_right_is_left_to_the_driver),
                cmocka_unit_test(test_freed_memory_is_of_no_allocation),
                cmocka_unit_test(test_what_is_known_of_small_ones_is_never_freed),
                cmocka_unit_test(test_it_is_the_same_after_a_move),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
