/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: stream-ordered memory, pools, and memory of graphs. */
#include <string.h>

#include "tests/guests/compare.h"

#define SIZE ((size_t)3 << 20)

static void ordered(void)
{
        CUdeviceptr pointer = 0;
        CUmemoryPool pool;
        CUstream stream;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
        must(CALL(cuMemAllocAsync, "a stream's", &pointer, SIZE, stream));
        SAY("aligned to 512: %d", pointer % 512 == 0);
        CALL(cuMemFreeAsync, "a stream's", pointer, stream);
        must(CALL(cuMemAllocAsync_ptsz, "the thread's", &pointer, 100, NULL));
        CALL(cuMemFreeAsync_ptsz, "the thread's", pointer, NULL);
        must(CALL(cuMemAllocFromPoolAsync, "the default pool", &pointer, 100, pool, stream));
        CALL(cuMemFreeAsync, "the default pool", pointer, stream);
        must(CALL(cuMemAllocFromPoolAsync_ptsz, "the default pool", &pointer, 100, pool, NULL));
        CALL(cuMemFree_v2, "of a pool", pointer);
        must(DRIVER(cuMemAlloc_v2)(&pointer, 100));
        CALL(cuMemFreeAsync, "ordinary memory", pointer, stream);
        must(DRIVER(cuStreamSynchronize)(stream));
        CALL(cuMemFreeAsync, "again", pointer, stream);
        CALL(cuMemFreeAsync, "nothing", 4096, stream);
        CALL(cuMemAllocAsync, "no bytes", &pointer, 0, stream);
        CALL(cuMemAllocAsync, "to nowhere", NULL, SIZE, stream);
        CALL(cuMemAllocAsync, "more than there is", &pointer, (size_t)1 << 46, stream);
        CALL(cuMemAllocFromPoolAsync, "no pool", &pointer, SIZE, NULL, stream);
}

static void shared(void)
{
        CUmemPoolProps props;
        CUmemPoolPtrExportData data;
        CUdeviceptr pointer, opened = 0;
        CUmemoryPool pool, imported = NULL;
        int fd = -1;

        compare_start();
        memset(&props, 0, sizeof(props));
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(CALL(cuMemPoolCreate, "to be shared", &pool, &props));
        must(CALL(cuMemAllocFromPoolAsync, "to be shared", &pointer, SIZE, pool, NULL));
        must(DRIVER(cuStreamSynchronize)(NULL));
        CALL(cuMemPoolExportToShareableHandle, "of it", &fd, pool, 1, 0);
        CALL(cuMemPoolExportPointer, "of it", &data, pointer);
        if (CALL(cuMemPoolImportFromShareableHandle, "own", &imported, (void *)(intptr_t)fd, 1,
                 0) == CUDA_SUCCESS) {
                if (CALL(cuMemPoolImportPointer, "own", &opened, imported, &data) == CUDA_SUCCESS)
                        CALL(cuMemFree_v2, "imported", opened);
                CALL(cuMemPoolDestroy, "imported", imported);
        }
        CALL(cuMemPoolImportFromShareableHandle, "no descriptor", &imported, (void *)(intptr_t)-1,
             1, 0);
        CALL(cuMemFreeAsync, "shared", pointer, NULL);
        must(DRIVER(cuStreamSynchronize)(NULL));
        CALL(cuMemPoolDestroy, "shared", pool);
        must(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
        CALL(cuMemPoolDestroy, "the default one", pool);
}

static CUgraphNodeParams allocation_of(size_t size)
{
        CUgraphNodeParams params;

        memset(&params, 0, sizeof(params));
        params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        params.alloc.bytesize = size;
        return params;
}

static void graphs(void)
{
        CUgraphNodeParams params = allocation_of(SIZE), none = allocation_of(0);
        uint64_t how[8] = { 0 }; /* CUDA_GRAPH_INSTANTIATE_PARAMS, without flags and stream */
        CUgraphNode nodes[3], freed;
        CUgraphExec exec;
        CUgraph graph;

        compare_start();
        must(DRIVER(cuGraphCreate)(&graph, 0));
        must(CALL(cuGraphAddNode, "allocation", &nodes[0], graph, NULL, 0, &params));
        CALL(cuGraphAddMemFreeNode, "of it", &freed, graph, &nodes[0], 1, params.alloc.dptr);
        must(CALL(cuGraphAddNode_v2, "allocation", &nodes[1], graph, NULL, NULL, 0, &params));
        CALL(cuGraphAddMemFreeNode, "of it", &freed, graph, &nodes[1], 1, params.alloc.dptr);
        must(CALL(cuGraphAddMemAllocNode, "allocation", &nodes[2], graph, NULL, 0, &params.alloc));
        CALL(cuGraphAddMemFreeNode, "of it", &freed, graph, &nodes[2], 1, params.alloc.dptr);
        CALL(cuGraphAddMemAllocNode, "no bytes", &nodes[2], graph, NULL, 0, &none.alloc);
        CALL(cuGraphAddMemAllocNode, "no parameters", &nodes[2], graph, NULL, 0, NULL);
        if (CALL(cuGraphInstantiate, "it", &exec, graph, NULL, NULL, 0) == CUDA_SUCCESS)
                CALL(cuGraphExecDestroy, "it", exec);
        if (CALL(cuGraphInstantiateWithParams, "it", &exec, graph, how) == CUDA_SUCCESS)
                CALL(cuGraphExecDestroy, "it", exec);
        if (CALL(cuGraphInstantiateWithParams_ptsz, "it", &exec, graph, how) == CUDA_SUCCESS)
                CALL(cuGraphExecDestroy, "it", exec);
        CALL(cuGraphExecDestroy, "nothing", NULL);
        CALL(cuGraphDestroy, "nothing", NULL);
        if (CALL(cuGraphInstantiateWithFlags, "it", &exec, graph, 0) == CUDA_SUCCESS) {
                CALL(cuGraphLaunch, "it", exec, NULL);
                CALL(cuStreamSynchronize, "of it", NULL);
                CALL(cuGraphDestroy, "instantiated", graph);
                CALL(cuGraphLaunch, "without its graph", exec, NULL);
                CALL(cuStreamSynchronize, "of it", NULL);
                CALL(cuGraphExecDestroy, "it", exec);
        }
}

static void captured(void)
{
        CUgraph seen = NULL, graph = NULL;
        CUdeviceptr pointer;
        CUgraphExec exec;
        CUstream stream;
        uint64_t id;
        int status;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CALL(cuMemAllocAsync, "captured", &pointer, SIZE, stream);
        CALL(cuMemFreeAsync, "captured", pointer, stream);
        CALL(cuStreamGetCaptureInfo_v2, "captured", stream, &status, &id, &seen, NULL, NULL);
        must(CALL(cuStreamEndCapture, "with memory", stream, &graph));
        SAY("the graph is the one that was told: %d", graph == seen);
        if (CALL(cuGraphInstantiate_v2, "it", &exec, graph, NULL, NULL, 0) == CUDA_SUCCESS) {
                CALL(cuGraphDestroy, "instantiated", graph);
                CALL(cuGraphLaunch, "it", exec, stream);
                CALL(cuStreamSynchronize, "of it", stream);
                CALL(cuGraphExecDestroy, "it", exec);
        }
}

const struct compare_case compare_pool[] = {
        { "ordered", ordered },   { "shared", shared }, { "graphs", graphs },
        { "captured", captured }, { NULL, NULL },
};
