/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_CHAIN_H
#define IMAGE_CHAIN_H

/*
 * An image, its parent, that one's parent, and so on: all that is needed to read its memory.
 *
 * A parent is looked for where it was when the image was made, and beside the image, so that a folder of
 * images can be moved as a whole. It must have the id and the manifest that it had then, and the
 * same checksums of the chunks. All files are open from the beginning: what is removed later can be
 * read nevertheless.
 */

#include "image/directory.h"

#define IMAGE_CHAIN_MAX 32 /* images: each is one more that must not be lost */

struct image_link {
        struct image_directory directory;
        struct image_manifest manifest;
};

struct image_chain {
        struct image_link *links[IMAGE_CHAIN_MAX]; /* the image first */
        struct image_data_file files[IMAGE_CHAIN_MAX];
        size_t n;
        struct image_table table; /* of the image: where each chunk really is */
        uint8_t *of_chunk;        /* in which link's file */
};

/*
 * image_chain_open() - open the image @path and all that it needs
 * Errors: those of image_directory_open(), for any of them; -ENOENT, a parent is missing; -EBADMSG,
 * a parent is another image or has changed; -EMLINK, there are more than IMAGE_CHAIN_MAX.
 */
int image_chain_open(struct image_chain *ret_chain, const char *path, struct image_error *error);

/* image_chain_close() - close all; a chain of zeros is fine. */
void image_chain_close(struct image_chain *chain);

/* image_chain_read() - read the memory, or only check it; see image_data_read_from(). */
int image_chain_read(const struct image_chain *chain, const struct iovec *pieces, size_t n_pieces,
                     const struct image_data_options *options, struct image_data_report *ret_report,
                     struct image_error *error);

/* image_chain_check_owners() - see image_directory_check_owners(), for all of them. */
int image_chain_check_owners(const struct image_chain *chain, struct image_error *error);

#endif
