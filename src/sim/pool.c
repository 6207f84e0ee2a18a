/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools and stream-ordered allocation.
 *
 * Memory is taken when cuMemAllocAsync() is called and given back when the
 * stream comes to the cuMemFreeAsync(): a pool keeps nothing for later, which a
 * program can't tell from one whose release threshold is 0.
 *
 * A pool that is exported is a descriptor of nothing: what an importer can do with it is to import
 * pointers, and those name the process and its descriptor of the memory.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/capture.h"
#include "sim/graph.h"
#include "sim/mapping.h"
#include "sim/memory.h"
#include "sim/stream.h"

#define ATTRIBUTES_END (CU_MEMPOOL_ATTR_USED_MEM_HIGH + 1)

enum pool_kind { POOL_OF_DEVICE = 0, POOL_OF_HOST, POOL_OF_MANAGED };

/* Pools of all kinds take their memory of a device here: a program cannot tell. */
struct CUmemPoolHandle_st {
        struct object object;
        enum pool_kind kind;
        CUdevice device; /* of those of a device */
        size_t size_max; /* 0: none */
        bool is_default, is_imported;
        int handle_types; /* as what it can be exported */
        uint64_t attribute[ATTRIBUTES_END];
};

static CUmemoryPool new_pool(CUdevice device)
{
        CUmemoryPool pool = calloc(1, sizeof(*pool));

        if (!pool)
                return NULL;
        pool->device = device;
        pool->attribute[CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = 1;
        pool->attribute[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC] = 1;
        pool->attribute[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] = 1;
        object_add(&pool->object, OBJECT_POOL);
        return pool;
}

static struct {
        size_t n_managed;
        CUmemoryPool of_host, of_managed; /* those that are there without being made; or NULL */
} pools;

static CUmemoryPool new_pool_of(enum pool_kind kind)
{
        CUmemoryPool pool = new_pool(0);

        if (!pool)
                return NULL;
        pool->kind = kind;
        pools.n_managed += kind == POOL_OF_MANAGED;
        return pool;
}

static CUmemoryPool get_default_of(enum pool_kind kind)
{
        CUmemoryPool *pool = kind == POOL_OF_HOST ? &pools.of_host : &pools.of_managed;

        if (!*pool)
                *pool = new_pool_of(kind);
        if (*pool)
                (*pool)->is_default = true;
        return *pool;
}

bool memory_has_managed_pool(void)
{
        return pools.n_managed > 0;
}

bool memory_has_bounded_host_pool(void)
{
        for (size_t i = 0; i < process.regions.n; i++) {
                const struct region *region = (struct region *)process.regions.ranges[i];

                if (region->pool && region->pool->kind == POOL_OF_HOST && region->pool->size_max)
                        return true;
        }
        return false;
}

static CUmemoryPool get_default(CUdevice device)
{
        struct device *of = &process.device[device];

        if (!of->default_pool) {
                of->default_pool = new_pool(device);
                if (of->default_pool)
                        of->default_pool->is_default = true;
        }
        return of->default_pool;
}

static CUmemoryPool get_current(CUdevice device)
{
        CUmemoryPool pool = object_find(process.device[device].pool, OBJECT_POOL);

        return pool ? pool : get_default(device);
}

/* What is used is counted when it is asked for. */
static uint64_t count_used(CUmemoryPool pool)
{
        uint64_t used = 0;

        for (size_t i = 0; i < process.regions.n; i++) {
                const struct region *region = (struct region *)process.regions.ranges[i];

                if (region->pool == pool)
                        used += region->range.size;
        }
        return used;
}

static void note_high(CUmemoryPool pool)
{
        uint64_t used = count_used(pool);

        if (used > pool->attribute[CU_MEMPOOL_ATTR_USED_MEM_HIGH])
                pool->attribute[CU_MEMPOOL_ATTR_USED_MEM_HIGH] =
                        pool->attribute[CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = used;
}

static CUresult allocate_in_capture(CUdeviceptr *pointer, size_t size, CUstream stream)
{
        if (capture_is_invalid(stream->capture))
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return graph_allocate(capture_get_graph(stream->capture), context_owner(stream->context),
                              size, pointer);
}

/* @pool NULL: that of the stream's device. */
static CUresult allocate(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream handle)
{
        struct region *region;
        CUstream stream;
        CUresult result;

        if (!pointer || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        if (stream->capture)
                return allocate_in_capture(pointer, size, stream);
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (!pool)
                pool = get_current(stream->context->device);
        if (!pool)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (pool->is_imported)
                return CUDA_ERROR_INVALID_VALUE;
        if (pool->size_max && (size > pool->size_max || count_used(pool) > pool->size_max - size))
                return CUDA_ERROR_OUT_OF_MEMORY;
        result =
                memory_allocate(&region, REGION_POOLED, context_owner(stream->context), pool, size);
        if (result != CUDA_SUCCESS)
                return result;
        note_high(pool);
        *pointer = region->range.address;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
        PROCESS_LOCKED();

        return allocate(pointer, size, NULL, stream);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                     CUstream stream)
{
        PROCESS_LOCKED();

        if (!object_find(pool, OBJECT_POOL))
                return CUDA_ERROR_INVALID_VALUE;
        return allocate(pointer, size, pool, stream);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
        struct region *region;
        struct work *work;
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        if (stream->capture)
                return capture_is_invalid(stream->capture)
                               ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                               : graph_release(capture_get_graph(stream->capture), pointer);
        region = memory_find(pointer);
        if (region && region->kind == REGION_PLAIN && region->range.address == pointer) {
                memory_release(region); /* it is the caller's to see that nothing uses it */
                return CUDA_SUCCESS;
        }
        if (!region || region->kind != REGION_POOLED || region->range.address != pointer ||
            region->is_being_freed)
                return CUDA_ERROR_INVALID_VALUE;
        work = work_new(WORK_FREE);
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        work->free.address = pointer;
        region->is_being_freed = true;
        return stream_submit_locked(stream, work);
}

static CUresult give_pool(CUmemoryPool *pool, CUdevice device, CUmemoryPool (*get)(CUdevice))
{
        PROCESS_LOCKED();

        if (!pool)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        *pool = get(device);
        return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
        return give_pool(pool, device, get_default);
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
        return give_pool(pool, device, get_current);
}

CUresult sim_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
        PROCESS_LOCKED();

        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (!object_find(pool, OBJECT_POOL) || pool->device != device || pool->is_imported ||
            pool->kind != POOL_OF_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        process.device[device].pool = pool;
        return CUDA_SUCCESS;
}

static bool find_kind(enum pool_kind *ret_kind, int type, const CUmemLocation *location)
{
        bool is_of_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;

        if (is_of_device && !process_device(location->id))
                return false;
        if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
                *ret_kind = POOL_OF_MANAGED;
        else if (type == CU_MEM_ALLOCATION_TYPE_PINNED && is_of_device)
                *ret_kind = POOL_OF_DEVICE;
        else if (type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                 location->type >= CU_MEM_LOCATION_TYPE_HOST &&
                 location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
                *ret_kind = POOL_OF_HOST;
        else
                return false;
        return true;
}

static CUresult give_pool_of(CUmemoryPool *pool, const CUmemLocation *location, int type,
                             CUmemoryPool (*get)(CUdevice))
{
        enum pool_kind kind;
        PROCESS_LOCKED();

        if (!pool || !location || !find_kind(&kind, type, location))
                return CUDA_ERROR_INVALID_VALUE;
        *pool = kind == POOL_OF_DEVICE ? get(location->id) : get_default_of(kind);
        return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
        return give_pool_of(pool, location, type, get_default);
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
        return give_pool_of(pool, location, type, get_current);
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
        enum pool_kind kind;
        PROCESS_LOCKED();

        if (!pool || !props || !find_kind(&kind, props->allocType, &props->location))
                return CUDA_ERROR_INVALID_VALUE;
        if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_NOT_SUPPORTED;
        *pool = kind == POOL_OF_DEVICE ? new_pool(props->location.id) : new_pool_of(kind);
        if (!*pool)
                return CUDA_ERROR_OUT_OF_MEMORY;
        (*pool)->size_max = props->maxSize;
        (*pool)->handle_types = props->handleTypes;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool pool)
{
        PROCESS_LOCKED();

        if (!object_find(pool, OBJECT_POOL) || pool->is_default)
                return CUDA_ERROR_INVALID_VALUE;
        memory_release_pool(pool);
        pools.n_managed -= pool->kind == POOL_OF_MANAGED;
        object_remove(&pool->object);
        free(pool);
        return CUDA_SUCCESS;
}

int memory_pool_handle_types(CUmemoryPool pool)
{
        return pool->handle_types;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
        PROCESS_LOCKED();

        (void)keep;
        return object_find(pool, OBJECT_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static size_t size_of(int attribute)
{
        return attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? sizeof(int) : sizeof(uint64_t);
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        PROCESS_LOCKED();

        if (!object_find(pool, OBJECT_POOL) || !value || attribute < 1 ||
            attribute >= ATTRIBUTES_END || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
            attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
                return CUDA_ERROR_INVALID_VALUE;
        pool->attribute[attribute] = 0;
        memcpy(&pool->attribute[attribute], value, size_of(attribute));
        return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        PROCESS_LOCKED();

        if (!object_find(pool, OBJECT_POOL) || !value || attribute < 1 ||
            attribute >= ATTRIBUTES_END)
                return CUDA_ERROR_INVALID_VALUE;
        pool->attribute[CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT] =
                pool->attribute[CU_MEMPOOL_ATTR_USED_MEM_CURRENT] = count_used(pool);
        memcpy(value, &pool->attribute[attribute], size_of(attribute));
        return CUDA_SUCCESS;
}

/* Pooled memory is within reach of all devices here. */

CUresult sim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
        PROCESS_LOCKED();

        if (!object_find(pool, OBJECT_POOL) || (!access && count))
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
        PROCESS_LOCKED();

        if (!object_find(pool, OBJECT_POOL) || !flags || !location || !process_device(location->id))
                return CUDA_ERROR_INVALID_VALUE;
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                              unsigned long long flags)
{
        int fd;
        PROCESS_LOCKED();

        if (!handle || !object_find(pool, OBJECT_POOL) || flags || !(pool->handle_types & type))
                return CUDA_ERROR_INVALID_VALUE;
        fd = memfd_create("pool", MFD_CLOEXEC);
        if (fd < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        memcpy(handle, &fd, sizeof(fd));
        return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                unsigned long long flags)
{
        int fd = (int)(intptr_t)handle;
        PROCESS_LOCKED();

        if (!pool || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
            fcntl(fd, F_GETFD) < 0)
                return CUDA_ERROR_INVALID_VALUE;
        *pool = new_pool(0);
        if (!*pool)
                return CUDA_ERROR_OUT_OF_MEMORY;
        (*pool)->is_imported = true;
        return CUDA_SUCCESS;
}

/* What CUmemPoolPtrExportData has here. */
struct exported_pointer {
        int pid, fd;
        uint64_t offset, size;
};

_Static_assert(sizeof(struct exported_pointer) <= sizeof(CUmemPoolPtrExportData), "64 bytes");

CUresult sim_cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
        struct exported_pointer exported = { .pid = getpid() };
        CUresult result = CUDA_SUCCESS;
        struct region *region;
        PROCESS_LOCKED();

        region = memory_find(pointer);
        if (!data || !region || region->kind != REGION_POOLED || region->range.address != pointer ||
            !region->pool->handle_types)
                return CUDA_ERROR_INVALID_VALUE;
        if (region->shared_fd < 0)
                result = memory_file_export(region->mapping->file, &region->shared_fd);
        if (result != CUDA_SUCCESS)
                return result;
        exported.fd = region->shared_fd;
        exported.offset = pointer - region->mapping->address;
        exported.size = region->range.size;
        memset(data, 0, sizeof(*data));
        memcpy(data, &exported, sizeof(exported));
        return CUDA_SUCCESS;
}

static CUresult import_file(struct memory_file **ret_file, const struct exported_pointer *exported)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", exported->pid, exported->fd);
        fd = open(path, O_RDWR | O_CLOEXEC);
        return fd < 0 ? CUDA_ERROR_INVALID_VALUE : memory_file_import(ret_file, fd);
}

CUresult sim_cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                    CUmemPoolPtrExportData *data)
{
        CLEANUP(memory_file_unrefp) struct memory_file *file = NULL;
        CLEANUP(mapping_freep) struct mapping *mapping = NULL;
        struct exported_pointer exported;
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!pointer || !data || !object_find(pool, OBJECT_POOL) || !pool->is_imported)
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(&exported, data, sizeof(exported));
        result = import_file(&file, &exported);
        if (result == CUDA_SUCCESS)
                result = mapping_create(&mapping, file, 0);
        if (result == CUDA_SUCCESS)
                result = mapping_set_access(mapping, UINT32_MAX, UINT32_MAX);
        if (result == CUDA_SUCCESS)
                result = memory_add(&region, REGION_POOLED, mapping->address + exported.offset,
                                    exported.size);
        if (result != CUDA_SUCCESS)
                return result;
        region->context = context;
        region->device = context->device;
        region->pool = pool;
        region->mapping = TAKE(mapping);
        *pointer = region->range.address;
        return CUDA_SUCCESS;
}
