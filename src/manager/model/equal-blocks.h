/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_EQUAL_BLOCKS_H
#define MANAGER_EQUAL_BLOCKS_H

/*
 * Blocks that are equal are kept once in the pool, among the vGPUs of one user or of one group (pool-group.h): of ten
 * suspended servers of one model the pool has the model once.
 *
 * When a guest's memory has arrived in the pool, its blocks are compared, by their hashes, with those of the
 * group's other suspended guests, and with each other. For a block that is there already the guest holds that
 * one, and its own is free again. So a suspend needs room for all of its memory while it lasts, and what it
 * keeps of that is what is new. It takes as long as one that finds nothing: nobody learns by the time what
 * others have.
 *
 * What the pool does with a block that several hold, and what must hold then, says pool/slab.h. The store is
 * told the extents before the exported memory is let go, as with any suspend. Never across groups.
 */

#include <stddef.h>

#include "pool/pool.h"

struct guest;

/*
 * equal_blocks_find() - for each block of the guest where another, equal one is; nowhere for most
 *
 * @ret_places is the caller's to free(). NULL: there are none, or the hashes of the guest's reservation are not
 * known. Errors: -ENOMEM.
 */
int equal_blocks_find(const struct guest *guest, struct pool_place **ret_places, size_t *ret_n);

#endif
