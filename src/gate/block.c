/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/block.h"

#include <stdlib.h>

static bool bit(const uint64_t *bits, uint32_t i)
{
        return bits[i / 64] >> (i % 64) & 1;
}

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

static void mark(struct block *block, uint32_t first, uint32_t n, bool is_used)
{
        for (uint32_t i = first; i < first + n; i++) {
                uint64_t mask = 1ull << (i % 64);

                if (is_used)
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
                        mark(block, first, n, true);
                        block->start[first / 64] |= 1ull << (first % 64);
                        block->bytes[first] = bytes;
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
        uint32_t n = granules(block->bytes[first]);

        mark(block, first, n, false);
        block->start[first / 64] &= ~(1ull << (first % 64));
        block->bytes[first] = 0;
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

        if (offset >= BLOCK_SIZE || !bit(block->used, i))
                return false;

        starts = block->start[word] & (~0ull >> (63 - i % 64));
        while (!starts)
                starts = block->start[--word];
        i = word * 64 + 63 - (uint32_t)__builtin_clzll(starts);
        if (offset - i * BLOCK_GRANULE >= block->bytes[i])
                return false; /* in the padding behind it */
        *ret_start = i * BLOCK_GRANULE;
        *ret_bytes = block->bytes[i];
        return true;
}
