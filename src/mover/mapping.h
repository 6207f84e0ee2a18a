/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_MAPPING_H
#define MOVER_MAPPING_H

/*
 * Device memory of a job, mapped one after another into one reserved range: so
 * neighbours can be copied in one call, and access is granted in one call.
 *
 * Fill it with mapping_import() or mapping_create(), then mapping_map(). After a
 * failure, and at the end, mapping_deinit() undoes whatever there is. An empty
 * (zeroed) mapping is fine everywhere. None of this needs a current context.
 */

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "mover/room.h"
#include "wire/mover.h"

struct mapping {
        CUmemGenericAllocationHandle *handles;
        size_t n_handles;
        CUdeviceptr base;
        uint64_t size;       /* of all memories; reserved when base is set */
        uint64_t n_mapped;   /* bytes mapped so far */
        size_t n_passed;     /* handles from the first on that are let go: mapping_pass() */
        uint64_t n_unmapped; /* bytes of those */
};

/* mapping_import() - memory that others made, of @sizes; each of @fds is closed and set to -1. */
int mapping_import(struct mapping *mapping, const uint64_t *sizes, int *fds, size_t n,
                   struct mover_done *done);

/* mapping_create() - @size bytes of new memory on @device, not to be exported; @taking: by what right. */
int mapping_create(struct mapping *mapping, const struct room_taking *taking, CUdevice device,
                   uint64_t size, struct mover_done *done);

/* mapping_map() - make it all accessible to the devices @ids, at most two. */
int mapping_map(struct mapping *mapping, const uint64_t *sizes, const CUdevice *ids, size_t n_ids,
                struct mover_done *done);

/* mapping_unmap() - undo a mapping_map(), also one that failed; the memory is kept. */
void mapping_unmap(struct mapping *mapping);

/* mapping_release() - give back memory that is mapped nowhere; on failure (-EIO) it is still there. */
int mapping_release(struct mapping *mapping, struct mover_done *done);

/*
 * mapping_pass() - let go of the first @n memories, of @sizes, which nothing reads any more; those before
 * have been let go already. On failure what has not been is still there.
 */
int mapping_pass(struct mapping *mapping, const uint64_t *sizes, size_t n, struct mover_done *done);

void mapping_deinit(struct mapping *mapping);

#endif
