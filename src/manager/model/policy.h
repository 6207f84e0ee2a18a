/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_POLICY_H
#define MANAGER_POLICY_H

/* What a user may ask of the manager. Whose a vGPU is: instance_check_owner(). */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"
#include "pool/pool.h"

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

/*
 * policy_check_containers() - may a container that has no vGPU have one of @frame_buffer bytes and @share percent?
 * Such vGPUs count together as those of one user do. NoRoom, PermissionDenied.
 */
int policy_check_containers(const struct manager *manager, uint64_t frame_buffer, uint32_t share,
                            struct failure *failure);

/* policy_check_growth() - may @instance, which is there, have @bytes more? NoRoom. */
int policy_check_growth(const struct instance *instance, uint64_t bytes, struct failure *failure);

/*
 * policy_is_for_anybody() - with --cdi every vGPU has a door, and one that root has made may be for a container
 * of anybody: who its tenant is, nobody says. So it shares no block, for that would tell one tenant what another has, unless
 * root has said with whom (pool-group.h).
 */
bool policy_is_for_anybody(const struct instance *instance);

/*
 * policy_name_owner() - whose slabs @instance's memory goes to: its group's (pool-group.h)
 *
 * Those of a vGPU of an overcommitted device are its own: what the pool has to hold for it (promise.h) is counted
 * in whole slabs. So are those of a vGPU of root where there are doors (--cdi): it may be for a container of
 * anybody. Such a vGPU keeps once what it has twice itself.
 */
void policy_name_owner(const struct instance *instance, char ret_name[POOL_OWNER_MAX]);

/*
 * policy_get_available() - what the pool has for @instance, whoever its user is: what vGPUs of overcommitted devices
 * may need at any time is not for others.
 */
uint64_t policy_get_available(const struct instance *instance, const char *owner);

/* policy_check_user() - may its user have @bytes more of the pool? PoolTooSmall: the rest is for others. */
int policy_check_user(const struct instance *instance, const char *owner, uint64_t bytes,
                      struct failure *failure);

/* policy_may_user_ever() - might its user have them if nothing else of his were in the pool? */
bool policy_may_user_ever(const struct instance *instance, const char *owner, uint64_t bytes);

/*
 * policy_check_pool() - may @bytes more of @instance go to the pool, in slabs of @owner (pool.h)?
 * PoolTooSmall: it has no room, or its user has so much of it that the rest is for others (account.h).
 */
int policy_check_pool(const struct instance *instance, const char *owner, uint64_t bytes,
                      struct failure *failure);

#endif
