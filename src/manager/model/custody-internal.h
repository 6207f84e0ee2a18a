/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CUSTODY_INTERNAL_H
#define MANAGER_CUSTODY_INTERNAL_H

/* What custody.c, which puts, and custody-load.c, which finds it again, have in common. */

#include <stdbool.h>

#include "wire/keeper.h"

struct guest;
struct guest_memory;

/* How labels in the keeper begin. */
#define CUSTODY_PAGE   "page/"
#define CUSTODY_MEMORY "memory/"
#define CUSTODY_PARKED "parked/"
#define CUSTODY_SLAB   "slab/"

/* Beside what the store has of a context: the process was left behind when the others were resumed. */
#define CUSTODY_ABSENT 0x100u

/* custody_is_away() - is it left behind, or on its way back? */
bool custody_is_away(const struct guest *guest);

/* custody_memory_label() - of one of its allocations. */
void custody_memory_label(char label[KEEPER_LABEL_MAX], const char *prefix,
                          const struct guest *guest, const struct guest_memory *memory);

/* custody_note_stored() - the store says of it what is. */
void custody_note_stored(struct guest *guest);

#endif
