/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_RANGE_H
#define GATE_RANGE_H

/*
 * Copies and sets beyond the end of an allocation. The driver refuses them, by what it has allocated. Of the gate's memory it knows
 * only the mappings, which are rounded up to 2 MiB, or shared by small allocations: so the gate refuses what begins in an
 * allocation of its own and goes beyond its end, also where another one follows. All else is the driver's to judge.
 *
 * Each copy looks here, so it takes no lock: for each 2 MiB of the arena there is one word, which says where the
 * allocation there ends, or which block (block.h) is there. memory.c writes it. Pools are not in here. For allocations outside of the arena, which only
 * a process with more than a TiB has, there are the lowest and the highest address, and the lock.
 *
 * Which arguments of which calls are ranges: the column "ranges" of abi/cuda.abi.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/block.h"

#define RANGE_PAGES ((uint64_t)1 << 19) /* of BLOCK_SIZE: the arena */
#define RANGE_BLOCK ((uint64_t)1 << 63) /* with the address of a block, which is never freed */

extern _Atomic uint64_t range_base; /* of the arena */
extern _Atomic uint64_t range_page[RANGE_PAGES];

extern _Atomic uint64_t range_outside_from, range_outside_to;

/* range_open() - the arena begins at @base. range_close(): the child of a fork has none. */
void range_open(CUdeviceptr base);
void range_close(void);

/* range_set() - from @address on, for @size bytes, an allocation that ends at @end; 0: none. range_set_block() - a block. */
void range_set(CUdeviceptr address, uint64_t size, uint64_t end);
void range_set_block(CUdeviceptr address, const struct block *block);

/* range_set_outside() - there is, or was, an allocation of @size bytes outside of the arena; with the lock of memory.c. */
void range_set_outside(CUdeviceptr address, uint64_t size);

/*
 * range_is_beyond() - do the @size bytes from @address on begin in an allocation and go beyond its end? memory.c has it, which
 * knows all allocations.
 */
bool range_is_beyond(CUdeviceptr address, uint64_t size);

/* range_is_good_in() - in a page of which @word is the word. range_is_good_outside() - in no page. */
bool range_is_good_in(uint64_t word, uint64_t address, uint64_t size);
bool range_is_good_outside(uint64_t address, uint64_t size);

/* range_is_good() - may @size bytes from @address on be copied or set, as far as the gate can tell? */
static inline bool range_is_good(uint64_t address, uint64_t size)
{
        uint64_t page =
                (address - atomic_load_explicit(&range_base, memory_order_relaxed)) / BLOCK_SIZE;
        uint64_t word;

        if (page >= RANGE_PAGES)
                return address >= atomic_load_explicit(&range_outside_to, memory_order_relaxed) ||
                       range_is_good_outside(address, size);
        word = atomic_load_explicit(&range_page[page], memory_order_relaxed);
        if (word == 0 || (word < RANGE_BLOCK && size <= word - address))
                return true;
        return range_is_good_in(word, address, size);
}

/* range_rows_are_good() - @height rows of @width bytes, which begin @pitch bytes apart. */
static inline bool range_rows_are_good(uint64_t address, uint64_t pitch, uint64_t width,
                                       uint64_t height)
{
        uint64_t size;

        if (width == 0 || height == 0 || __builtin_mul_overflow(pitch, height - 1, &size) ||
            __builtin_add_overflow(size, width, &size))
                return true;
        return range_is_good(address, size);
}

/* Of structures, which are CUDA_MEMCPY2D and CUDA_MEMCPY3D (that for two devices is like it, and a node's); and of batches. */
bool range_2d_is_good(uint64_t copy);
bool range_3d_is_good(uint64_t copy);
bool range_batch_is_good(uint64_t to, uint64_t from, uint64_t sizes, uint64_t n,
                         uint64_t ret_failed);
bool range_3d_batch_is_good(uint64_t n, uint64_t copies, uint64_t ret_failed);

/* range_is_captured() - a set that is captured becomes a node of a graph, which the driver takes as it is. */
bool range_is_captured(uint64_t stream, bool is_per_thread);

#endif
