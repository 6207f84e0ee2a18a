/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PARTING_H
#define MANAGER_PARTING_H

/* A guest's reservation is parted from the blocks that others hold too, before anything is written to it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/failure.h"
#include "pool/pool.h"

struct guest;

/* parting_count() - blocks of its reservation. */
size_t parting_count(const struct guest *guest);

/*
 * parting_part() - pool_part() for all of them, in the limits of its user
 * @is_free: not held to limits, which shall not keep a vGPU from coming back
 * Errors: PoolTooSmall; those of pool_part(), and nothing has changed.
 */
int parting_part(struct guest *guest, uint32_t device, bool is_free, struct pool_place *ret_places,
                 struct pool_reservation **ret_others, struct failure *failure);

#endif
