/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/block.h"

#include <stdlib.h>
#include <string.h>

/* The first granule at or after @from that is used (@is_used) or free; BLOCK_GRANULES: none. */
static uint32_t next(const struct block *block, uint32_t from, bool is_used)
{
        while (from < BLOCK_GRANULES) {
                uint64_t word = block->used[from / 64];

                word = (is_used ? word : ~word) >> (from % 64);
                if (word)
                        return from + (uint32_t)__builtin_ctzll(word);
                from = (from / 64 + 1) * 64;
        }
        return BLOCK_GRANULES;
}

static void set_end(struct block *block, uint32_t i, uint32_t end)
{
        __atomic_store_n(&block->end[i], end, __ATOMIC_RELAXED);
}

/* @end: 0: they are free. */
static void mark(struct block *block, uint32_t first, uint32_t n, uint32_t end)
{
        for (uint32_t i = first; i < first + n; i++) {
                uint64_t mask = 1ull << (i % 64);

                set_end(block, i, end);
                if (end)
                        block->used[i / 64] |= mask;
                else
                        block->used[i / 64] &= ~mask;
        }
}

static uint32_t granules(uint32_t bytes)
{
        return (bytes + BLOCK_GRANULE - 1) / BLOCK_GRANULE;
}

struct block *block_new(void)
{
        struct block *block = calloc(1, sizeof(*block));

        if (block)
                block->n_free = block->longest = BLOCK_GRANULES;
        return block;
}

void block_empty(struct block *block)
{
        for (uint32_t i = 0; i < BLOCK_GRANULES; i++)
                set_end(block, i, 0);
        memset(block->used, 0, sizeof(block->used));
        memset(block->start, 0, sizeof(block->start));
        block->n_free = block->longest = BLOCK_GRANULES;
        block->n_allocations = 0;
        block->next_idle = NULL;
}

bool block_take(struct block *block, uint32_t bytes, uint32_t *ret_offset)
{
        uint32_t n, longest = 0;

        if (bytes == 0 || bytes > BLOCK_SIZE)
                return false;
        n = granules(bytes);
        if (n > block->longest || n > block->n_free)
                return false;

        for (uint32_t first = next(block, 0, false); first < BLOCK_GRANULES;) {
                uint32_t end = next(block, first, true);

                if (end - first >= n) {
                        mark(block, first, n, first * BLOCK_GRANULE + bytes);
                        block->start[first / 64] |= 1ull << (first % 64);
                        block->n_free -= n;
                        block->n_allocations++;
                        *ret_offset = first * BLOCK_GRANULE;
                        return true;
                }
                if (end - first > longest)
                        longest = end - first;
                first = next(block, end, false);
        }
        block->longest = longest;
        return false;
}

void block_give_back(struct block *block, uint32_t offset)
{
        uint32_t first = offset / BLOCK_GRANULE;
        uint32_t n = granules(block->end[first] - offset);

        mark(block, first, n, 0);
        block->start[first / 64] &= ~(1ull << (first % 64));
        block->n_free += n;
        block->n_allocations--;
        block->longest = block->n_free; /* may have grown together with its neighbours */
}

bool block_find(const struct block *block, uint32_t offset, uint32_t *ret_start,
                uint32_t *ret_bytes)
{
        uint32_t i = offset / BLOCK_GRANULE;
        uint32_t word = i / 64;
        uint64_t starts;

        if (offset >= BLOCK_SIZE || offset >= block->end[i])
                return false; /* in none, or in the padding behind one */

        starts = block->start[word] & (~0ull >> (63 - i % 64));
        while (!starts)
                starts = block->start[--word];
        *ret_start = (word * 64 + 63 - (uint32_t)__builtin_clzll(starts)) * BLOCK_GRANULE;
        *ret_bytes = block->end[i] - *ret_start;
        return true;
}
