/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_DIRECTORY_H
#define IMAGE_DIRECTORY_H

/*
 * The directory of an image. It is created as NAME.partial, and renamed when everything in it is on
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
 * image_directory_begin() - make NAME.partial, to which only its owner has access
 *
 * Removes what a killed dump has left there.
 * Errors: -EEXIST, @path exists already; -EBUSY, another process is writing it.
 */
int image_directory_begin(struct image_directory *ret_directory, const char *path,
                          struct image_error *error);

/* image_directory_abandon() - remove the directory, after image_directory_begin() or a failed commit. */
void image_directory_abandon(struct image_directory *directory);

/* image_directory_commit() - write @manifest and give the directory its name. */
int image_directory_commit(struct image_directory *directory, const struct image_manifest *manifest,
                           struct image_error *error);

/* image_directory_close() - close a directory that was committed or opened. */
void image_directory_close(struct image_directory *directory);

/* image_directory_open() - open a complete image, and read its manifest. */
int image_directory_open(struct image_directory *ret_directory, const char *path,
                         struct image_manifest *ret_manifest, struct image_error *error);

/*
 * image_directory_list_criu() - list CRIU's files in @manifest, and wait until they are on the disk
 * image_directory_check_criu() - check that CRIU's files exist and have not changed
 */
int image_directory_list_criu(const struct image_directory *directory,
                              struct image_manifest *manifest, struct image_error *error);
int image_directory_check_criu(const struct image_directory *directory,
                               const struct image_manifest *manifest, struct image_error *error);

/*
 * image_directory_check_owners() - check who may have written the directory and the files in it
 *
 * Processes get the rights of the user who loads them. Therefore only root and this user may have
 * written any of the files that they are made from, or be able to. Errors: -EPERM.
 */
int image_directory_check_owners(const struct image_directory *directory,
                                 struct image_error *error);

/*
 * image_directory_open_criu() - open the folder of CRIU's files, to make processes from them
 *
 * Returns a descriptor. Errors: -EPERM, as above.
 */
int image_directory_open_criu(const struct image_directory *directory, struct image_error *error);

#endif
