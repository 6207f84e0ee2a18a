/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "gate/entry.h"
#include "gate/mapping.h"
#include "gate/peer.h"
#include "gate/pool-internal.h"
#include "gate/settings.h"
#include "gate/ticket.h"

struct pools pools = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t key_of(CUmemoryPool handle)
{
        return (uint64_t)(uintptr_t)handle;
}

struct pool *pool_at(CUmemoryPool handle)
{
        return (struct pool *)hash_find(&pools.by_handle, key_of(handle));
}

bool pool_is_possible(CUdevice device)
{
        return !settings.is_native && !settings.has_native_pools && mapping_is_possible(device);
}

int pool_count_devices(void)
{
        static _Atomic int known;
        int n = atomic_load(&known);

        if (n == 0 && DRIVER(cuDeviceGetCount)(&n) == CUDA_SUCCESS)
                atomic_store(&known, n);
        return n;
}

static void read_attributes(struct pool *pool, CUmemoryPool handle)
{
        int is_opportunistic = 1, may_depend = 1;

        (void)DRIVER(cuMemPoolGetAttribute)(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                            &pool->threshold);
        (void)DRIVER(cuMemPoolGetAttribute)(handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                            &is_opportunistic);
        (void)DRIVER(cuMemPoolGetAttribute)(
                handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &may_depend);
        pool->is_opportunistic = is_opportunistic;
        pool->may_depend = may_depend;
}

/* One that another thread has added meanwhile is as good. */
static void pool_add(CUmemoryPool handle, CUdevice device, int handle_types, uint64_t limit)
{
        struct pool *pool = calloc(1, sizeof(*pool));

        if (!pool)
                return;
        pool->device = device;
        pool->handle_types = handle_types;
        pool->limit = limit;
        read_attributes(pool, handle);
        pthread_mutex_lock(&pools.lock);
        if (!pool_at(handle)) {
                hash_add(&pools.by_handle, &pool->node, key_of(handle));
                pool->next = pools.first;
                pools.first = pool;
                pool = NULL;
        }
        pthread_mutex_unlock(&pools.lock);
        free(pool);
}

static bool is_known(CUmemoryPool handle, CUdevice *ret_device)
{
        const struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool)
                *ret_device = pool->device;
        pthread_mutex_unlock(&pools.lock);
        return pool;
}

static bool is_default(CUmemoryPool handle, CUdevice device)
{
        CUmemoryPool preset = NULL;

        return DRIVER(cuDeviceGetDefaultMemPool)(&preset, device) == CUDA_SUCCESS &&
               preset == handle;
}

/*
 * The pool of @handle, or the current one of @device, which becomes its device; a default one gets its
 * stock when it is first used.
 */
bool pool_choose(CUmemoryPool *handle, CUdevice *device)
{
        if (!*handle && DRIVER(cuDeviceGetMemPool)(handle, *device) != CUDA_SUCCESS)
                return false;
        if (is_known(*handle, device))
                return true;
        for (CUdevice i = 0; i < pool_count_devices(); i++)
                if (is_default(*handle, i) && pool_is_possible(i)) {
                        pool_add(*handle, i, CU_MEM_HANDLE_TYPE_NONE, 0);
                        *device = i;
                        return true;
                }
        return false;
}

/* Who has a vGPU can give tickets. */
static bool is_possible_as(int handle_types)
{
        struct gate_ticket ticket;

        return handle_types == CU_MEM_HANDLE_TYPE_NONE ||
               (handle_types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                ticket_identify(&ticket));
}

static bool is_for_us(const CUmemPoolProps *props)
{
        return props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
               is_possible_as(props->handleTypes) &&
               props->location.type == CU_MEM_LOCATION_TYPE_DEVICE && props->usage == 0 &&
               pool_is_possible(props->location.id);
}

void pool_created(CUmemoryPool handle, const CUmemPoolProps *props)
{
        if (is_for_us(props))
                pool_add(handle, props->location.id, props->handleTypes,
                         stock_chunk_size(props->maxSize));
}

void pool_ends(CUmemoryPool handle)
{
        struct pool *pool;
        CUdevice device;

        if (!is_known(handle, &device) || is_default(handle, device))
                return;
        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool) {
                hash_remove(&pools.by_handle, &pool->node);
                pool->is_destroyed = true;
                pool->threshold = 0;
        }
        pthread_mutex_unlock(&pools.lock);
}

void pool_note_attribute(CUmemoryPool handle, int attribute, const void *value)
{
        struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool && attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
                memcpy(&pool->threshold, value, sizeof(pool->threshold));
        else if (pool && attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC)
                pool->is_opportunistic = *(const int *)value;
        else if (pool && attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
                pool->may_depend = *(const int *)value;
        else if (pool && attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
                pool->stock.reserved_high = pool->stock.reserved;
        else if (pool && attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
                pool->stock.used_high = pool->stock.used;
        pthread_mutex_unlock(&pools.lock);
}

static uint64_t attribute_of(const struct stock *stock, int attribute)
{
        switch (attribute) {
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
                return stock->reserved;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                return stock->reserved_high;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
                return stock->used;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                return stock->used_high;
        default:
                return 0;
        }
}

uint64_t pool_get_attribute(CUmemoryPool handle, int attribute)
{
        const struct pool *pool;
        uint64_t value = 0;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool)
                value = attribute_of(&pool->stock, attribute);
        pthread_mutex_unlock(&pools.lock);
        return value;
}

/* Rare enough to be done with the lock: what is there stays meanwhile. */
CUresult pool_let(CUmemoryPool handle, const CUmemAccessDesc *access, size_t n)
{
        CUresult first_error = CUDA_SUCCESS;
        struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        for (size_t i = 0; pool && i < n; i++) {
                uint64_t bit = access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                       ? 1ull << (access[i].location.id % PEER_DEVICES_MAX)
                                       : 0;

                pool->peers = access[i].flags ? pool->peers | bit : pool->peers & ~bit;
        }
        for (struct stock_chunk *it = pool ? pool->stock.chunks : NULL; it; it = it->next) {
                CUresult result = memory_let(it->mapping, pool->peers);

                if (first_error == CUDA_SUCCESS)
                        first_error = result;
        }
        pthread_mutex_unlock(&pools.lock);
        return first_error;
}
