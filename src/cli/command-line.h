/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMAND_LINE_H
#define CLI_COMMAND_LINE_H

/* A command line that was parsed (arguments.h). */

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"

struct arguments {
        const struct command *command;
        const char *values[COMMAND_OPTIONS_MAX];   /* by the option's place; "": has no value */
        const char *repeated[COMMAND_REPEATS_MAX]; /* of the option that may be repeated */
        size_t n_repeated;
        const char *vgpu, *device; /* of several: which one an error is about; NULL: one, or all */
        bool is_json;
        bool wants_help;
        size_t n_words;
        char **words; /* borrowed from argv, in order, with a NULL at the end */
};

#endif
