/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

/* Rows of one kind: a table for people, an array for programs. */

#include <jansson.h>

#include "cli/arguments.h"
#include "cli/table.h"

struct listing {
        struct table table;
        json_t *array; /* owned */
};

/* listing_init() - no rows yet; @columns are borrowed. listing_deinit() may be called twice. */
void listing_init(struct listing *listing, const struct column *columns);
void listing_deinit(struct listing *listing);

/*
 * listing_print() - print it, as an object with the array in its member @key for --json
 * @code:  an exit code: if it is not 0, nothing is printed unless there are rows
 *
 * Returns @code, or another exit code.
 */
int listing_print(const struct listing *listing, const struct arguments *arguments, const char *key,
                  int code);

static inline void listing_deinitp(struct listing *listing)
{
        listing_deinit(listing);
}

#endif
