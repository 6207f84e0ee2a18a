/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that take device memory which only the driver can move: counted, nothing else.
 *
 * What is charged: the bytes that were asked for, of pools and graphs while the application holds
 * them (what the pool keeps beyond that is the driver's cache). An allocation node of a graph counts
 * from when it is added until its graph is destroyed, although the driver takes the memory only
 * when the graph is instantiated and launched. Arrays are an estimate: see array_bytes().
 */
#include "gate/entry.h"
#include "gate/holding.h"
#include "gate/hook.h"
#include "gate/memory.h"

static uint64_t key_of(const void *handle)
{
        return (uint64_t)(uintptr_t)handle;
}

/* Bytes of one element of one channel; formats that we do not know are taken for 4 bytes. */
static uint64_t format_bytes(CUarray_format format)
{
        switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
                return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
                return 2;
        default:
                return 4;
        }
}

static uint64_t times(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t at_least_one(uint64_t n)
{
        return n ? n : 1;
}

/*
 * Width x height x depth x channels x bytes of the format, over all levels; each level halves the
 * extents, but not the number of layers. Without the driver's padding. Sparse arrays and those that
 * are mapped later take no memory here.
 */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels)
{
        uint64_t width = at_least_one(array->Width), height = at_least_one(array->Height);
        uint64_t depth = at_least_one(array->Depth), sum = 0;

        if (array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
                return 0;
        for (unsigned int i = 0; i < levels && i < 64; i++) {
                uint64_t elements = times(times(width, height), depth);
                uint64_t bytes =
                        times(times(elements, array->NumChannels), format_bytes(array->Format));

                sum = sum + bytes < sum ? UINT64_MAX : sum + bytes;
                width = at_least_one(width / 2);
                height = at_least_one(height / 2);
                if (!(array->Flags & CUDA_ARRAY3D_LAYERED))
                        depth = at_least_one(depth / 2);
        }
        return sum;
}

CUresult our_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
        CUDA_ARRAY3D_DESCRIPTOR flat = { .Depth = 0 };
        struct holding *holding;
        CUresult result;

        if (!array || !descriptor)
                return DRIVER(cuArrayCreate_v2)(array, descriptor);
        flat.Width = descriptor->Width;
        flat.Height = descriptor->Height;
        flat.Format = descriptor->Format;
        flat.NumChannels = descriptor->NumChannels;
        holding = holding_new(HOLDING_ARRAY, array_bytes(&flat, 1));
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuArrayCreate_v2)(array, descriptor);
        return holding_keep(holding, result, key_of(*array));
}

CUresult our_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
        struct holding *holding;
        CUresult result;

        if (!array || !descriptor)
                return DRIVER(cuArray3DCreate_v2)(array, descriptor);
        holding = holding_new(HOLDING_ARRAY, array_bytes(descriptor, 1));
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuArray3DCreate_v2)(array, descriptor);
        return holding_keep(holding, result, key_of(*array));
}

CUresult our_cuArrayDestroy(CUarray array)
{
        struct holding *holding = holding_take(HOLDING_ARRAY, key_of(array));

        return holding_settle(holding, DRIVER(cuArrayDestroy)(array));
}

CUresult our_cuMipmappedArrayCreate(CUmipmappedArray *array,
                                    const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
        struct holding *holding;
        CUresult result;

        if (!array || !descriptor)
                return DRIVER(cuMipmappedArrayCreate)(array, descriptor, levels);
        holding = holding_new(HOLDING_MIPMAP, array_bytes(descriptor, levels));
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMipmappedArrayCreate)(array, descriptor, levels);
        return holding_keep(holding, result, key_of(*array));
}

CUresult our_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
        struct holding *holding = holding_take(HOLDING_MIPMAP, key_of(array));

        return holding_settle(holding, DRIVER(cuMipmappedArrayDestroy)(array));
}

CUresult our_cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
        struct holding *holding;
        CUresult result;

        if (!pointer)
                return DRIVER(cuMemAllocManaged)(pointer, size, flags);
        holding = holding_new(HOLDING_MANAGED, size);
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemAllocManaged)(pointer, size, flags);
        return holding_keep(holding, result, *pointer);
}

CUresult hook_free_of_driver(CUdeviceptr pointer)
{
        struct holding *holding = holding_take(HOLDING_POINTER, pointer);

        if (!holding)
                holding = holding_take(HOLDING_MANAGED, pointer);
        return holding_settle(holding, DRIVER(cuMemFree_v2)(pointer));
}

CUresult hook_allocate_of_driver(CUdeviceptr *pointer, size_t size)
{
        struct holding *holding = holding_new(HOLDING_POINTER, size);
        CUresult result;

        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemAlloc_v2)(pointer, size);
        return holding_keep(holding, result, *pointer);
}

