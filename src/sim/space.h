/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SPACE_H
#define SIM_SPACE_H

/*
 * A space: ranges of addresses that do not overlap, sorted, found by any address in them.
 *
 * A sorted array: lookups are what programs do, and insertion moves a few kilobytes at worst.
 */

#include <stddef.h>
#include <stdint.h>

/* The first member of what is put into a space. */
struct range {
        uint64_t address;
        uint64_t size;
};

struct space {
        struct range **ranges;
        size_t n, capacity;
};

/* space_insert() - add a range. Errors: -ENOMEM; -EEXIST, it overlaps another one. */
int space_insert(struct space *space, struct range *range);
void space_remove(struct space *space, struct range *range);

/* space_find() - find the range that contains @address, or return NULL. */
struct range *space_find(const struct space *space, uint64_t address);

/* space_next() - return the first range that begins at @address or above, or NULL. */
struct range *space_next(const struct space *space, uint64_t address);

#endif
