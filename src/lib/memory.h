/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_MEMORY_H
#define LIB_MEMORY_H

/*
 * The memory of a suspended vGPU: its part of the manager's pool, mapped here. It can be read, or
 * filled and then exchanged for the present contents.
 */

#include <stdbool.h>
#include <sys/uio.h>

#include "image/manifest.h"
#include "lib/client.h"

struct memory {
        struct vgpu_client *client;
        char *name;
        json_t *answer; /* of the manager: the vGPU, its processes */
        struct iovec *slabs;
        size_t n_slabs;
        struct iovec *pieces; /* in the order of the processes and their memory */
        size_t n_pieces;
        bool is_open;
};

/*
 * memory_open() - of vGPU @name, to be read
 * @detach:  keep its processes' gates away until memory_close()
 */
int memory_open(struct memory *ret_memory, struct vgpu_client *client, const char *name,
                bool detach);

/*
 * memory_replace() - new memory for vGPU @name, to be filled
 * @image:  NULL: for the processes that it has. Else for those of the image, which were made again.
 */
int memory_replace(struct memory *ret_memory, struct vgpu_client *client, const char *name,
                   const struct image_manifest *image);

/* memory_describe() - the processes, for a manifest. */
int memory_describe(const struct memory *memory, struct image_manifest *manifest);

/* memory_commit() - what was filled is theirs now. */
int memory_commit(struct memory *memory);

/* memory_close() - without a commit nothing was changed. Leaves the last error alone. */
void memory_close(struct memory *memory);

#endif
