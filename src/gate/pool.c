/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/graph.h"
#include "gate/idle-lock.h"
#include "gate/mapping.h"
#include "gate/peer.h"
#include "gate/quota.h"
#include "gate/settings.h"
#include "gate/stock.h"

#define EVENT_WITHOUT_TIMING 2

/* The longest that an allocation waits for frees, in vain where they wait for its own thread. */
#define RECLAIM_NS      10000000000u
#define RECLAIM_STEP_NS 50000

/* Streams of which one look at the marks remembers that they are not done. */
#define BUSY_MAX 8

struct pool {
        struct hash_node node; /* first: by the driver's handle */
        struct pool *next;
        CUdevice device;
        uint64_t peers; /* a bit for each other device that may use its memory */
        uint64_t threshold;
        bool is_opportunistic, may_depend;
        bool is_destroyed; /* by the application, which still has memory of it */
        struct stock stock;
};

static struct {
        pthread_mutex_t lock; /* the driver is not called with it, but for a look at an event */
        struct hash by_handle;
        struct hash allocations;
        struct pool *first;
        struct stock_mark *unused_marks;
        _Atomic uint64_t n_moments; /* before and behind each mark */
        _Atomic bool is_used;
} pools = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t key_of(CUmemoryPool handle)
{
        return (uint64_t)(uintptr_t)handle;
}

static struct pool *pool_of(struct stock *stock)
{
        return (struct pool *)((char *)stock - offsetof(struct pool, stock));
}

static struct pool *find_pool(CUmemoryPool handle)
{
        return (struct pool *)hash_find(&pools.by_handle, key_of(handle));
}

static bool is_possible(CUdevice device)
{
        return !settings.is_native && !settings.has_native_pools && mapping_is_possible(device);
}

static int count_devices(void)
{
        static _Atomic int known;
        int n = atomic_load(&known);

        if (n == 0 && DRIVER(cuDeviceGetCount)(&n) == CUDA_SUCCESS)
                atomic_store(&known, n);
        return n;
}

