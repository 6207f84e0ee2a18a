/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

/*
 * The words behind the name of a command, parsed by the command's description.
 *
 * getopt_long() is not used: it accepts abbreviations, which break scripts when an option is added.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cli/command-line.h"

/*
 * arguments_parse() - @argv of @argc words and a NULL, without program and command; its order is
 * changed. Returns 0, or an exit code after it has said what is wrong.
 */
int arguments_parse(struct arguments *arguments, const struct command *command, int argc,
                    char **argv);

/* arguments_get() - the value of the option @name; NULL: not given. */
const char *arguments_get(const struct arguments *arguments, const char *name);

/*
 * The value of an option as a size or a percentage. Return 0 and leave @value alone when the option
 * is not given; an exit code after they have said what is wrong.
 */
int arguments_get_size(const struct arguments *arguments, const char *name, uint64_t *value);
int arguments_get_percent(const struct arguments *arguments, const char *name, uint32_t *value);

/* arguments_get_devices() - --devices, how many; not beside --device, which names them. 0: not given. */
int arguments_get_devices(const struct arguments *arguments, uint32_t *value);

/* A whole number in a range; @unit may stand behind it and need not. Otherwise as above. */
struct arguments_range {
        const char *unit;
        uint32_t min, max;
        const char *example;
};
int arguments_get_number(const struct arguments *arguments, const char *name,
                         const struct arguments_range *range, uint32_t *value);

/* arguments_get_seconds() - a time, as duration.h says. */
int arguments_get_seconds(const struct arguments *arguments, const char *name, double *value);

#endif
