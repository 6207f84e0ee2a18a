/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

/*
 * Blocks: 2 MiB of device memory that small allocations share, as on a real device, so that ten
 * thousand of them don't take twenty gigabytes. With the process' lock held.
 */

#include <stdint.h>

#include "sim/mapping.h"

/* As on a real device: also what an address is a multiple of. */
#define BLOCK_UNIT 512

/* Greatest request that goes into a block. */
#define BLOCK_REQUEST_MAX (MEMORY_PAGE / 2)

/* Who shares: allocations of one kind in one context and pool. */
struct block_owner {
        CUcontext context;
        CUmemoryPool pool;
};

struct block;

/* block_allocate() - @ret_address in @ret_block. */
CUresult block_allocate(struct block **ret_block, uint64_t *ret_address, struct block_owner owner,
                        CUdevice device, uint64_t size);
/* block_release() - the block ends with its last allocation. */
void block_release(struct block *block, uint64_t address, uint64_t size);

struct mapping *block_get_mapping(const struct block *block);

#endif
