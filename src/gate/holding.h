/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_HOLDING_H
#define GATE_HOLDING_H

/*
 * What the guest holds of the device besides our mappings: arrays, managed memory, memory of pools,
 * ordinary allocations. It is charged to the quota and left to the driver's own
 * checkpoint.
 *
 * A holding is made before the driver is asked, and kept or dropped by what the driver says; and it
 * is taken out before the driver frees, so that a handle that is used again at once finds no old
 * one under its name:
 *
 *     holding = holding_new(HOLDING_ARRAY, bytes, 0);
 *     result = holding_keep(holding, DRIVER(cuArrayCreate_v2)(&array, ...), array);
 *
 *     holding = holding_take(HOLDING_ARRAY, array);
 *     result = holding_settle(holding, DRIVER(cuArrayDestroy)(array));
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

enum holding_kind {
        HOLDING_POINTER = 0, /* what cuMemFree() or cuMemFreeAsync() frees */
        HOLDING_ARRAY,
        HOLDING_MIPMAP,
        HOLDING_IPC,      /* what cuIpcCloseMemHandle() closes */
        HOLDING_POOL,     /* of another process, exported to one, or of managed or host memory */
        HOLDING_EXTERNAL, /* of another library */
        HOLDING_BUFFER,   /* the same, by the number of OpenGL's */
        HOLDING_KINDS,
};

struct holding;

/*
 * holding_new() - charge @bytes; NULL when that is over the quota (or malloc() fails). @holds are
 * GATE_HOLDS_*: what the process cannot be moved with.
 */
struct holding *holding_new(enum holding_kind kind, uint64_t bytes, uint32_t holds);

/* holding_keep() - after the driver has answered @result: keep the holding under @key, or drop it. */
CUresult holding_keep(struct holding *holding, CUresult result, uint64_t key);

/* holding_take() - take out the holding under @key; NULL: there is none. */
struct holding *holding_take(enum holding_kind kind, uint64_t key);

/* holding_settle() - after the driver has answered @result: drop @holding (or NULL), or put it back. */
CUresult holding_settle(struct holding *holding, CUresult result);

/*
 * holding_mark() - memory at @address has others who keep it where it is: @holds are GATE_HOLDS_*. Where no
 * HOLDING_POINTER has this address, the process holds that for good.
 */
void holding_mark(CUdeviceptr address, uint32_t holds);

/* holding_mark_key() - the same of what has @key; it is held from now on if it has not been. */
void holding_mark_key(enum holding_kind kind, uint64_t key, uint32_t holds);

/*
 * holding_note_pool() - the process has the pool @key from now on, is held for @holds because of the pool, and for
 * @of_each because of each allocation from it. holding_get_of_each() - the latter; 0 for a pool that was not noted.
 */
void holding_note_pool(uint64_t key, uint32_t holds, uint32_t of_each);
uint32_t holding_get_of_each(uint64_t key);

/* holding_drop_context() - drop all that was made while @context was current: it is gone. */
void holding_drop_context(CUcontext context);

#endif
