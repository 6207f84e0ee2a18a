/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_RANGE_H
#define GATE_RANGE_H

/*
 * Copies and sets beyond the end of an allocation. The driver refuses them, by what it has allocated. Of the gate's memory it knows
 * only the mappings, which are rounded up to 2 MiB, or shared by small allocations: so the gate refuses what begins in an
 * allocation of its own and ends in memory that belongs to none. All else is the driver's to judge.
 *
 * Each copy looks here, so it takes no lock: for each 2 MiB of the arena there is one word, which says where the
 * allocation there ends, or which block (block.h) is there. memory.c writes it. Pools are not in here, nor is what lies outside of the arena.
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

/* range_open() - the arena begins at @base. range_close(): the child of a fork has none. */
void range_open(CUdeviceptr base);
void range_close(void);

/* range_set() - from @address on, for @size bytes, an allocation that ends at @end; 0: none. range_set_block() - a block. */
void range_set(CUdeviceptr address, uint64_t size, uint64_t end);
void range_set_block(CUdeviceptr address, const struct block *block);

/*
 * range_is_beyond() - do the @size bytes from @address on begin in an allocation, go beyond its end, and end in memory of ours
 * that belongs to none? memory.c has it, which knows all allocations.
 */
bool range_is_beyond(CUdeviceptr address, uint64_t size);

/* range_is_good_in() - in a page of which @word is the word. */
bool range_is_good_in(uint64_t word, uint64_t address, uint64_t size);

/* range_is_good() - may @size bytes from @address on be copied or set, as far as the gate can tell? */
static inline bool range_is_good(uint64_t address, uint64_t size)
{
        uint64_t page =
                (address - atomic_load_explicit(&range_base, memory_order_relaxed)) / BLOCK_SIZE;
        uint64_t word;

        if (page >= RANGE_PAGES)
                return true;
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

/* Of structures, which are CUDA_MEMCPY2D and CUDA_MEMCPY3D (that for two devices is like it); and of batches. */
bool range_2d_is_good(uint64_t copy);
bool range_3d_is_good(uint64_t copy);
bool range_batch_is_good(uint64_t to, uint64_t from, uint64_t sizes, uint64_t n,
                         uint64_t ret_failed);

#endif
