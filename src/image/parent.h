/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_PARENT_H
#define IMAGE_PARENT_H

/*
 * The parent of an image that is being written: an older image of the same memory. A chunk that it has
 * is not written again, the new image says which of the parent's it is (chain.h reads it there).
 */

#include "image/chain.h"
#include "image/hashes.h"

struct image_parent {
        struct image_chain chain; /* its first image is the parent */
        struct image_hashes hashes;
        uint32_t *order; /* the parent's chunks by their hashes */
};

/*
 * image_parent_open() - open the image @path, to compare with
 * Errors: those of image_chain_open(); -EINVAL, no parent can be made of it: the message says why;
 * -EMLINK, the chain is as long as it may be; those of image_hashes_read().
 */
int image_parent_open(struct image_parent *ret_parent, const char *path, struct image_error *error);

/* image_parent_close() - let it go; one that was never opened is fine if it is all zeros. */
void image_parent_close(struct image_parent *parent);

/*
 * image_parent_find() - find @chunk of the new image @table, with its checksum and its hash @value
 * Returns the number of the parent's chunk, or IMAGE_CHUNK_OWN if the parent has none like it.
 */
uint32_t image_parent_find(const struct image_parent *parent, const struct image_table *table,
                           size_t chunk, const struct hash_value *value);

/*
 * image_parent_describe() - write into @manifest which image its parent is
 * Errors: -ENOENT, the parent, or one behind it, was removed or replaced since it was opened.
 */
int image_parent_describe(const struct image_parent *parent, struct image_manifest *manifest,
                          struct image_error *error);

#endif
