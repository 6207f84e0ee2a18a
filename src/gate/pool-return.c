/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/idle-lock.h"
#include "gate/mapping.h"
#include "gate/pool-internal.h"
#include "gate/quota.h"

/* The longest that an allocation waits for frees, in vain where they wait for its own thread. */
#define RECLAIM_NS      10000000000u
#define RECLAIM_STEP_NS 50000

/* Streams whose marks are not done, in one look. */
#define BUSY_MAX 8

/* Looks at the marks; with the lock. */

static bool is_mark_done(struct stock_mark *mark)
{
        return DRIVER(cuEventQuery)(mark->event) == CUDA_SUCCESS;
}

/* A stream whose earlier mark is not done has no later one that is. */
static bool look_at_pool(struct pool *pool)
{
        return stock_look(&pool->stock, BUSY_MAX, is_mark_done) > 0;
}

bool pool_look_begin(void)
{
        if (!idle_try_hold())
                return false;
        if (!capture_is_active())
                return true;
        idle_release();
        return false;
}

void pool_look(struct pool *pool)
{
        if (!stock_has_marks(&pool->stock) || !pool_look_begin())
                return;
        (void)look_at_pool(pool);
        idle_release();
}

/* True: there are marks that are not done. */
static bool look_at_all(void)
{
        bool any = false;

        if (!pool_look_begin())
                return false;
        for (struct pool *pool = pools.first; pool; pool = pool->next)
                any |= look_at_pool(pool);
        idle_release();
        return any;
}

/* What goes back to the driver. */

/* A stock that nobody has anything of any more. */
static void pool_end(struct pool *pool)
{
        struct pool **link = &pools.first;

        while (*link != pool)
                link = &(*link)->next;
        *link = pool->next;
        free(pool);
}

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
                if ((pool->stock.n_unused > 0 || stock_has_marks(&pool->stock)) &&
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

const struct memory_reserve pool_reserve = { reclaim, count_free };

void pool_trim(CUmemoryPool handle, uint64_t keep)
{
        struct stock_chunk *chunk;
        struct pool *pool;

        do {
                pthread_mutex_lock(&pools.lock);
                pool = pool_at(handle);
                if (pool)
                        pool_look(pool);
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

void pool_drop_context(CUcontext context)
{
        if (!atomic_load(&pools.is_used))
                return;
        pthread_mutex_lock(&pools.lock);
        for (struct pool *pool = pools.first; pool; pool = pool->next)
                stock_drop_context(&pool->stock, context);
        mark_drop_unused(context);
        pthread_mutex_unlock(&pools.lock);
}

void pool_outlive_context(CUcontext context, CUcontext whole)
{
        if (!atomic_load(&pools.is_used))
                return;
        pthread_mutex_lock(&pools.lock);
        for (struct pool *pool = pools.first; pool; pool = pool->next)
                stock_outlive_context(&pool->stock, context, whole, &pools.ended_marks);
        mark_drop_unused(context);
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
