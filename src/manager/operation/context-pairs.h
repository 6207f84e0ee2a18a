/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTEXT_PAIRS_H
#define MANAGER_CONTEXT_PAIRS_H

#include <stddef.h>

#include "wire/mover.h"

struct place;

/*
 * context_make_pairs() - what the driver is told of a restore to @to of what was on @from. Returns how many; none if it
 * stays where it was.
 */
size_t context_make_pairs(const struct place *from, const struct place *to,
                          struct mover_pair pairs[MOVER_PAIRS_MAX]);

#endif
