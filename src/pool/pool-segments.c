/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pool/pool.h"

static uint64_t min(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/*
 * Walks along both lists at once; each step ends a memory, an extent, or both, so there are never
 * more segments than memories and extents.
 */
int pool_make_segments(struct mover_segment **ret_segments, size_t *ret_n, const uint64_t *sizes,
                       size_t n_sizes, const struct pool_extent *extents, size_t n_extents)
{
        CLEANUP(freep)
        struct mover_segment *segments = calloc(n_sizes + n_extents + 1, sizeof(*segments));
        uint64_t in_memory = 0, in_extent = 0;
        size_t memory = 0, extent = 0, n = 0;

        if (!segments)
                return -ENOMEM;

        while (memory < n_sizes) {
                uint64_t length;

                if (in_memory == sizes[memory]) {
                        in_memory = 0;
                        memory++;
                        continue;
                }
                if (extent == n_extents)
                        return -ENOSPC;

                length = min(sizes[memory] - in_memory, extents[extent].length - in_extent);
                segments[n++] =
                        (struct mover_segment){ .memory = (uint32_t)memory,
                                                .slab = extents[extent].slab,
                                                .memory_offset = in_memory,
                                                .slab_offset = extents[extent].offset + in_extent,
                                                .length = length };
                in_memory += length;
                in_extent += length;
                if (in_extent == extents[extent].length) {
                        in_extent = 0;
                        extent++;
                }
        }
        *ret_segments = TAKE(segments);
        *ret_n = n;
        return 0;
}
