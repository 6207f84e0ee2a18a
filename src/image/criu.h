/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_CRIU_H
#define IMAGE_CRIU_H

/*
 * Runs the command of CRIU, which dumps processes into files and makes them again.
 *
 * Its CUDA plugin is kept out (it is pointed at a folder without plugins): it takes a helper that
 * fails for a process without CUDA, and reports success after a failed restore; we have done the
 * CUDA part before, and do it afterwards. Other settings are the user's, in CRIU's configuration.
 *
 * A dump leaves the processes stopped: whoever asked for it kills them when the image is on the
 * disk, or lets them go on.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "image/error.h"

/* The oldest version that starts on present kernels and dumps what they have. */
#define CRIU_VERSION_MIN_MAJOR 4
#define CRIU_VERSION_MIN_MINOR 1

struct criu {
        char path[PATH_MAX];
        char version[32]; /* "4.1.1" */
};

/*
 * criu_find() - find a CRIU that can be used here
 * @wanted:  a program; NULL: "criu" on PATH, or where distributions put it
 * Errors say what is missing: the program, its version, privileges, a feature of the kernel.
 */
int criu_find(struct criu *ret_criu, const char *wanted, struct image_error *error);

/* criu_dump() - dump @pid and all processes below it into the empty @folder, and leave them stopped. */
int criu_dump(const struct criu *criu, const char *folder, pid_t pid, bool is_shell_job,
              struct image_error *error);

/* criu_restore() - make the processes again from the open @folder. They run, as children of init. */
int criu_restore(const struct criu *criu, int folder, bool is_shell_job, struct image_error *error);

#endif
