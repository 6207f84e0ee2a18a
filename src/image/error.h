/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_ERROR_H
#define IMAGE_ERROR_H

/* Why an action with an image failed: what and why in one line, what to do in another. */

struct image_error {
        int code; /* a negative errno; 0: none */
        char message[512];
        char hint[256]; /* may be empty */
};

/*
 * image_fail() - set @error, unless it has a reason already: the first counts. Returns @code.
 * @hint:  "" for none
 */
__attribute__((format(printf, 4, 5))) int image_fail(struct image_error *error, int code,
                                                     const char *hint, const char *message, ...);

/* image_fail_file() - the same for a failed system call on the file @name. */
int image_fail_file(struct image_error *error, int code, const char *doing, const char *name);

#endif
