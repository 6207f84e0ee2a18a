/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_EXAMPLE_H
#define CLI_EXAMPLE_H

/* The installed scenarios. */

#include <jansson.h>

#include "base/paths.h"

/*
 * example_find() - the path of the scenario @name: that of a file, or the name of an example
 * Errors: -ENOENT, neither; -ENAMETOOLONG.
 */
int example_find(char *path, const char *name);

/* example_list() - [{"name", "description"}, ...], sorted; a new reference, NULL: out of memory. */
json_t *example_list(void);

#endif
