/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

/*
 * Blocks: 2 MiB of device memory that small allocations share, as on a real device, so that ten
 * thousand of them don't take twenty gigabytes. Call these with the process' lock held.
 */

#include <stdint.h>

#include "sim/mapping.h"

/* Sizes and addresses are multiples of this, as on a real device. */
#define BLOCK_UNIT 512

/* The greatest request that goes into a block. */
#define BLOCK_REQUEST_MAX (MEMORY_PAGE / 2)

/* Allocations of one kind in one context and pool share a block. */
struct block_owner {
        CUcontext context;
        CUmemoryPool pool;
};

struct block;

/* block_allocate() - allocate at @ret_address in @ret_block. */
CUresult block_allocate(struct block **ret_block, uint64_t *ret_address, struct block_owner owner,
                        CUdevice device, uint64_t size);
/* block_release() - end an allocation; the block ends with its last one. */
void block_release(struct block *block, uint64_t address, uint64_t size);

struct mapping *block_get_mapping(const struct block *block);

#endif
