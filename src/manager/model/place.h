/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PLACE_H
#define MANAGER_PLACE_H

/*
 * Where a vGPU, or a process of it, is, was or is to be: a device for each of the vGPU's parts, in their
 * order. What is nowhere has none.
 */

#include <stdbool.h>
#include <stddef.h>

#include "wire/gate.h"

struct device;

struct place {
        struct device *device[GATE_DEVICES_MAX]; /* NULL behind the last part */
};

extern const struct place place_nowhere;

bool place_is_nowhere(const struct place *place);
bool place_is_equal(const struct place *a, const struct place *b);

/* place_has() - is a part of it on @device? */
bool place_has(const struct place *place, const struct device *device);

/* place_count() - its parts. */
size_t place_count(const struct place *place);

#endif
