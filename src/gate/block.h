/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_BLOCK_H
#define GATE_BLOCK_H

/*
 * A block: BLOCK_SIZE bytes of device memory that several small allocations share.
 *
 * This is only bookkeeping: it works with offsets, knows no driver and no lock, and lives in host
 * memory. One thread at a time may change it. Others may ask block_get_end() meanwhile, for an allocation that stays as it is.
 * Space is allocated first fit, in order of addresses, in granules. CUDA promises alignment
 * for all uses, and textures need the largest. Size classes would be faster but waste more, and
 * freeing a small allocation waits for the driver anyway.
 */

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_SIZE     ((uint32_t)2 << 20) /* the driver's granularity */
#define BLOCK_GRANULE  512u /* CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT of all devices */
#define BLOCK_GRANULES (BLOCK_SIZE / BLOCK_GRANULE)

struct block {
        uint32_t n_free;  /* granules */
        uint32_t longest; /* no run of free granules is longer than this */
        uint32_t n_allocations;
        struct block *next_idle;             /* memory.c */
        uint64_t used[BLOCK_GRANULES / 64];  /* a bit for each granule */
        uint64_t start[BLOCK_GRANULES / 64]; /* a bit where an allocation starts */
        uint32_t end
                [BLOCK_GRANULES]; /* of the allocation that a granule is of, as asked for; 0: of none */
};

/* block_new() - make an empty block, or return NULL; free() it. block_empty() - what was in it is gone. */
struct block *block_new(void);
void block_empty(struct block *block);

/* block_take() - take room for @bytes (at least 1). False: the block has none. */
bool block_take(struct block *block, uint32_t bytes, uint32_t *ret_offset);

/* block_give_back() - end the allocation that starts at @offset. */
void block_give_back(struct block *block, uint32_t offset);

/* block_find() - find the allocation to which the byte at @offset belongs. False: it belongs to none. */
bool block_find(const struct block *block, uint32_t offset, uint32_t *ret_start,
                uint32_t *ret_bytes);

/* block_get_end() - where the allocation ends to which the byte at @offset belongs; what is not behind @offset: it belongs to none. */
static inline uint32_t block_get_end(const struct block *block, uint32_t offset)
{
        return __atomic_load_n(&block->end[offset / BLOCK_GRANULE], __ATOMIC_RELAXED);
}

#endif
