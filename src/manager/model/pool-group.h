/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_POOL_GROUP_H
#define MANAGER_POOL_GROUP_H

/*
 * vGPUs as one owner of slabs, which may hold the same blocks (pool.h, equal-blocks.h): those of one user, or those
 * for which root has named the same group when they were created. A group lasts as long as its vGPUs, for it says
 * after a restart whose their slabs are.
 */

#include <stdbool.h>
#include <stdint.h>

#include "pool/pool.h"

struct failure;
struct instance;
struct manager;

/* pool_group_check() - may a group be called @name? InvalidParameter. */
int pool_group_check(const char *name, struct failure *failure);

/* pool_group_set() - @instance, which is new, is of the group @name. */
int pool_group_set(struct instance *instance, const char *name);

/* pool_group_restore() - of which groups the store says that its vGPUs are; before their slabs are adopted. */
int pool_group_restore(struct manager *manager);

/* pool_group_is_same() - may the two hold the same blocks? */
bool pool_group_is_same(const struct instance *instance, const struct instance *other);

/* pool_group_name() - the pool's name for the vGPUs of @instance's group. */
void pool_group_name(const struct instance *instance, char ret_name[POOL_OWNER_MAX]);

/*
 * pool_group_get_owned() - @instance's part of the bytes of that group's slabs; all parts make up the whole. Of a named
 * group, each has it in the ratio of what it has in the pool; of one user's, the first vGPU has all.
 */
uint64_t pool_group_get_owned(const struct instance *instance);

#endif