/* Pools. */

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
static void pool_add(CUmemoryPool handle, CUdevice device)
{
        struct pool *pool = calloc(1, sizeof(*pool));

        if (!pool)
                return;
        pool->device = device;
        read_attributes(pool, handle);
        pthread_mutex_lock(&pools.lock);
        if (!find_pool(handle)) {
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
        pool = find_pool(handle);
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
static bool choose(CUmemoryPool *handle, CUdevice *device)
{
        if (!*handle && DRIVER(cuDeviceGetMemPool)(handle, *device) != CUDA_SUCCESS)
                return false;
        if (is_known(*handle, device))
                return true;
        for (CUdevice i = 0; i < count_devices(); i++)
                if (is_default(*handle, i) && is_possible(i)) {
                        pool_add(*handle, i);
                        *device = i;
                        return true;
                }
        return false;
}

static bool is_for_us(const CUmemPoolProps *props)
{
        return props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED && props->handleTypes == 0 &&
               props->location.type == CU_MEM_LOCATION_TYPE_DEVICE && props->maxSize == 0 &&
               props->usage == 0 && is_possible(props->location.id);
}

void pool_created(CUmemoryPool handle, const CUmemPoolProps *props)
{
        if (is_for_us(props))
                pool_add(handle, props->location.id);
}

/* A stock that nobody has anything of any more. */
static void pool_end(struct pool *pool)
{
        struct pool **link = &pools.first;

        while (*link != pool)
                link = &(*link)->next;
        *link = pool->next;
        free(pool);
}

void pool_ends(CUmemoryPool handle)
{
        struct pool *pool;
        CUdevice device;

        if (!is_known(handle, &device) || is_default(handle, device))
                return;
        pthread_mutex_lock(&pools.lock);
        pool = find_pool(handle);
        if (pool) {
                hash_remove(&pools.by_handle, &pool->node);
                pool->is_destroyed = true;
                pool->threshold = 0;
        }
        pthread_mutex_unlock(&pools.lock);
}

/* Streams. */

static bool is_named(const struct pool_stream *stream)
{
        return stream->handle && stream->handle != CU_STREAM_LEGACY &&
               stream->handle != CU_STREAM_PER_THREAD;
}

/* What is no stream, the driver is to say so. */
static bool is_stream(const struct pool_stream *stream)
{
        int status;

        return !is_named(stream) ||
               DRIVER(cuStreamIsCapturing)(stream->handle, &status) == CUDA_SUCCESS;
}

/* What tells streams apart: see capture.c. */
static struct stock_key key_of_stream(const struct pool_stream *stream)
{
        struct stock_key key = { .stream = stream->handle };

        if (is_named(stream))
                return key;
        if (stream->handle == CU_STREAM_PER_THREAD || (!stream->handle && stream->is_per_thread))
                key.stream = caller_self_get();
        else
                key.stream = CU_STREAM_LEGACY;
        DRIVER(cuCtxGetCurrent)(&key.context);
        return key;
}

/* An event of the current context, @context. */
static CUresult mark_get(struct stock_mark **ret_mark, CUcontext context)
{
        struct stock_mark **link = &pools.unused_marks;
        struct stock_mark *mark;
        CUresult result;

        pthread_mutex_lock(&pools.lock);
        while (*link && (*link)->context != context)
                link = &(*link)->next;
        mark = *link;
        if (mark) {
                *link = mark->next;
                mark->n_users = 1;
                mark->is_done = false;
        }
        pthread_mutex_unlock(&pools.lock);
        *ret_mark = mark;
        if (mark)
                return CUDA_SUCCESS;
        mark = calloc(1, sizeof(*mark));
        if (!mark)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *mark = (struct stock_mark){ .home = &pools.unused_marks,
                                     .context = context,
                                     .n_users = 1 };
        result = DRIVER(cuEventCreate)(&mark->event, EVENT_WITHOUT_TIMING);
        if (result == CUDA_SUCCESS)
                *ret_mark = mark;
        else
                free(mark);
        return result;
}

static void mark_drop(struct stock_mark *mark)
{
        pthread_mutex_lock(&pools.lock);
        stock_mark_drop(mark);
        pthread_mutex_unlock(&pools.lock);
}

/* With the stream's context current. */
static CUresult mark_record(struct stock_mark **ret_mark, CUcontext context,
                            const struct pool_stream *stream)
{
        CUresult result = mark_get(ret_mark, context);

        if (result != CUDA_SUCCESS)
                return result;
        (*ret_mark)->begin = atomic_fetch_add(&pools.n_moments, 1);
        result = stream->is_per_thread
                         ? DRIVER(cuEventRecord_ptsz)((*ret_mark)->event, stream->handle)
                         : DRIVER(cuEventRecord)((*ret_mark)->event, stream->handle);
        (*ret_mark)->end = atomic_fetch_add(&pools.n_moments, 1);
        if (result != CUDA_SUCCESS) {
                mark_drop(*ret_mark);
                *ret_mark = NULL;
        }
        return result;
}

static CUresult mark_record_in(struct stock_mark **ret_mark, CUcontext context,
                               const struct pool_stream *stream)
{
        CUresult result = DRIVER(cuCtxPushCurrent_v2)(context);

        if (result != CUDA_SUCCESS)
                return result;
        result = mark_record(ret_mark, context, stream);
        DRIVER(cuCtxPopCurrent_v2)(&context);
        return result;
}

/* The current context need not be the stream's; that of a handle which may be none must not be asked for. */
static CUresult mark_make(struct stock_mark **ret_mark, const struct pool_stream *stream)
{
        CUcontext context = NULL, own = NULL;
        CUresult result;

        *ret_mark = NULL;
        result = DRIVER(cuCtxGetCurrent)(&context);
        if (result == CUDA_SUCCESS && !context)
                result = CUDA_ERROR_INVALID_CONTEXT;
        if (result == CUDA_SUCCESS)
                result = mark_record(ret_mark, context, stream);
        if (result == CUDA_SUCCESS || !is_named(stream))
                return result;
        if (!is_stream(stream) || DRIVER(cuStreamGetCtx)(stream->handle, &own) != CUDA_SUCCESS ||
            own == context)
                return result;
        return mark_record_in(ret_mark, own, stream);
}

/* Looks at the marks; with the lock. */

static bool is_among(const struct stock_key *busy, size_t n, const struct stock_key *key)
{
        for (size_t i = 0; i < n; i++)
                if (busy[i].stream == key->stream && busy[i].context == key->context)
                        return true;
        return false;
}

/* A stream whose earlier mark is not done has no later one that is. */
static bool look_at_pool(struct pool *pool)
{
        struct stock_key busy[BUSY_MAX];
        struct stock_range *range;
        size_t n = 0;

        for (range = pool->stock.oldest; range && n < BUSY_MAX; range = range->younger) {
                struct stock_mark *mark = range->mark;

                if (mark->is_done || is_among(busy, n, &mark->key))
                        continue;
                if (DRIVER(cuEventQuery)(mark->event) == CUDA_SUCCESS)
                        mark->is_done = true;
                else
                        busy[n++] = mark->key;
        }
        stock_settle(&pool->stock);
        return n > 0;
}

/* The driver is not asked while something is captured, which that would ruin, or a context ends. */
static bool look_begin(void)
{
        if (!idle_try_hold())
                return false;
        if (!capture_is_active())
                return true;
        idle_release();
        return false;
}

static void look(struct pool *pool)
{
        if (!pool->stock.oldest || !look_begin())
                return;
        (void)look_at_pool(pool);
        idle_release();
}

/* True: there are marks that are not done. */
static bool look_at_all(void)
{
        bool any = false;

        if (!look_begin())
                return false;
        for (struct pool *pool = pools.first; pool; pool = pool->next)
                any |= look_at_pool(pool);
        idle_release();
        return any;
}

/* What goes back to the driver. */

/* A chunk that is to go, of whichever pool. @is_all: whatever the threshold is. */
static struct stock_chunk *reap(bool is_all)
{
        struct stock_chunk *chunk = NULL;
        struct pool *pool = pools.first, *next;

        for (; pool && !chunk; pool = next) {
                next = pool->next;
                chunk = stock_reap(&pool->stock, is_all ? 0 : pool->threshold);
                if (chunk) /* before its stock goes: stock_hurry() */
                        memory_set_chunk(chunk->mapping, NULL);
                if (pool->is_destroyed && !pool->stock.chunks)
                        pool_end(pool);
        }
        return chunk;
}

static void chunk_end(struct stock_chunk *chunk)
{
        memory_end(chunk->mapping);
        free(chunk);
}

static bool reap_all(bool is_all)
{
        struct stock_chunk *chunk;
        bool any = false;

        for (;;) {
                pthread_mutex_lock(&pools.lock);
                chunk = reap(is_all);
                pthread_mutex_unlock(&pools.lock);
                if (!chunk)
                        return any;
                chunk_end(chunk);
                any = true;
        }
}

static bool is_too_much(void)
{
        for (const struct pool *pool = pools.first; pool; pool = pool->next)
                if ((pool->stock.n_unused > 0 || pool->stock.oldest) &&
                    (pool->stock.reserved > pool->threshold ||
                     atomic_load(&pool->stock.is_hurried)))
                        return true;
        return false;
}

void pool_give_back(void)
{
        bool is_needed;

        if (!atomic_load(&pools.is_used))
                return;
        pthread_mutex_lock(&pools.lock);
        is_needed = is_too_much();
        if (is_needed)
                (void)look_at_all();
        pthread_mutex_unlock(&pools.lock);
        if (is_needed)
                (void)reap_all(false);
}

static bool look_at_all_locked(void)
{
        bool any;

        pthread_mutex_lock(&pools.lock);
        any = look_at_all();
        pthread_mutex_unlock(&pools.lock);
        return any;
}

static uint64_t count_free(void)
{
        uint64_t bytes = 0;

        pthread_mutex_lock(&pools.lock);
        for (const struct pool *pool = pools.first; pool; pool = pool->next)
                bytes += pool->stock.reserved - pool->stock.used;
        pthread_mutex_unlock(&pools.lock);
        return bytes;
}

static bool reclaim(bool is_patient)
{
        const struct timespec step = { .tv_nsec = RECLAIM_STEP_NS };
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + RECLAIM_NS;
        bool any = false;

        if (!atomic_load(&pools.is_used))
                return false;
        for (;;) {
                bool is_busy = look_at_all_locked();

                any |= reap_all(true);
                if (!is_patient || !is_busy || clock_now(CLOCK_MONOTONIC) >= until_ns)
                        return any;
                nanosleep(&step, NULL);
        }
}

static const struct memory_reserve reserve = { reclaim, count_free };

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
        pool = find_pool(handle);
        if (pool && !pool->may_depend)
                how &= ~(unsigned int)STOCK_AFTER_OTHERS;
        if (pool)
                range = stock_take(&pool->stock, size, key, how, ret_mark);
        if (!range && pool && pool->is_opportunistic && pool->stock.oldest) {
                look(pool);
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
        pool = find_pool(handle);
        if (pool)
                range = stock_add(&pool->stock, mapping, mapping->address, size);
        if (range) {
                memory_set_chunk(mapping, range->chunk);
                enter(range);
                atomic_store(&pools.is_used, true);
                memory_set_reserve(&reserve);
        }
        pthread_mutex_unlock(&pools.lock);
        return range;
}

static uint64_t peers_of(CUmemoryPool handle)
{
        const struct pool *pool;
        uint64_t peers;

        pthread_mutex_lock(&pools.lock);
        pool = find_pool(handle);
        peers = pool ? pool->peers : 0;
        pthread_mutex_unlock(&pools.lock);
        return peers;
}

static CUresult grow(struct stock_range **ret_range, CUmemoryPool handle, CUdevice device,
                     uint64_t size, bool is_patient)
{
        struct mapping *mapping;
        uint64_t peers;
        CUresult result;

        result = memory_create_chunk(&mapping, device, stock_chunk_size(size), is_patient);
        if (result != CUDA_SUCCESS)
                return result;
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

/* With idle_hold(). */
static CUresult wait_for_mark(const struct stock_mark *mark, const struct pool_stream *stream)
{
        if (mark->is_done)
                return CUDA_SUCCESS;
        return stream->is_per_thread
                       ? DRIVER(cuStreamWaitEvent_ptsz)(stream->handle, mark->event, 0)
                       : DRIVER(cuStreamWaitEvent)(stream->handle, mark->event, 0);
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
                result = wait_for_mark(mark, stream);
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
        CUresult result;

        idle_hold();
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

        if (DRIVER(cuCtxGetDevice)(ret_device) != CUDA_SUCCESS || !is_stream(stream))
                return false;
        if (!is_named(stream) || count_devices() == 1)
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
            !is_possible(device) || !choose(&pool, &device))
                return false;
        key = key_of_stream(&stream);
        *ret_result = size > UINT64_MAX / 2
                              ? CUDA_ERROR_OUT_OF_MEMORY
                              : allocate(ret_address, pool, device, size, &key, &stream);
        return true;
}

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

/* Of some streams no event can be had that we could use (those of green contexts, say). */
static CUresult wait_instead(CUresult result, const struct pool_stream *stream)
{
        if ((result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_INVALID_CONTEXT) ||
            !is_named(stream) || !is_stream(stream) || capture_is_active())
                return result;
        return DRIVER(cuStreamSynchronize)(stream->handle);
}

static CUresult free_in_order(struct stock_range *range, const struct pool_stream *stream)
{
        struct stock_mark *mark;
        CUresult result = mark_make(&mark, stream);

        if (result != CUDA_SUCCESS)
                result = wait_instead(result, stream);
        if (result != CUDA_SUCCESS) {
                stop_free(range);
                return result;
        }
        if (mark)
                mark->key = key_of_stream(stream);
        give_back(range, mark);
        if (mark)
                mark_drop(mark);
        return CUDA_SUCCESS;
}

static bool is_captured(const struct pool_stream *stream)
{
        CUgraph graph;

        return capture_is_active() &&
               graph_capture_find(stream->handle, stream->is_per_thread, &graph);
}

bool pool_free(CUdeviceptr address, const struct pool_stream *stream, CUresult *ret_result)
{
        struct stock_range *range;

        if (!atomic_load(&pools.is_used) || (stream && is_captured(stream)))
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
                };
        }
        pthread_mutex_unlock(&pools.lock);
        return range != NULL;
}

