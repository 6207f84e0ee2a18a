/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_ERROR_H
#define IMAGE_ERROR_H

/* Says in one line what failed and why, and in another line what to do. */

struct image_error {
        int code; /* a negative errno; 0: none */
        char message[512];
        char hint[256]; /* may be empty */
};

/*
 * image_fail() - set @error, unless it has a reason already. Returns @code.
 * @hint:  "" for none
 */
__attribute__((format(printf, 4, 5))) int image_fail(struct image_error *error, int code,
                                                     const char *hint, const char *message, ...);

/* image_fail_file() - call image_fail() for a system call on the file @name that failed. */
int image_fail_file(struct image_error *error, int code, const char *doing, const char *name);

#endif
