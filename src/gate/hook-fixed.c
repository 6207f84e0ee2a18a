/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that take device memory which only the driver can move: counted, nothing else.
 *
 * What is charged: the bytes that were asked for, of pools while the application holds them (what the
 * pool keeps beyond that is the driver's cache). What is captured is the graph's: see graph.h. Arrays
 * are an estimate: see array_bytes().
 */
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/graph.h"
#include "gate/holding.h"
#include "gate/hook.h"
#include "gate/memory.h"
#include "wire/gate.h"

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
        holding = holding_new(HOLDING_ARRAY, array_bytes(&flat, 1), 0);
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
        holding = holding_new(HOLDING_ARRAY, array_bytes(descriptor, 1), 0);
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
        holding = holding_new(HOLDING_MIPMAP, array_bytes(descriptor, levels), 0);
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
        holding = holding_new(HOLDING_POINTER, size, GATE_HOLDS_MANAGED);
        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemAllocManaged)(pointer, size, flags);
        return holding_keep(holding, result, *pointer);
}

CUresult hook_free_of_driver(CUdeviceptr pointer)
{
        struct holding *holding = holding_take(HOLDING_POINTER, pointer);

        return holding_settle(holding, DRIVER(cuMemFree_v2)(pointer));
}

CUresult hook_allocate_of_driver(CUdeviceptr *pointer, size_t size)
{
        struct holding *holding = holding_new(HOLDING_POINTER, size, 0);
        CUresult result;

        if (!holding)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemAlloc_v2)(pointer, size);
        return holding_keep(holding, result, *pointer);
}

/* Before a stream-ordered allocation, and after it: a captured one is a node of a graph. */
struct ordered {
        CUgraph graph; /* or NULL */
        struct graph_memory *memory;
        struct holding *holding;
};

static bool ordered_begin(struct ordered *ret, size_t size, CUstream stream, bool is_per_thread)
{
        *ret = (struct ordered){ .graph = NULL };
        if (capture_is_active() && graph_capture_find(stream, is_per_thread, &ret->graph))
                ret->memory = graph_memory_new(size);
        else
                ret->holding = holding_new(HOLDING_POINTER, size, 0);
        return ret->memory || ret->holding;
}

static CUresult ordered_keep(const struct ordered *ordered, CUresult result,
                             const CUdeviceptr *pointer)
{
        return ordered->memory ? graph_memory_keep(ordered->memory, result, ordered->graph)
                               : holding_keep(ordered->holding, result, *pointer);
}

/* The stream-ordered calls come in two forms that differ in what stream 0 means. */
static CUresult allocate_async(__typeof__(&cuMemAllocAsync) real, bool is_per_thread,
                               CUdeviceptr *pointer, size_t size, CUstream stream)
{
        struct ordered ordered;

        if (!pointer)
                return real(pointer, size, stream);
        if (!ordered_begin(&ordered, size, stream, is_per_thread))
                return CUDA_ERROR_OUT_OF_MEMORY;
        return ordered_keep(&ordered, real(pointer, size, stream), pointer);
}

CUresult our_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
        return allocate_async(DRIVER(cuMemAllocAsync), false, pointer, size, stream);
}

CUresult our_cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream)
{
        return allocate_async(DRIVER(cuMemAllocAsync_ptsz), true, pointer, size, stream);
}

static CUresult allocate_from_pool(__typeof__(&cuMemAllocFromPoolAsync) real, bool is_per_thread,
                                   CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                   CUstream stream)
{
        struct ordered ordered;

        if (!pointer)
                return real(pointer, size, pool, stream);
        if (!ordered_begin(&ordered, size, stream, is_per_thread))
                return CUDA_ERROR_OUT_OF_MEMORY;
        return ordered_keep(&ordered, real(pointer, size, pool, stream), pointer);
}

CUresult our_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                     CUstream stream)
{
        return allocate_from_pool(DRIVER(cuMemAllocFromPoolAsync), false, pointer, size, pool,
                                  stream);
}

CUresult our_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                          CUstream stream)
{
        return allocate_from_pool(DRIVER(cuMemAllocFromPoolAsync_ptsz), true, pointer, size, pool,
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

/* Not charged: its owner pays. But it keeps the driver from restoring this process. */
static CUresult imported(enum holding_kind kind, CUresult result, uint64_t key)
{
        struct holding *holding =
                result == CUDA_SUCCESS ? holding_new(kind, 0, GATE_HOLDS_IMPORTED) : NULL;

        return holding ? holding_keep(holding, result, key) : result;
}

CUresult our_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                unsigned long long flags)
{
        CUresult result = DRIVER(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags);

        return imported(HOLDING_POOL, result, result == CUDA_SUCCESS ? key_of(*pool) : 0);
}

CUresult our_cuMemPoolDestroy(CUmemoryPool pool)
{
        struct holding *holding = holding_take(HOLDING_POOL, key_of(pool));

        return holding_settle(holding, DRIVER(cuMemPoolDestroy)(pool));
}

/* Outlives the pool; freed as any other memory. */
CUresult our_cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                    CUmemPoolPtrExportData *data)
{
        CUresult result = DRIVER(cuMemPoolImportPointer)(pointer, pool, data);

        return imported(HOLDING_POINTER, result, result == CUDA_SUCCESS ? *pointer : 0);
}
