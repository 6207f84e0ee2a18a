/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How memory of imported pools is let go.
 *
 * The driver is asked about events, and unmaps, only with idle_hold(): no context ends then, and no capture begins.
 * The lock of the imports is not held while it unmaps, and neither is held while the manager is told; who has marked
 * a piece as going is the only one who touches it.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/idle-lock.h"
#include "gate/pool-import-internal.h"
#include "gate/pool-internal.h"
#include "gate/vmm.h"
#include "gate/wake.h"

/* Marks; with the lock. */

static void end_free(struct import_free **link)
{
        struct import_free *it = *link;

        *link = it->next;
        mark_drop(it->mark);
        free(it);
}

static bool is_behind(const struct stock_mark *late, const struct stock_mark *early)
{
        return late->key.stream && late->key.stream == early->key.stream &&
               late->key.context == early->key.context && early->end < late->begin;
}

/* A later one of the same stream stands for the earlier. */
static void add_free(struct import_piece *piece, struct import_free *added)
{
        struct import_free **link = &piece->frees;

        while (*link)
                if (is_behind(added->mark, (*link)->mark))
                        end_free(link);
                else
                        link = &(*link)->next;
        *link = added;
}

/* With idle_hold(). False: there are some that are not done. */
static bool look_at(struct import_piece *piece)
{
        struct import_free **link = &piece->frees;

        while (*link)
                if (DRIVER(cuEventQuery)((*link)->mark->event) == CUDA_SUCCESS)
                        end_free(link);
                else
                        link = &(*link)->next;
        return !piece->frees;
}

/* Pieces. */

static void drop_frees(struct import_piece *piece)
{
        while (piece->frees)
                end_free(&piece->frees);
}

/* One that can go, for the caller alone; with the lock. @is_idle: all work is over. */
static struct import_piece *start_to_go(struct imported_pool *pool, bool is_idle)
{
        struct import_piece *piece = pool->pieces;

        while (piece && (piece->pointers || piece->is_going || !(is_idle || look_at(piece))))
                piece = piece->next;
        if (piece) {
                drop_frees(piece);
                piece->is_going = true;
        }
        return piece;
}

static struct import_piece *next_to_go(bool is_idle)
{
        struct import_piece *piece = NULL;

        pthread_mutex_lock(&pool_imports.lock);
        for (struct imported_pool *pool = pool_imports.first; pool && !piece; pool = pool->next)
                piece = start_to_go(pool, is_idle);
        pthread_mutex_unlock(&pool_imports.lock);
        return piece;
}

/* False: it stays, and is tried again at another time. */
static bool end_piece(struct import_piece *piece, struct view *views, CUresult result)
{
        pthread_mutex_lock(&pool_imports.lock);
        if (result == CUDA_SUCCESS)
                import_piece_unlink(piece);
        pthread_mutex_unlock(&pool_imports.lock);
        import_piece_settle(piece, views, result);
        if (result == CUDA_SUCCESS)
                return true;
        pthread_mutex_lock(&pool_imports.lock);
        piece->is_going = false;
        pthread_mutex_unlock(&pool_imports.lock);
        return false;
}

bool pool_import_give_back(void)
{
        struct import_piece *piece;
        CUresult result = CUDA_SUCCESS;
        struct view *views = NULL;

        if (atomic_load(&pool_imports.n_over) == 0)
                return false;
        do {
                if (!pool_look_begin())
                        return true;
                piece = next_to_go(false);
                if (piece)
                        result = import_piece_unmap(piece, &views);
                idle_release();
        } while (piece && end_piece(piece, views, result));
        return atomic_load(&pool_imports.n_over) > 0;
}

/* No thread of the application is inside, and none has captured anything. */
void pool_import_settle(void)
{
        struct import_piece *piece;
        CUresult result = CUDA_SUCCESS;
        struct view *views = NULL;

        if (atomic_load(&pool_imports.n_over) == 0)
                return;
        do {
                piece = next_to_go(true);
                if (piece)
                        result = import_piece_unmap(piece, &views);
        } while (piece && end_piece(piece, views, result));
}

/* Frees. */

/* The pointer at @address, of whose imports nobody else frees this one. */
static struct import_pointer *start_free(CUdeviceptr address)
{
        struct import_pointer *pointer;

        pthread_mutex_lock(&pool_imports.lock);
        pointer = (struct import_pointer *)hash_find(&pool_imports.pointers, address);
        if (pointer && pointer->n_being_freed == pointer->n)
                pointer = NULL;
        if (pointer)
                pointer->n_being_freed++;
        pthread_mutex_unlock(&pool_imports.lock);
        return pointer;
}

static void stop_free(struct import_pointer *pointer)
{
        pthread_mutex_lock(&pool_imports.lock);
        pointer->n_being_freed--;
        pthread_mutex_unlock(&pool_imports.lock);
}

