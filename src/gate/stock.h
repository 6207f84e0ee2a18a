/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_STOCK_H
#define GATE_STOCK_H

/*
 * The stock of a memory pool: chunks of device memory, cut into ranges that are allocated, or free for
 * the next allocation.
 *
 * A range that was freed in the order of a stream has a mark: an event of that stream, behind which
 * nobody uses the range. Allocations of the same stream may have it at once; those of others when the mark
 * is done, or when they wait for it themselves. Neighbours are put together when the same stream freed
 * them, for its later mark stands for both, or when their marks are done. Which is the later one is not known
 * of two that threads recorded at the same time.
 *
 * Small allocations share chunks of the driver's granularity; a large one gets a chunk of its own size,
 * and later ones may share it. Memory goes back to the driver by whole chunks.
 *
 * Free ranges are in groups: those without a mark, and those that each stream has freed. A group finds the smallest
 * range that is large enough in a tree, whatever their number.
 *
 * This is only bookkeeping: it knows no driver and no lock.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/hash.h"

#define STOCK_GRANULE    512u                /* as in block.h */
#define STOCK_CHUNK_SIZE ((uint64_t)2 << 20) /* the driver's granularity */
#define STOCK_LARGE      ((uint64_t)1 << 20) /* from here on in multiples of that */

struct mapping;
struct stock;

/* A stream: its handle; or, of the default streams, what tells them apart. NULL: one that is no more. */
struct stock_key {
        const void *stream;
        CUcontext context;
};

struct stock_mark {
        struct stock_mark *next;  /* of those that nobody uses, in: */
        struct stock_mark **home; /* where it goes then */
        struct stock_key key;
        uint64_t begin, end; /* it was recorded between these moments */
        uint32_t n_users;
        bool is_done;
        CUcontext context; /* of the event */
        CUevent event;
};

/*
 * stock_mark_outlive() - @context, a part of @whole, ends: its default streams have no later one's handle, and
 * its events are not used again, but go on. When it is done, the mark goes to @home.
 */
void stock_mark_outlive(struct stock_mark *mark, CUcontext context, CUcontext whole,
                        struct stock_mark **home);

struct stock_range {
        struct hash_node node; /* first; for who looks for allocations */
        struct stock_chunk *chunk;
        struct stock_range *before, *behind;  /* in the chunk */
        struct stock_group *group;            /* of those that are free */
        struct stock_range *smaller, *larger; /* below it in the tree */
        struct stock_range *older, *younger;  /* in the group */
        uint64_t address, size;
        uint64_t requested; /* by the application; 0: it is free */
        bool is_being_freed;
        struct stock_mark *mark; /* or NULL: nobody uses it, but who has allocated it */
};

struct stock_chunk {
        struct stock *stock;
        struct stock_chunk *previous, *next;
        struct mapping *mapping;
        uint64_t size;
        bool is_large;          /* for allocations that are */
        atomic_bool must_leave; /* as soon as it can: stock_hurry() */
        struct stock_range *first;
};

/* Free ranges that the same stream has freed. */
struct stock_group {
        struct stock_group *next;
        struct stock_key key;
        struct stock_range *tree[2]; /* small and large ones, by size: a treap */
        struct stock_range *oldest, *youngest;
};

struct stock {
        struct stock_group unmarked; /* nobody uses them */
        struct stock_group unknown;  /* of no stream that is there, or without memory for a group */
        struct stock_group *streams; /* the youngest group last */
        struct stock_chunk *chunks;
        uint64_t n_unused; /* chunks that stock_reap() can take */
        uint64_t used, reserved, used_high, reserved_high;
        atomic_bool is_hurried; /* a chunk must leave */
};

/* stock_chunk_size() - how large must a new chunk be for @bytes? */
uint64_t stock_chunk_size(uint64_t bytes);

enum stock_how {
        STOCK_AT_ONCE = 0,
        STOCK_AFTER_OTHERS = 1, /* what another stream has freed will do */
        STOCK_WASTEFUL = 2,     /* much larger ones will do */
};

/*
 * stock_take() - allocate @bytes > 0 for the stream @key. NULL: there is no room. @ret_mark is what the stream
 * must wait for before, or NULL; the caller drops it.
 */
struct stock_range *stock_take(struct stock *stock, uint64_t bytes, const struct stock_key *key,
                               unsigned int how, struct stock_mark **ret_mark);

/* stock_add() - make @mapping, at @address, a chunk, and allocate @bytes from it. NULL: no memory. */
struct stock_range *stock_add(struct stock *stock, struct mapping *mapping, CUdeviceptr address,
                              uint64_t bytes);

/*
 * stock_give_back() - end an allocation. @mark is the caller's, who drops it. NULL: whoever allocated it does not use
 * it any more; who had it before may.
 */
void stock_give_back(struct stock *stock, struct stock_range *range, struct stock_mark *mark);

/* stock_drop_stream() - @stream ends: no later one has its handle. stock_drop_context() - its events are gone. */
void stock_drop_stream(struct stock *stock, const void *stream);
void stock_drop_context(struct stock *stock, CUcontext context);

/* stock_outlive_context() - as stock_mark_outlive(), of all. */
void stock_outlive_context(struct stock *stock, CUcontext context, CUcontext whole,
                           struct stock_mark **home);

/* stock_settle() - some marks are done: let go of them, and put their ranges together. */
void stock_settle(struct stock *stock);

/*
 * stock_look() - ask @is_done of the marks of each stream, the oldest first, until one is not done; and of no more than
 * @n_busy streams that have such a one. What is done is let go of, and its ranges are put together. Returns how many are not.
 */
size_t stock_look(struct stock *stock, size_t n_busy, bool (*is_done)(struct stock_mark *mark));

/* stock_has_marks() - is anything waited for? */
bool stock_has_marks(const struct stock *stock);

/*
 * stock_reap() - take out a chunk of which nothing is allocated or waited for, if more than @keep bytes are
 * reserved, or if it must leave. NULL: none. The caller frees it.
 */
struct stock_chunk *stock_reap(struct stock *stock, uint64_t keep);

/* stock_take_chunk() - take out a chunk, whatever is allocated from it. The caller frees it. */
void stock_take_chunk(struct stock *stock, struct stock_chunk *chunk);

/* stock_hurry() - what is freed of @chunk is not to be used again. Without the stock's lock. */
void stock_hurry(struct stock_chunk *chunk);

/* stock_mark_drop() - one user less. Takes NULL. */
void stock_mark_drop(struct stock_mark *mark);

#endif
