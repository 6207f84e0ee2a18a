/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_WAY_BACK_H
#define MANAGER_WAY_BACK_H

/*
 * The way back of a vGPU whose operation is undone, to the devices where it is. What it gave up there others may have
 * taken: then it is to come in like one that is away, and its programs stand still meanwhile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct instance;

/* way_back_lacks_room() - was there not room enough for it? Also between two tries (backlog.h). */
bool way_back_lacks_room(const struct instance *instance);

/* way_back_get_bytes() - what it takes of the device of part @part, beside what is promised to its processes there. */
uint64_t way_back_get_bytes(const struct instance *instance, size_t part);

#endif