/* The stream-ordered calls come in two forms that differ in what stream 0 means. */
static CUresult allocate_async(__typeof__(&cuMemAllocAsync) real, CUdeviceptr *pointer, size_t size,
                               CUstream stream)
{
        struct holding *holding;
        CUresult result;

        if (!pointer)
                return real(pointer, size, stream);
        holding = holding_new(HOLDING_POINTER, size);
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = real(pointer, size, stream);
        return holding_keep(holding, result, *pointer);
}

CUresult our_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
        return allocate_async(DRIVER(cuMemAllocAsync), pointer, size, stream);
}

CUresult our_cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream)
{
        return allocate_async(DRIVER(cuMemAllocAsync_ptsz), pointer, size, stream);
}

static CUresult allocate_from_pool(__typeof__(&cuMemAllocFromPoolAsync) real, CUdeviceptr *pointer,
                                   size_t size, CUmemoryPool pool, CUstream stream)
{
        struct holding *holding;
        CUresult result;

        if (!pointer)
                return real(pointer, size, pool, stream);
        holding = holding_new(HOLDING_POINTER, size);
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = real(pointer, size, pool, stream);
        return holding_keep(holding, result, *pointer);
}

CUresult our_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                     CUstream stream)
{
        return allocate_from_pool(DRIVER(cuMemAllocFromPoolAsync), pointer, size, pool, stream);
}

CUresult our_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                          CUstream stream)
{
        return allocate_from_pool(DRIVER(cuMemAllocFromPoolAsync_ptsz), pointer, size, pool,
                                  stream);
}

/* Memory of ours may be freed this way as well; to have waited for more than the stream is allowed. */
static CUresult free_async(__typeof__(&cuMemFreeAsync) real, CUdeviceptr pointer, CUstream stream)
{
        struct holding *holding;
        CUresult result;

        if (memory_free(pointer, &result))
                return result;
        holding = holding_take(HOLDING_POINTER, pointer);
        return holding_settle(holding, real(pointer, stream));
}

CUresult our_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
        return free_async(DRIVER(cuMemFreeAsync), pointer, stream);
}

CUresult our_cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
        return free_async(DRIVER(cuMemFreeAsync_ptsz), pointer, stream);
}

CUresult our_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *dependencies, size_t n,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        struct holding *holding = holding_new(HOLDING_GRAPH, params ? params->bytesize : 0);
        CUresult result;

        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuGraphAddMemAllocNode)(node, graph, dependencies, n, params);
        return holding_keep(holding, result, key_of(graph));
}

static bool is_allocation(const CUgraphNodeParams *params)
{
        return params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

CUresult our_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t n, CUgraphNodeParams *params)
{
        struct holding *holding;
        CUresult result;

        if (!is_allocation(params))
                return DRIVER(cuGraphAddNode)(node, graph, dependencies, n, params);
        holding = holding_new(HOLDING_GRAPH, params->alloc.bytesize);
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuGraphAddNode)(node, graph, dependencies, n, params);
        return holding_keep(holding, result, key_of(graph));
}

CUresult our_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               const void *edges, size_t n, CUgraphNodeParams *params)
{
        struct holding *holding;
        CUresult result;

        if (!is_allocation(params))
                return DRIVER(cuGraphAddNode_v2)(node, graph, dependencies, edges, n, params);
        holding = holding_new(HOLDING_GRAPH, params->alloc.bytesize);
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuGraphAddNode_v2)(node, graph, dependencies, edges, n, params);
        return holding_keep(holding, result, key_of(graph));
}

/* Only afterwards: a graph that could not be destroyed keeps all its nodes. */
CUresult our_cuGraphDestroy(CUgraph graph)
{
        CUresult result = DRIVER(cuGraphDestroy)(graph);
        struct holding *holding;

        while (result == CUDA_SUCCESS && (holding = holding_take(HOLDING_GRAPH, key_of(graph))))
                (void)holding_settle(holding, CUDA_SUCCESS);
        return result;
}

/* Not charged: its owner pays. But it keeps the driver from restoring this process. */
static CUresult imported(CUresult result, uint64_t key)
{
        struct holding *holding = result == CUDA_SUCCESS ? holding_new(HOLDING_IMPORTED, 0) : NULL;

        return holding ? holding_keep(holding, result, key) : result;
}

CUresult our_cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
        CUresult result = DRIVER(cuIpcOpenMemHandle)(pointer, handle, flags);

        return imported(result, result == CUDA_SUCCESS ? *pointer : 0);
}

CUresult our_cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
        CUresult result = DRIVER(cuIpcOpenMemHandle_v2)(pointer, handle, flags);

        return imported(result, result == CUDA_SUCCESS ? *pointer : 0);
}

CUresult our_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
        struct holding *holding = holding_take(HOLDING_IMPORTED, pointer);

        return holding_settle(holding, DRIVER(cuIpcCloseMemHandle)(pointer));
}

CUresult our_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                unsigned long long flags)
{
        CUresult result = DRIVER(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags);

        return imported(result, result == CUDA_SUCCESS ? key_of(*pool) : 0);
}
