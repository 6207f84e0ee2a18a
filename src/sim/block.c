/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: 2 MiB of device memory that small allocations share. */

#include "sim/block.h"

#include <stdlib.h>
#include <string.h>

#define UNITS (MEMORY_PAGE / BLOCK_UNIT)

struct block {
        struct block *next;
        struct block_owner owner;
        struct mapping *mapping;
        uint64_t n_used;
        bool is_used[UNITS];
};

static struct block *blocks; /* list, under the process' lock */

static uint64_t units(uint64_t size)
{
        return (size + BLOCK_UNIT - 1) / BLOCK_UNIT;
}

/* First fit: the unit where @n free ones begin, or UNITS. */
static uint64_t find_free(const struct block *block, uint64_t n)
{
        uint64_t run = 0;

        if (UNITS - block->n_used < n)
                return UNITS;
        for (uint64_t i = 0; i < UNITS; i++) {
                run = block->is_used[i] ? 0 : run + 1;
                if (run == n)
                        return i + 1 - n;
        }
        return UNITS;
}

static CUresult new_block(struct block **ret_block, struct block_owner owner, CUdevice device)
{
        CLEANUP(memory_file_unrefp) struct memory_file *file = NULL;
        CLEANUP(freep) struct block *block = calloc(1, sizeof(*block));
        CUresult result;

        if (!block)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = memory_file_create(&file, process.device[device].at, MEMORY_PAGE);
        if (result == CUDA_SUCCESS)
                result = mapping_create(&block->mapping, file, 0);
        if (result == CUDA_SUCCESS)
                result = mapping_set_access(block->mapping, UINT32_MAX, UINT32_MAX);
        if (result != CUDA_SUCCESS) {
                (void)mapping_free(block->mapping);
                return result;
        }
        block->owner = owner;
        block->next = blocks;
        blocks = block;
        *ret_block = TAKE(block);
        return CUDA_SUCCESS;
}

static void free_block(struct block *block)
{
        struct block **link = &blocks;

        while (*link != block)
                link = &(*link)->next;
        *link = block->next;
        (void)mapping_free(block->mapping);
        free(block);
}

CUresult block_allocate(struct block **ret_block, uint64_t *ret_address, struct block_owner owner,
                        CUdevice device, uint64_t size)
{
        uint64_t n = units(size), at = UNITS;
        struct block *block = blocks;
        CUresult result;

        for (; block; block = block->next) {
                if (block->owner.context == owner.context && block->owner.pool == owner.pool)
                        at = find_free(block, n);
                if (at < UNITS)
                        break;
        }
        if (!block) {
                result = new_block(&block, owner, device);
                if (result != CUDA_SUCCESS)
                        return result;
                at = 0;
        }
        memset(&block->is_used[at], true, n);
        block->n_used += n;
        *ret_block = block;
        *ret_address = block->mapping->address + at * BLOCK_UNIT;
        return CUDA_SUCCESS;
}

void block_release(struct block *block, uint64_t address, uint64_t size)
{
        uint64_t n = units(size);

        memset(&block->is_used[(address - block->mapping->address) / BLOCK_UNIT], false, n);
        block->n_used -= n;
        if (block->n_used == 0)
                free_block(block);
}

struct mapping *block_get_mapping(const struct block *block)
{
        return block->mapping;
}
