/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RECOVERY_INTERNAL_H
#define MANAGER_RECOVERY_INTERNAL_H

/* What recovery.c, which puts, and recovery-load.c, which finds it again, have in common. */

#include <stdbool.h>

#include "wire/keeper.h"

struct guest;
struct guest_memory;
struct instance;
struct instance_part;

/* How labels in the keeper begin. */
#define RECOVERY_PAGE    "page/"
#define RECOVERY_MEMORY  "memory/"
#define RECOVERY_PARKED  "parked/"
#define RECOVERY_SLAB    "slab/"
#define RECOVERY_SPILLED "spilled/"
#define RECOVERY_RESERVE "reserve/"

/* Beside what the store has of a context: the process was left behind when the others were resumed. */
#define RECOVERY_ABSENT 0x100u

/* recovery_memory_label() - of one of its allocations. */
void recovery_memory_label(char label[KEEPER_LABEL_MAX], const char *prefix,
                           const struct guest *guest, const struct guest_memory *memory);

/* recovery_page_label() - of the page of one of its parts. */
void recovery_page_label(char label[KEEPER_LABEL_MAX], const struct instance *instance,
                         const struct instance_part *part);

/* recovery_note_stored() - the store says of it what is. */
void recovery_note_stored(struct guest *guest);

#endif
