/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools, allocations in the order of streams, and the waits after which pools give memory back.
 *
 * What pool.h cannot do is the driver's: counted with the bytes that were asked for, while the application
 * holds them (what the driver's pool keeps beyond that is its cache). What is captured is the graph's: see
 * graph.h.
 */
#include <assert.h>
#include <string.h>

#include "gate/capture.h"
#include "gate/current.h"
#include "gate/entry.h"
#include "gate/graph.h"
#include "gate/holding.h"
#include "gate/memory.h"
#include "gate/pool-import.h"
#include "gate/pool.h"
#include "gate/ticket.h"
#include "gate/visible.h"
#include "wire/gate.h"

static_assert(sizeof(struct gate_ticket) == sizeof(CUmemPoolPtrExportData), "it is one");

static uint64_t key_of(const void *handle)
{
        return (uint64_t)(uintptr_t)handle;
}

/* Before a stream-ordered allocation, and after it: a captured one is a node of a graph. */
struct ordered {
        CUgraph graph; /* or NULL */
        struct graph_memory *memory;
        struct holding *holding;
};

/* @of_each: what an allocation from its pool holds the process for. Memory on the host is not charged. */
static bool ordered_begin(struct ordered *ret, size_t size, uint32_t of_each, CUstream stream,
                          bool is_per_thread)
{
        *ret = (struct ordered){ .graph = NULL };
        if (capture_is_active() && graph_capture_find(stream, is_per_thread, &ret->graph))
                ret->memory = graph_memory_new(size, current_device());
        else
                ret->holding = holding_new(HOLDING_POINTER,
                                           of_each & GATE_HOLDS_HOST_POOL ? 0 : size, of_each);
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
        CUresult result;

        if (!pointer)
                return real(pointer, size, stream);
        if (pool_allocate(pointer, size, NULL, (struct pool_stream){ stream, is_per_thread },
                          &result))
                return result;
        if (!ordered_begin(&ordered, size, 0, stream, is_per_thread))
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
        CUresult result;

        if (!pointer || !pool)
                return real(pointer, size, pool, stream);
        if (pool_import_has(pool))
                return CUDA_ERROR_INVALID_VALUE;
        if (pool_allocate(pointer, size, pool, (struct pool_stream){ stream, is_per_thread },
                          &result))
                return result;
        if (!ordered_begin(&ordered, size, holding_get_of_each(key_of(pool)), stream,
                           is_per_thread))
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
static CUresult free_async(__typeof__(&cuMemFreeAsync) real, bool is_per_thread,
                           CUdeviceptr pointer, CUstream stream)
{
        const struct pool_stream order = { stream, is_per_thread };
        struct holding *holding;
        CUresult result;

        if (pool_import_free(pointer, &order, &result) || pool_free(pointer, &order, &result) ||
            memory_free(pointer, &result))
                return result;
        holding = holding_take(HOLDING_POINTER, pointer);
        return holding_settle(holding, real(pointer, stream));
}

CUresult our_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
        return free_async(DRIVER(cuMemFreeAsync), false, pointer, stream);
}

CUresult our_cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
        return free_async(DRIVER(cuMemFreeAsync_ptsz), true, pointer, stream);
}

/*
 * Of a pool of the driver's: a restore would give this process new memory, and leave the old to whoever has imported
 * it. Who has imported what the driver does not say: so it is held while the pool and the memory are there.
 */
static CUresult export_of_driver(void *handle, CUmemoryPool pool, int type,
                                 unsigned long long flags)
{
        CUresult result = DRIVER(cuMemPoolExportToShareableHandle)(handle, pool, type, flags);

        if (result == CUDA_SUCCESS)
                holding_mark_key(HOLDING_POOL, key_of(pool), GATE_HOLDS_EXPORTED);
        return result;
}

CUresult our_cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                              unsigned long long flags)
{
        CUresult result;
        int fd;

        if (!handle || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
            !pool_export(pool, &fd, &result))
                return export_of_driver(handle, pool, type, flags);
        if (result == CUDA_SUCCESS)
                memcpy(handle, &fd, sizeof(fd));
        return result;
}

