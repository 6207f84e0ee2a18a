/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_POLICY_H
#define MANAGER_POLICY_H

/* What a user may ask of the manager. Whose a vGPU is: instance_check_owner(). */

#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"

struct instance;
struct manager;

/* policy_check_share() - may @uid promise a share of a device's time? PermissionDenied. */
int policy_check_share(uid_t uid, struct failure *failure);

/* policy_check_name() - may @uid give a vGPU this name, or take it from one? PermissionDenied. */
int policy_check_name(uid_t uid, const char *name, struct failure *failure);

/*
 * policy_check_limits() - may there be one more vGPU, and @uid have it, of @frame_buffer bytes? NoRoom.
 * Suspended ones count: their memory is in the pool, which is for all.
 */
int policy_check_limits(const struct manager *manager, uid_t uid, uint64_t frame_buffer,
                        struct failure *failure);

/* policy_check_growth() - may @instance, which is there, have @bytes more? NoRoom. */
int policy_check_growth(const struct instance *instance, uint64_t bytes, struct failure *failure);

/*
 * policy_check_pool() - may @bytes more of @instance go to the pool, in slabs of @owner (pool.h)?
 * PoolTooSmall: it has no room, or its user has so much of it that the rest is for others (account.h).
 */
int policy_check_pool(const struct instance *instance, const char *owner, uint64_t bytes,
                      struct failure *failure);

#endif
