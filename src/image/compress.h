/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_COMPRESS_H
#define IMAGE_COMPRESS_H

/* How a chunk of an image may be made smaller. A build without zstd still reads and writes plain. */

#include <stdbool.h>
#include <stddef.h>

enum image_compression { IMAGE_COMPRESSION_NONE = 0, IMAGE_COMPRESSION_ZSTD };

#define COMPRESS_LEVEL_MAX 19

/* compress_name() - get the name, "none" or "zstd"; compress_find() - find it by name. Errors: -EINVAL. */
const char *compress_name(enum image_compression compression);
int compress_find(enum image_compression *ret_compression, const char *name);

/* compress_is_built() - does this build contain @compression? */
bool compress_is_built(enum image_compression compression);

/* The memory that one thread needs to compress. For IMAGE_COMPRESSION_NONE, NULL is fine. */
struct compressor;
int compressor_new(struct compressor **ret_compressor, enum image_compression compression,
                   int level);
struct compressor *compressor_free(struct compressor *compressor);

/*
 * compressor_pack() - pack @size bytes at @from into fewer bytes at @to, which has room for @size
 * Returns the number of packed bytes, or 0 if they would not be fewer.
 */
size_t compressor_pack(struct compressor *compressor, void *to, const void *from, size_t size);

/* compressor_unpack() - unpack to exactly @to_size bytes. Errors: -EBADMSG, @from is no packed chunk. */
int compressor_unpack(struct compressor *compressor, void *to, size_t to_size, const void *from,
                      size_t from_size);

#endif