/* Allocated while something was captured: so it is the driver's, although the pool is ours. */
static bool is_beside_ours(CUdeviceptr pointer)
{
        CUmemoryPool pool = NULL;

        return DRIVER(cuPointerGetAttribute)(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) ==
                       CUDA_SUCCESS &&
               pool && pool_is_exportable(pool);
}

static CUresult export_pointer_of_driver(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
        CUresult result;

        if (is_beside_ours(pointer))
                return CUDA_ERROR_NOT_SUPPORTED;
        result = DRIVER(cuMemPoolExportPointer)(data, pointer);
        if (result == CUDA_SUCCESS)
                holding_mark(pointer, GATE_HOLDS_EXPORTED);
        return result;
}

CUresult our_cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
        struct gate_ticket ticket;
        CUresult result;

        if (!data || !pool_export_pointer(pointer, &ticket, &result))
                return export_pointer_of_driver(data, pointer);
        if (result == CUDA_SUCCESS)
                memcpy(data, &ticket, sizeof(ticket));
        return result;
}

/* Of a process without a gate. Not charged: its owner pays. But it keeps the driver from restoring this process. */
static CUresult imported(enum holding_kind kind, CUresult result, uint64_t key)
{
        struct holding *holding =
                result == CUDA_SUCCESS ? holding_new(kind, 0, GATE_HOLDS_IMPORTED) : NULL;

        return holding ? holding_keep(holding, result, key) : result;
}

CUresult our_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                unsigned long long flags)
{
        struct gate_ticket ticket;
        CUresult result;

        if (pool && !flags && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
            ticket_from_fd(&ticket, (int)(intptr_t)handle))
                return pool_import(pool, &ticket);
        result = DRIVER(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags);
        return imported(HOLDING_POOL, result, result == CUDA_SUCCESS ? key_of(*pool) : 0);
}

CUresult our_cuMemPoolDestroy(CUmemoryPool pool)
{
        struct holding *holding = holding_take(HOLDING_POOL, key_of(pool));

        pool_ends(pool);
        pool_import_end(pool);
        return holding_settle(holding, DRIVER(cuMemPoolDestroy)(pool));
}

static bool understand(struct gate_ticket *ret_ticket, const CUmemPoolPtrExportData *data)
{
        memcpy(ret_ticket, data, sizeof(*ret_ticket));
        return ticket_is(ret_ticket);
}

/* Outlives the pool; freed as any other memory. */
CUresult our_cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                    CUmemPoolPtrExportData *data)
{
        bool is_ticket, is_ours = pool_import_has(pool);
        struct gate_ticket ticket;
        CUresult result;

        if (pointer && data) {
                is_ticket = understand(&ticket, data);
                if (is_ticket != is_ours)
                        return CUDA_ERROR_INVALID_VALUE;
                if (is_ours)
                        return pool_import_pointer(pointer, pool, &ticket);
        }
        result = DRIVER(cuMemPoolImportPointer)(pointer, pool, data);
        return imported(HOLDING_POINTER, result, result == CUDA_SUCCESS ? *pointer : 0);
}

/* One that is imported gives no memory. */
CUresult our_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (pool_import_has(pool))
                return CUDA_ERROR_INVALID_VALUE;
        return DRIVER(cuDeviceSetMemPool)(device, pool);
}

CUresult our_cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool)
{
        if (!visible_has_location(location))
                return CUDA_ERROR_INVALID_DEVICE;
        if (pool_import_has(pool))
                return CUDA_ERROR_INVALID_VALUE;
        return DRIVER(cuMemSetMemPool)(location, type, pool);
}

/*
 * Measured on an H100: with a pool of managed memory, even an empty one, the checkpoint succeeds and the restore loses
 * the process; with memory of a pool on the host that has a maximum size, the checkpoint never returns.
 */
static void note_kind(CUmemoryPool pool, int type, const CUmemLocation *location)
{
        bool is_on_host = location->type == CU_MEM_LOCATION_TYPE_HOST ||
                          location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                          location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;

        if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
                holding_note_pool(key_of(pool), GATE_HOLDS_MANAGED_POOL, GATE_HOLDS_MANAGED_POOL);
        else if (is_on_host)
                holding_note_pool(key_of(pool), 0, GATE_HOLDS_HOST_POOL);
}