void pool_note_attribute(CUmemoryPool handle, int attribute, const void *value)
{
        struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = find_pool(handle);
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

/* Rare enough to be done with the lock: what is there stays meanwhile. */
CUresult pool_let(CUmemoryPool handle, const CUmemAccessDesc *access, size_t n)
{
        CUresult first_error = CUDA_SUCCESS;
        struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = find_pool(handle);
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

uint64_t pool_get_attribute(CUmemoryPool handle, int attribute)
{
        const struct pool *pool;
        uint64_t value = 0;

        pthread_mutex_lock(&pools.lock);
        pool = find_pool(handle);
        if (pool)
                value = attribute_of(&pool->stock, attribute);
        pthread_mutex_unlock(&pools.lock);
        return value;
}

void pool_trim(CUmemoryPool handle, uint64_t keep)
{
        struct stock_chunk *chunk;
        struct pool *pool;

        do {
                pthread_mutex_lock(&pools.lock);
                pool = find_pool(handle);
                if (pool)
                        look(pool);
                chunk = pool ? stock_reap(&pool->stock, keep) : NULL;
                if (chunk)
                        memory_set_chunk(chunk->mapping, NULL);
                pthread_mutex_unlock(&pools.lock);
                if (chunk)
                        chunk_end(chunk);
        } while (chunk);
}

/* Endings. */

void pool_drop_stream(const void *stream)
{
        if (!atomic_load(&pools.is_used))
                return;
        pthread_mutex_lock(&pools.lock);
        for (struct pool *pool = pools.first; pool; pool = pool->next)
                stock_drop_stream(&pool->stock, stream);
        pthread_mutex_unlock(&pools.lock);
}

static void drop_unused_marks(CUcontext context)
{
        struct stock_mark **link = &pools.unused_marks, *mark;

        while ((mark = *link)) {
                if (mark->context != context) {
                        link = &mark->next;
                        continue;
                }
                *link = mark->next;
                free(mark);
        }
}

void pool_drop_context(CUcontext context)
{
        if (!atomic_load(&pools.is_used))
                return;
        pthread_mutex_lock(&pools.lock);
        for (struct pool *pool = pools.first; pool; pool = pool->next)
                stock_drop_context(&pool->stock, context);
        drop_unused_marks(context);
        pthread_mutex_unlock(&pools.lock);
}

static struct stock_chunk *take_any_chunk(int64_t *n_allocations)
{
        struct stock_chunk *chunk = NULL;

        for (struct pool *pool = pools.first; pool && !chunk; pool = pool->next)
                chunk = pool->stock.chunks;
        if (!chunk)
                return NULL;
        for (struct stock_range *it = chunk->first; it; it = it->behind)
                if (it->requested > 0) {
                        hash_remove(&pools.allocations, &it->node);
                        ++*n_allocations;
                }
        stock_take_chunk(chunk->stock, chunk);
        memory_set_chunk(chunk->mapping, NULL);
        return chunk;
}

void pool_drop_all(void)
{
        struct stock_chunk *chunk;
        int64_t n_allocations = 0;

        do {
                pthread_mutex_lock(&pools.lock);
                chunk = take_any_chunk(&n_allocations);
                pthread_mutex_unlock(&pools.lock);
                if (chunk)
                        chunk_end(chunk);
        } while (chunk);
        quota_count_allocations(-n_allocations);
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
