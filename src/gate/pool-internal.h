/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_POOL_INTERNAL_H
#define GATE_POOL_INTERNAL_H

/* What the files of the pools share: the table of pools (pool-table.c), marks of streams (pool-mark.c), and what
 * goes back to the driver (pool-return.c), what is exported (pool-export.c); allocations and frees are in pool.c. */

#include <pthread.h>
#include <stdatomic.h>

#include "gate/hash.h"
#include "gate/pool.h"
#include "gate/stock.h"
#include "wire/gate.h"

struct pool {
        struct hash_node node; /* first: by the driver's handle */
        struct pool *next;
        CUdevice device;
        uint64_t peers; /* a bit for each other device that may use its memory */
        uint64_t threshold;
        uint64_t limit;   /* of what is reserved, as the application has said; 0: there is none */
        uint64_t growing; /* bytes that are being reserved */
        bool is_opportunistic, may_depend;
        bool is_destroyed; /* by the application, which still has memory of it */
        int handle_types;  /* as what it can be exported */
        bool is_named;     /* it was exported, as: */
        uint8_t name[GATE_NAME_SIZE];
        struct stock stock;
};

struct pools {
        pthread_mutex_t lock; /* the driver is not called with it, but for a look at an event */
        struct hash by_handle;
        struct hash allocations;
        struct pool *first;
        struct stock_mark *unused_marks;
        struct stock_mark
                *ended_marks;       /* no longer used, of contexts that have ended before them */
        _Atomic uint64_t n_moments; /* before and behind each mark */
        _Atomic bool is_used;
};

extern struct pools pools;

static inline struct pool *pool_of(struct stock *stock)
{
        return (struct pool *)((char *)stock - offsetof(struct pool, stock));
}

/* pool_at() - the pool with that handle, or NULL; with the lock. */
struct pool *pool_at(CUmemoryPool handle);

/* pool_is_possible() - can memory of @device's pools be ours? */
bool pool_is_possible(CUdevice device);

/* pool_count_devices() - how many the program has; the driver is asked once. */
int pool_count_devices(void);

/*
 * pool_choose() - the pool of @handle, or the current one of @device, which becomes its device; a default one gets
 * its stock when it is first used. False: it is the driver's.
 */
bool pool_choose(CUmemoryPool *handle, CUdevice *device);

/* stream_is_named() - it is none of the default streams. stream_is_one() - what is none, the driver is to say so. */
bool stream_is_named(const struct pool_stream *stream);
bool stream_is_one(const struct pool_stream *stream);

/* stream_is_captured() - is it, just now? */
bool stream_is_captured(const struct pool_stream *stream);

/* stream_key() - what tells streams apart: see capture.c. */
struct stock_key stream_key(const struct pool_stream *stream);

/* mark_make() - record an event in @stream; the caller ends it with mark_drop(). */
CUresult mark_make(struct stock_mark **ret_mark, const struct pool_stream *stream);
void mark_drop(struct stock_mark *mark);

/* mark_wait_instead() - mark_make() has failed with @result: wait for the stream, if that is of use. */
CUresult mark_wait_instead(CUresult result, const struct pool_stream *stream);

/* mark_wait() - what @stream does from now on comes behind @mark; with idle_hold(). */
CUresult mark_wait(const struct stock_mark *mark, const struct pool_stream *stream);

/* mark_drop_unused() - @context has ended, and its events with it; with the lock. */
void mark_drop_unused(CUcontext context);

/*
 * pool_look_begin() - idle_hold(), unless it would have to wait, or something is captured: to ask the driver about an
 * event, or to unmap, would ruin that. Ended by idle_release().
 */
bool pool_look_begin(void);

/* pool_look() - ask the driver which of the pool's marks are done; with the lock. */
void pool_look(struct pool *pool);

/* What pools hold free, for memory.h. */
extern const struct memory_reserve pool_reserve;

#endif
