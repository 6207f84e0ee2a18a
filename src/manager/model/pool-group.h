/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_POOL_GROUP_H
#define MANAGER_POOL_GROUP_H

/* The vGPUs of one user as an owner of slabs, which may hold the same blocks (pool.h, equal-blocks.h). */

#include <stdint.h>

#include "pool/pool.h"

struct instance;

/* pool_group_name() - the pool's name for the vGPUs of @instance's user. */
void pool_group_name(const struct instance *instance, char ret_name[POOL_OWNER_MAX]);

/* pool_group_get_owned() - bytes of that group's slabs, with the first vGPU of the user; 0 with the others. */
uint64_t pool_group_get_owned(const struct instance *instance);

#endif
