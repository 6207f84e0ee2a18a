/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/pool.h"

#include <string.h>

#include "gate/capture.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/idle-lock.h"
#include "gate/mapping.h"
#include "gate/pool-internal.h"
#include "gate/quota.h"

/* Allocations. */

static void enter(struct stock_range *range)
{
        hash_add(&pools.allocations, &range->node, range->address);
}

/* A pool that is gone is the driver's to complain about. */
static struct stock_range *take(CUmemoryPool handle, uint64_t size, const struct stock_key *key,
                                unsigned int how, struct stock_mark **ret_mark)
{
        struct stock_range *range = NULL;
        struct pool *pool;

        *ret_mark = NULL;
        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool && !pool->may_depend)
                how &= ~(unsigned int)STOCK_AFTER_OTHERS;
        if (pool)
                range = stock_take(&pool->stock, size, key, how, ret_mark);
        if (!range && pool && pool->is_opportunistic && stock_has_marks(&pool->stock)) {
                pool_look(pool);
                range = stock_take(&pool->stock, size, key, how, ret_mark);
        }
        if (range)
                enter(range);
        pthread_mutex_unlock(&pools.lock);
        return range;
}

/* Puts a new chunk into the pool. */
static struct stock_range *add(CUmemoryPool handle, struct mapping *mapping, uint64_t size)
{
        struct stock_range *range = NULL;
        struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool) {
                range = stock_add(&pool->stock, mapping, mapping->address, size);
                pool->growing -= mapping->size;
        }
        if (range) {
                memory_set_chunk(mapping, range->chunk);
                enter(range);
                atomic_store(&pools.is_used, true);
                memory_set_reserve(&pool_reserve);
        }
        pthread_mutex_unlock(&pools.lock);
        return range;
}

static uint64_t peers_of(CUmemoryPool handle)
{
        const struct pool *pool;
        uint64_t peers;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        peers = pool ? pool->peers : 0;
        pthread_mutex_unlock(&pools.lock);
        return peers;
}

/* False: it would be more than it may have. */
static bool try_to_reserve(CUmemoryPool handle, uint64_t bytes)
{
        struct pool *pool;
        bool may;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        may = !pool || !pool->limit ||
              (bytes <= pool->limit && pool->stock.reserved + pool->growing <= pool->limit - bytes);
        if (pool && may)
                pool->growing += bytes;
        pthread_mutex_unlock(&pools.lock);
        return may;
}

static void unreserve(CUmemoryPool handle, uint64_t bytes)
{
        struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        if (pool)
                pool->growing -= bytes;
        pthread_mutex_unlock(&pools.lock);
}

/* What it has free makes room, where it is in pieces that do not fit. */
static bool reserve(CUmemoryPool handle, uint64_t bytes)
{
        if (try_to_reserve(handle, bytes))
                return true;
        pool_trim(handle, 0);
        return try_to_reserve(handle, bytes);
}

