/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_POOL_IMPORT_INTERNAL_H
#define GATE_POOL_IMPORT_INTERNAL_H

/* What the files of imported pools share: what there is of them (pool-import.c), their
 * memory (pool-import-piece.c), and how they go (pool-import-free.c). */

#include <pthread.h>
#include <stdatomic.h>

#include "gate/hash.h"
#include "gate/pool-import.h"
#include "gate/stock.h"

struct physical;
struct view;
struct import_piece;

struct import_pointer {
        struct hash_node node; /* first; by its address */
        struct import_pointer *next;
        struct import_piece *piece;
        uint64_t size;
        unsigned int n;             /* times that it was imported */
        unsigned int n_being_freed; /* of these */
};

/* A free in the order of a stream. */
struct import_free {
        struct import_free *next;
        struct stock_mark *mark;
};

struct import_piece {
        struct import_piece *next; /* in the pool */
        struct imported_pool *pool;
        uint8_t name[GATE_NAME_SIZE];
        CUdeviceptr base;
        uint64_t size;
        struct physical *physical;       /* used by the view of it at @base; NULL: it is our own */
        struct import_pointer *pointers; /* without any it goes as soon as it can */
        struct import_free *frees;
        bool is_going; /* a thread unmaps it, without the lock */
};

struct imported_pool {
        struct imported_pool *next;
        CUmemoryPool handle; /* of a pool that the driver made for it */
        struct gate_process process;
        uint8_t name[GATE_NAME_SIZE];
        uint64_t
                peers; /* a bit for each device that may use its memory, beside the one where that is */
        bool is_own; /* this process has exported it */
        bool is_destroyed;
        struct import_piece *pieces;
};

struct pool_imports {
        pthread_mutex_t
                lock; /* the driver is not called with it, but for a look at an event and for rights */
        struct hash pointers;
        struct imported_pool *first;
        _Atomic bool is_used;
        _Atomic unsigned int n_over; /* pieces without a pointer */
};

extern struct pool_imports pool_imports;

/* import_piece_unlink() - out of its pool, which ends with its last piece when it is destroyed; with the lock. */
void import_piece_unlink(struct import_piece *piece);

/* import_piece_open() - the memory of @ticket, at an address of its own. Without the lock: it may wait. */
CUresult import_piece_open(struct import_piece *piece, const struct gate_ticket *ticket,
                           uint64_t peers);

/*
 * import_piece_unmap() - of one that is in no pool, or is going. import_piece_settle() - and its end, if that was
 * successful; without any lock, for the manager may be told.
 */
CUresult import_piece_unmap(const struct import_piece *piece, struct view **ret_views);
void import_piece_settle(struct import_piece *piece, struct view *views, CUresult result);

/* import_piece_let(), import_piece_add_peers() - who may use it, too; with the lock, so that it stays. */
CUresult import_piece_let(const struct import_piece *piece, const CUmemAccessDesc *access,
                          size_t n);
CUresult import_piece_add_peers(const struct import_piece *piece, uint64_t peers);

#endif
