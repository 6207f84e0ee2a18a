/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_MEMORY_H
#define LIB_MEMORY_H

/*
 * The memory of a suspended vGPU is a part of the manager's pool, mapped here. The library reads it, or
 * fills new memory and then exchanges the contents.
 */

#include <stdbool.h>
#include <sys/uio.h>

#include "image/manifest.h"
#include "lib/client.h"

struct memory {
        struct vgpu_client *client;
        char *name;
        json_t *answer; /* the manager's answer: the vGPU, its processes */
        struct iovec *slabs;
        size_t n_slabs;
        struct iovec *pieces; /* in the order of the processes and their memory */
        size_t n_pieces;
        bool is_open;
};

/*
 * memory_open() - open the memory of vGPU @name for reading
 * @detach:  keep the gates of its processes away until memory_close()
 */
int memory_open(struct memory *ret_memory, struct vgpu_client *client, const char *name,
                bool detach);

/*
 * memory_replace() - get new memory for vGPU @name, which the caller fills
 * @image:  NULL: the memory is for the processes that the vGPU has; else for those of the image, which
 *          were made again
 */
int memory_replace(struct memory *ret_memory, struct vgpu_client *client, const char *name,
                   const struct image_manifest *image);

/* memory_describe() - describe the processes, for a manifest. */
int memory_describe(const struct memory *memory, struct image_manifest *manifest);

/* memory_count_devices() - that the vGPU has. */
size_t memory_count_devices(const struct memory *memory);

/* memory_commit() - give the filled memory to the processes. */
int memory_commit(struct memory *memory);

/* memory_close() - end the access; without a commit nothing has changed. The last error stays. */
void memory_close(struct memory *memory);

#endif
