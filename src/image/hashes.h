/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_HASHES_H
#define IMAGE_HASHES_H

/*
 * The hashes of an image's chunks, and the key under which they were made: the file memory.hashes.
 *
 * A later image, whose parent this one becomes, is hashed under the same key: chunks with the same
 * hash are the same. Who knows the key can make two chunks with the same hash. So only the owner of
 * the image may read the file, and one that others can read is not compared with.
 */

#include <stddef.h>
#include <stdint.h>

#include "hash/hash.h"
#include "image/error.h"

#define IMAGE_HASHES_FILE "memory.hashes"

struct image_hashes {
        struct hash_key key;
        struct hash_value *values; /* HASH_UNKNOWN: of a chunk that is all zeros */
        size_t n;
};

void image_hashes_deinit(struct image_hashes *hashes);

/* image_hashes_set_size() - make room for @n values, all of them unknown. Errors: -ENOMEM. */
int image_hashes_set_size(struct image_hashes *hashes, size_t n);

/*
 * image_hashes_write() - write the new file into @directory, and wait until it is on the disk
 * @where:  the directory's path, for messages
 */
int image_hashes_write(struct image_hashes *hashes, int directory, const char *where,
                       uint32_t *ret_checksum, struct image_error *error);

/*
 * image_hashes_read() - read the file of an image of @n chunks
 * Errors: -EPERM, other users than its owner can read or write it; -EBADMSG, it is altered.
 */
int image_hashes_read(struct image_hashes *ret_hashes, int directory, const char *where, size_t n,
                      uint32_t checksum, struct image_error *error);

#endif
