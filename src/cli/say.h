/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SAY_H
#define CLI_SAY_H

/*
 * Reports errors on standard error: one line and a hint, or with --json a document.
 */

#include <openvgpu/client.h>
#include <openvgpu/error.h>

#include "cli/command-line.h"

/* docs/control-protocol.md; the help and the man page list them. */
enum exit_code {
        EXIT_CODE_FAILED = 1,
        EXIT_CODE_USAGE = 2,
        EXIT_CODE_NO_SUCH = 3,
        EXIT_CODE_TIMED_OUT = 4,
        EXIT_CODE_NO_MANAGER = 5,
        EXIT_CODE_PERMISSION = 6,
        EXIT_CODE_STATE = 7,
        EXIT_CODE_NO_CUDA = 3, /* of vgpu checkpoint, as the next */
        EXIT_CODE_LOST = 5,
        EXIT_CODE_CANNOT_EXECUTE = 126, /* as env(1) */
        EXIT_CODE_NOT_FOUND = 127,
};

/* All return the exit code. @hint may be "". @arguments->command is NULL while it is not known. */

/* say_usage() - the command line is wrong. */
__attribute__((format(printf, 3, 4))) int say_usage(const struct arguments *arguments,
                                                    const char *hint, const char *message, ...);

/* say_error() - the last call of @client failed. */
int say_error(const struct arguments *arguments, const struct vgpu_client *client);

/* say_get_code() - the exit code for @error. */
enum exit_code say_get_code(const struct vgpu_error *error);

/* say_library_error() - a call of the library failed, as @error says. */
int say_library_error(const struct arguments *arguments, const struct vgpu_error *error);

/* say_failure() - anything else; @name is for --json. */
__attribute__((format(printf, 5, 6))) int say_failure(const struct arguments *arguments,
                                                      enum exit_code code, const char *name,
                                                      const char *hint, const char *message, ...);

#endif
