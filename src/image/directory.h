/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_DIRECTORY_H
#define IMAGE_DIRECTORY_H

/*
 * The directory of an image. It is written as NAME.partial and renamed when everything in it is on
 * the disk; a directory with its final name is therefore complete. The manifest is written last.
 */

#include <limits.h>
#include <stdbool.h>

#include "image/error.h"
#include "image/manifest.h"

struct image_directory {
        int fd, parent;
        char path[PATH_MAX - 16]; /* as the caller called it, without slashes at the end */
        char partial[PATH_MAX];
};

/*
 * image_directory_begin() - make NAME.partial, for its owner alone
 * What a dump that was killed has left there is removed.
 * Errors: -EEXIST, something is at @path already; -EBUSY, somebody is just writing it.
 */
int image_directory_begin(struct image_directory *ret_directory, const char *path,
                          struct image_error *error);

/* image_directory_abandon() - remove all of it. After begin or a failed commit. */
void image_directory_abandon(struct image_directory *directory);

/* image_directory_commit() - write @manifest and give the directory its name. */
int image_directory_commit(struct image_directory *directory, const struct image_manifest *manifest,
                           struct image_error *error);

/* image_directory_close() - of one that was committed or opened. */
void image_directory_close(struct image_directory *directory);

/* image_directory_open() - an image that is whole, and its manifest. */
int image_directory_open(struct image_directory *ret_directory, const char *path,
                         struct image_manifest *ret_manifest, struct image_error *error);

/*
 * image_directory_list_criu() - put what CRIU has written into @manifest, and onto the disk
 * image_directory_check_criu() - are its files there, and as they were?
 */
int image_directory_list_criu(const struct image_directory *directory,
                              struct image_manifest *manifest, struct image_error *error);
int image_directory_check_criu(const struct image_directory *directory,
                               const struct image_manifest *manifest, struct image_error *error);

/*
 * image_directory_open_criu() - the folder of CRIU's files, to make processes of them: with the
 * rights of whoever loads them, so nobody but root and that user may have written any of it, or be
 * able to Returns a descriptor. Errors: -EPERM.
 */
int image_directory_open_criu(const struct image_directory *directory, struct image_error *error);

#endif