static CUresult grow(struct stock_range **ret_range, CUmemoryPool handle, CUdevice device,
                     uint64_t size, bool is_patient)
{
        struct mapping *mapping;
        uint64_t peers;
        CUresult result;

        if (!reserve(handle, stock_chunk_size(size)))
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = memory_create_chunk(&mapping, device, stock_chunk_size(size), is_patient);
        if (result != CUDA_SUCCESS) {
                unreserve(handle, stock_chunk_size(size));
                return result;
        }
        peers = peers_of(handle);
        if (peers)
                (void)memory_let(mapping, peers);
        *ret_range = add(handle, mapping, size);
        if (*ret_range &&
            peers_of(handle) != peers) /* pool_let() may have passed by before it was there */
                (void)memory_let(mapping, peers_of(handle));
        if (*ret_range)
                return CUDA_SUCCESS;
        memory_end(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

static void give_back(struct stock_range *range, struct stock_mark *mark)
{
        pthread_mutex_lock(&pools.lock);
        hash_remove(&pools.allocations, &range->node);
        stock_give_back(range->chunk->stock, range, mark);
        pthread_mutex_unlock(&pools.lock);
}

static CUresult take_and_wait(struct stock_range **ret_range, CUmemoryPool handle, uint64_t size,
                              const struct stock_key *key, const struct pool_stream *stream)
{
        struct stock_mark *mark;
        struct stock_range *range =
                take(handle, size, key, STOCK_AFTER_OTHERS | STOCK_WASTEFUL, &mark);
        CUresult result = CUDA_SUCCESS;

        if (!range)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (mark) {
                result = mark_wait(mark, stream);
                if (result != CUDA_SUCCESS)
                        give_back(range, mark);
                mark_drop(mark);
        }
        if (result == CUDA_SUCCESS)
                *ret_range = range;
        return result;
}

/*
 * Only when there is no other memory does one stream wait for another. The mark is in no list meanwhile, where
 * pool_drop_context() would find it: so its context must not end.
 */
static CUresult take_late(struct stock_range **ret_range, CUmemoryPool handle, uint64_t size,
                          const struct stock_key *key, const struct pool_stream *stream)
{
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

        idle_hold();
        if (!idle_is_paused()) /* a mark may be of the context that ends */
                result = take_and_wait(ret_range, handle, size, key, stream);
        idle_release();
        return result;
}

static CUresult allocate(CUdeviceptr *ret_address, CUmemoryPool handle, CUdevice device,
                         uint64_t size, const struct stock_key *key,
                         const struct pool_stream *stream)
{
        struct stock_mark *mark;
        struct stock_range *range = take(handle, size, key, STOCK_AT_ONCE, &mark);
        CUresult result = CUDA_SUCCESS;

        if (!range)
                result = grow(&range, handle, device, size, false);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                result = take_late(&range, handle, size, key, stream);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                result = grow(&range, handle, device, size, true);
        if (result != CUDA_SUCCESS)
                return result;
        quota_count_allocations(1);
        *ret_address = range->address;
        return CUDA_SUCCESS;
}

static bool device_of_context(CUcontext context, CUdevice *ret_device)
{
        CUresult result = DRIVER(cuCtxPushCurrent_v2)(context);

        if (result != CUDA_SUCCESS)
                return false;
        result = DRIVER(cuCtxGetDevice)(ret_device);
        DRIVER(cuCtxPopCurrent_v2)(&context);
        return result == CUDA_SUCCESS;
}

/* The current context need not be the stream's. */
static bool device_of_stream(const struct pool_stream *stream, CUdevice *ret_device)
{
        CUcontext context, current = NULL;

        if (DRIVER(cuCtxGetDevice)(ret_device) != CUDA_SUCCESS || !stream_is_one(stream))
                return false;
        if (!stream_is_named(stream) || pool_count_devices() == 1)
                return true;
        if (DRIVER(cuStreamGetCtx)(stream->handle, &context) != CUDA_SUCCESS)
                return false;
        DRIVER(cuCtxGetCurrent)(&current);
        return context == current || device_of_context(context, ret_device);
}

bool pool_allocate(CUdeviceptr *ret_address, size_t size, CUmemoryPool pool,
                   struct pool_stream stream, CUresult *ret_result)
{
        struct stock_key key;
        CUdevice device;

        if (size == 0 || capture_is_active() || !device_of_stream(&stream, &device) ||
            !pool_is_possible(device) || !pool_choose(&pool, &device))
                return false;
        key = stream_key(&stream);
        *ret_result = size > UINT64_MAX / 2
                              ? CUDA_ERROR_OUT_OF_MEMORY
                              : allocate(ret_address, pool, device, size, &key, &stream);
        return true;
}

/* Frees. */

/* The allocation at @address, which nobody else frees from now on. */
static struct stock_range *start_free(CUdeviceptr address)
{
        struct stock_range *range;

        pthread_mutex_lock(&pools.lock);
        range = (struct stock_range *)hash_find(&pools.allocations, address);
        if (range && range->is_being_freed)
                range = NULL;
        if (range)
                range->is_being_freed = true;
        pthread_mutex_unlock(&pools.lock);
        return range;
}

static void stop_free(struct stock_range *range)
{
        pthread_mutex_lock(&pools.lock);
        range->is_being_freed = false;
        pthread_mutex_unlock(&pools.lock);
}

static CUresult free_in_order(struct stock_range *range, const struct pool_stream *stream)
{
        struct stock_mark *mark;
        CUresult result = mark_make(&mark, stream);

        if (result != CUDA_SUCCESS)
                result = mark_wait_instead(result, stream);
        if (result != CUDA_SUCCESS) {
                stop_free(range);
                return result;
        }
        if (mark)
                mark->key = stream_key(stream);
        give_back(range, mark);
        if (mark)
                mark_drop(mark);
        return CUDA_SUCCESS;
}

bool pool_free(CUdeviceptr address, const struct pool_stream *stream, CUresult *ret_result)
{
        struct stock_range *range;

        if (!atomic_load(&pools.is_used) || (stream && stream_is_captured(stream)))
                return false;
        range = start_free(address);
        if (!range)
                return false;
        *ret_result = CUDA_SUCCESS;
        if (stream)
                *ret_result = free_in_order(range, stream);
        else
                give_back(range, NULL);
        if (*ret_result == CUDA_SUCCESS)
                quota_count_allocations(-1);
        return true;
}

/* Questions. */

static struct stock_range *find_around(CUdeviceptr address)
{
        struct stock_range *range = (struct stock_range *)hash_find(&pools.allocations, address);
        struct stock_chunk *chunk;

        if (range)
                return range;
        chunk = memory_chunk_at(address);
        for (range = chunk ? chunk->first : NULL; range; range = range->behind)
                if (address - range->address < range->size)
                        break;
        return range && address - range->address < range->requested ? range : NULL;
}

bool pool_find(CUdeviceptr address, struct memory_info *ret_info)
{
        struct stock_range *range;

        if (!atomic_load(&pools.is_used))
                return false;
        pthread_mutex_lock(&pools.lock);
        range = find_around(address);
        if (range) {
                const struct stock_chunk *chunk = range->chunk;
                uint64_t offset = range->address - chunk->mapping->address;
                uint64_t granule = chunk->is_large ? STOCK_CHUNK_SIZE : STOCK_GRANULE;

                *ret_info = (struct memory_info){
                        .start = range->address,
                        .size = range->requested,
                        .buffer_id = chunk->mapping->buffer_id + offset / granule,
                        .pool = (CUmemoryPool)(uintptr_t)pool_of(chunk->stock)->node.key,
                        .handle_types = pool_of(chunk->stock)->handle_types,
                };
        }
        pthread_mutex_unlock(&pools.lock);
        return range != NULL;
}

/* What the parent has is not the child's; its memory stays where it is. */
void pool_forget(void)
{
        pthread_mutex_init(&pools.lock, NULL);
        memset(&pools.by_handle, 0, sizeof(pools.by_handle));
        memset(&pools.allocations, 0, sizeof(pools.allocations));
        pools.first = NULL;
        pools.unused_marks = NULL;
        atomic_store(&pools.is_used, false);
}