static void remove_pointer(struct import_pointer *pointer)
{
        struct import_pointer **link = &pointer->piece->pointers;

        while (*link != pointer)
                link = &(*link)->next;
        *link = pointer->next;
        if (!pointer->piece->pointers)
                atomic_fetch_add(&pool_imports.n_over, 1);
        hash_remove(&pool_imports.pointers, &pointer->node);
        free(pointer);
}

/* @record NULL: nobody uses it any more. */
static void end_pointer(struct import_pointer *pointer, struct import_free *record)
{
        pthread_mutex_lock(&pool_imports.lock);
        if (record)
                add_free(pointer->piece, record);
        pointer->n_being_freed--;
        if (--pointer->n == 0)
                remove_pointer(pointer);
        pthread_mutex_unlock(&pool_imports.lock);
}

/* Until the mark is in the piece, where pool_import_drop_context() finds it, its context must not end. */
static CUresult record_free(struct import_pointer *pointer, const struct pool_stream *stream)
{
        CLEANUP(freep) struct import_free *record = calloc(1, sizeof(*record));
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

        idle_hold();
        if (record)
                result = mark_make(&record->mark, stream);
        if (result == CUDA_SUCCESS) {
                record->mark->key = stream_key(stream);
                end_pointer(pointer, TAKE(record));
        }
        idle_release();
        return result;
}

static CUresult free_in_order(struct import_pointer *pointer, const struct pool_stream *stream)
{
        CUresult result = record_free(pointer, stream);

        if (result == CUDA_SUCCESS)
                return result;
        result = mark_wait_instead(result, stream);
        if (result == CUDA_SUCCESS)
                end_pointer(pointer, NULL);
        else
                stop_free(pointer);
        return result;
}

bool pool_import_free(CUdeviceptr address, const struct pool_stream *stream, CUresult *ret_result)
{
        struct import_pointer *pointer;

        if (!atomic_load(&pool_imports.is_used) || (stream && stream_is_captured(stream)))
                return false;
        pointer = start_free(address);
        if (!pointer)
                return false;
        *ret_result = CUDA_SUCCESS;
        if (stream)
                *ret_result = free_in_order(pointer, stream);
        else
                end_pointer(pointer, NULL);
        if (pool_import_give_back())
                wake_agent();
        return true;
}

/* Endings. */

static void drop_stream(const struct import_piece *piece, const void *stream)
{
        for (struct import_free *it = piece->frees; it; it = it->next)
                if (it->mark->key.stream == stream)
                        it->mark->key.stream = NULL;
}

void pool_import_drop_stream(const void *stream)
{
        if (!atomic_load(&pool_imports.is_used))
                return;
        pthread_mutex_lock(&pool_imports.lock);
        for (struct imported_pool *pool = pool_imports.first; pool; pool = pool->next)
                for (const struct import_piece *it = pool->pieces; it; it = it->next)
                        drop_stream(it, stream);
        pthread_mutex_unlock(&pool_imports.lock);
}

static void drop_context(struct import_piece *piece, CUcontext context)
{
        struct import_free **link = &piece->frees;

        while (*link)
                if ((*link)->mark->context == context)
                        end_free(link);
                else
                        link = &(*link)->next;
}

void pool_import_drop_context(CUcontext context)
{
        if (!atomic_load(&pool_imports.is_used))
                return;
        pthread_mutex_lock(&pool_imports.lock);
        for (struct imported_pool *pool = pool_imports.first; pool; pool = pool->next)
                for (struct import_piece *it = pool->pieces; it; it = it->next)
                        drop_context(it, context);
        pthread_mutex_unlock(&pool_imports.lock);
}

void pool_import_outlive_context(CUcontext context, CUcontext whole)
{
        if (!atomic_load(&pool_imports.is_used))
                return;
        pthread_mutex_lock(&pool_imports.lock);
        for (struct imported_pool *pool = pool_imports.first; pool; pool = pool->next)
                for (struct import_piece *it = pool->pieces; it; it = it->next)
                        for (struct import_free *free = it->frees; free; free = free->next)
                                stock_mark_outlive(free->mark, context, whole, &pools.ended_marks);
        pthread_mutex_unlock(&pool_imports.lock);
}

/* What is being freed its own thread removes. */
static void drop_pointers(const struct import_piece *piece)
{
        struct import_pointer *after;

        for (struct import_pointer *it = piece->pointers; it; it = after) {
                after = it->next;
                it->n = it->n_being_freed;
                if (it->n == 0)
                        remove_pointer(it);
        }
}

void pool_import_drop_all(void)
{
        if (!atomic_load(&pool_imports.is_used))
                return;
        pthread_mutex_lock(&pool_imports.lock);
        for (struct imported_pool *pool = pool_imports.first; pool; pool = pool->next)
                for (const struct import_piece *it = pool->pieces; it; it = it->next)
                        drop_pointers(it);
        pthread_mutex_unlock(&pool_imports.lock);
        (void)pool_import_give_back();
}