/* The pools that are there without being made. What such a one of managed memory does was not measured. */

CUresult our_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
        CUresult result;

        if (!visible_has_location(location))
                return CUDA_ERROR_INVALID_DEVICE;
        result = DRIVER(cuMemGetDefaultMemPool)(pool, location, type);
        if (result == CUDA_SUCCESS)
                note_kind(*pool, type, location);
        return result;
}

CUresult our_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
        CUresult result;

        if (!visible_has_location(location))
                return CUDA_ERROR_INVALID_DEVICE;
        result = DRIVER(cuMemGetMemPool)(pool, location, type);
        if (result == CUDA_SUCCESS)
                note_kind(*pool, type, location);
        return result;
}

CUresult our_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
        CUresult result;

        if (props && !visible_has_location(&props->location))
                return CUDA_ERROR_INVALID_DEVICE;
        result = DRIVER(cuMemPoolCreate)(pool, props);
        if (result == CUDA_SUCCESS) {
                note_kind(*pool, props->allocType, &props->location);
                pool_created(*pool, props);
        }
        return result;
}

CUresult our_cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        CUresult result = DRIVER(cuMemPoolSetAttribute)(pool, attribute, value);

        if (result == CUDA_SUCCESS)
                pool_note_attribute(pool, attribute, value);
        return result;
}

/* The driver's pool has what was captured; the application sees one. */
CUresult our_cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        CUresult result = DRIVER(cuMemPoolGetAttribute)(pool, attribute, value);
        uint64_t ours = 0;
        uint64_t sum;

        if (result == CUDA_SUCCESS)
                ours = pool_get_attribute(pool, attribute) +
                       pool_import_get_attribute(pool, attribute);
        if (ours == 0)
                return result;
        memcpy(&sum, value, sizeof(sum));
        sum += ours;
        memcpy(value, &sum, sizeof(sum));
        return CUDA_SUCCESS;
}

CUresult our_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
        CUresult result = DRIVER(cuMemPoolTrimTo)(pool, keep);

        if (result == CUDA_SUCCESS)
                pool_trim(pool, keep);
        return result;
}

/* A right that is taken away is the driver's to know: mappings that are there keep it. */
CUresult our_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
        CUresult result;

        if (!visible_has_access(access, count))
                return CUDA_ERROR_INVALID_DEVICE;
        result = DRIVER(cuMemPoolSetAccess)(pool, access, count);
        if (result == CUDA_SUCCESS)
                result = pool_let(pool, access, count);
        return result == CUDA_SUCCESS ? pool_import_let(pool, access, count) : result;
}

static CUresult waited(CUresult result)
{
        if (result == CUDA_SUCCESS) {
                pool_give_back();
                (void)pool_import_give_back();
        }
        return result;
}

CUresult our_cuCtxSynchronize(void)
{
        return waited(DRIVER(cuCtxSynchronize)());
}

CUresult our_cuCtxSynchronize_v2(CUcontext context)
{
        return waited(DRIVER(cuCtxSynchronize_v2)(context));
}

CUresult our_cuStreamSynchronize(CUstream stream)
{
        return waited(DRIVER(cuStreamSynchronize)(stream));
}

CUresult our_cuStreamSynchronize_ptsz(CUstream stream)
{
        return waited(DRIVER(cuStreamSynchronize_ptsz)(stream));
}

CUresult our_cuEventSynchronize(CUevent event)
{
        return waited(DRIVER(cuEventSynchronize)(event));
}

/* After the call, a new stream may have the same handle. */
CUresult our_cuStreamDestroy(CUstream stream)
{
        pool_drop_stream(stream);
        pool_import_drop_stream(stream);
        return capture_destroy_stream(DRIVER(cuStreamDestroy), stream);
}

CUresult our_cuStreamDestroy_v2(CUstream stream)
{
        pool_drop_stream(stream);
        pool_import_drop_stream(stream);
        return capture_destroy_stream(DRIVER(cuStreamDestroy_v2), stream);
}
