/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "manager/model/account.h"
#include "manager/model/backing.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/pool-group.h"
#include "manager/model/promise.h"

int policy_check_share(uid_t uid, struct failure *failure)
{
        if (account_is_operator(uid))
                return 0;
        return failure_set(
                failure, -EPERM, "PermissionDenied",
                "create it without one, and have them run 'vgpu share' on it",
                "only root and the user of vgpud give a vGPU a share of a device's time");
}

/* By these names the ledger knows whose use is that of a job of Slurm (ledger.h). */
#define JOB_NAME "job-"

int policy_check_name(uid_t uid, const char *name, struct failure *failure)
{
        if (account_is_operator(uid) || strncmp(name, JOB_NAME, strlen(JOB_NAME)) != 0)
                return 0;
        return failure_set(failure, -EPERM, "PermissionDenied", "choose another name",
                           "names that begin with " JOB_NAME " are those of Slurm's jobs: only "
                           "root and the user of vgpud give and take them");
}

static int check_frame_buffer(uint64_t limit, uint64_t has, uint64_t wants, struct failure *failure)
{
        char limit_text[SIZE_TEXT_MAX], has_text[SIZE_TEXT_MAX], wants_text[SIZE_TEXT_MAX];

        if (limit == 0 || (has <= limit && wants <= limit - has))
                return 0;
        size_format(limit_text, limit);
        size_format(has_text, has);
        return failure_set(
                failure, -EDQUOT, "NoRoom",
                "ask for less, remove one (vgpu ls -l), or ask who runs vgpud for more "
                "(--user-frame-buffer)",
                "the vGPUs of one user may have %s together: yours have %s, and %s more is too much",
                limit_text, has_text, size_format(wants_text, wants));
}

int policy_check_limits(const struct manager *manager, uid_t uid, uint64_t frame_buffer,
                        struct failure *failure)
{
        const struct options *options = manager->options;
        const struct instance *instance;
        uint32_t n_all = 0, n = 0;
        uint64_t bytes = 0;

        list_for_each(instance, &manager->instances, link) {
                n_all++;
                if (instance->owner == uid) {
                        n++;
                        bytes += instance->frame_buffer * instance->n_parts;
                }
        }
        if (n_all >= STATE_INSTANCES_MAX)
                return failure_set(failure, -EMFILE, "NoRoom", "remove one that is not needed",
                                   "there are %d vGPUs already", STATE_INSTANCES_MAX);
        if (account_is_operator(uid))
                return 0;
        if (options->user_vgpus && n >= options->user_vgpus)
                return failure_set(
                        failure, -EDQUOT, "NoRoom",
                        "remove one that is not needed (vgpu ls -l), or ask who runs vgpud "
                        "for more (--user-vgpus)",
                        "one user may have %u vGPUs: you have %u", options->user_vgpus, n);
        return check_frame_buffer(options->user_frame_buffer, bytes, frame_buffer, failure);
}

/* Of those that were made for containers. */
static uint32_t count_of_containers(const struct manager *manager, uint64_t *ret_bytes)
{
        const struct instance *instance;
        uint32_t n = 0;

        *ret_bytes = 0;
        list_for_each(instance, &manager->instances, link) {
                if (instance->space.inode == 0)
                        continue;
                n++;
                *ret_bytes += instance->frame_buffer;
        }
        return n;
}

static int check_door_size(const struct options *options, uint64_t frame_buffer, uint32_t share,
                           struct failure *failure)
{
        char most[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];

        if (frame_buffer > options->cdi_new)
                return failure_set(failure, -EDQUOT, "NoRoom",
                                   "ask for less (OPENVGPU_FB), or ask who runs vgpud (--cdi-new)",
                                   "a container may have %s, not %s",
                                   size_format(most, options->cdi_new),
                                   size_format(wanted, frame_buffer));
        if (share > options->cdi_new_share)
                return failure_set(
                        failure, -EPERM, "PermissionDenied",
                        "ask for less (OPENVGPU_SHARE), or ask who runs vgpud (--cdi-new)",
                        "a container may have %" PRIu32 " percent of a device's time, not %" PRIu32,
                        options->cdi_new_share, share);
        return 0;
}

int policy_check_containers(const struct manager *manager, uint64_t frame_buffer, uint32_t share,
                            struct failure *failure)
{
        const struct options *options = manager->options;
        char most[SIZE_TEXT_MAX];
        uint64_t bytes;
        uint32_t n = count_of_containers(manager, &bytes);
        int r = check_door_size(options, frame_buffer, share, failure);

        if (r < 0)
                return r;
        if (options->user_vgpus && n >= options->user_vgpus)
                return failure_set(failure, -EDQUOT, "NoRoom",
                                   "end a container, or ask who runs vgpud (--user-vgpus)",
                                   "containers have %" PRIu32 " vGPUs together, and may not have "
                                   "more",
                                   n);
        if (options->user_frame_buffer && (bytes > options->user_frame_buffer ||
                                           frame_buffer > options->user_frame_buffer - bytes))
                return failure_set(failure, -EDQUOT, "NoRoom",
                                   "ask for less, or ask who runs vgpud (--user-frame-buffer)",
                                   "the vGPUs of containers may have %s together",
                                   size_format(most, options->user_frame_buffer));
        return 0;
}

int policy_check_growth(const struct instance *instance, uint64_t bytes, struct failure *failure)
{
        const struct manager *manager = instance->manager;
        const struct instance *other;
        uint64_t has = 0;

        if (account_is_operator(instance->owner))
                return 0;
        list_for_each(other, &manager->instances, link)
                if (other->owner == instance->owner)
                        has += other->frame_buffer * other->n_parts;
        return check_frame_buffer(manager->options->user_frame_buffer, has,
                                  bytes * instance->n_parts, failure);
}

/* The pool. */

bool policy_is_for_anybody(const struct instance *instance)
{
        return instance->manager->options->cdi_path[0] && account_is_operator(instance->owner) &&
               !instance->pool_group[0];
}

void policy_name_owner(const struct instance *instance, char ret_name[POOL_OWNER_MAX])
{
        if (promise_is_any_overcommitted(instance) || policy_is_for_anybody(instance))
                snprintf(ret_name, POOL_OWNER_MAX, "%s", instance->uuid);
        else
                pool_group_name(instance, ret_name);
}

static bool has_reservation(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->reservation)
                        return true;
        return instance->image != NULL;
}

static uint64_t get_pool_bytes(const struct instance *instance)
{
        uint64_t room, bytes = pool_group_get_owned(instance);

        return has_reservation(instance)
                       ? bytes + pool_get_owned(instance->manager->pool, instance->uuid, &room)
                       : bytes;
}

/*
 * The reservations are the books: they are counted anew each time. A block that several hold is one. @except: a vGPU
 * whose owner's are left out, or NULL.
 */
static int count_pool(struct manager *manager, const struct instance *except,
                      struct accounts *accounts)
{
        const struct instance *instance;
        int r = 0;

        list_for_each(instance, &manager->instances, link) {
                const struct account_cost cost = { { [ACCOUNT_POOL] = get_pool_bytes(instance) } };
                struct account_charge charge = { 0 };

                if (except && instance->owner == except->owner)
                        continue;
                if (r == 0 && cost.of[ACCOUNT_POOL] > 0)
                        r = account_force(accounts, &charge, instance->owner, &cost);
        }
        return r;
}

/* @without_own: if its owner had nothing in the pool. */
static int get_pool_room(const struct instance *instance, bool without_own, uint64_t *ret_room)
{
        struct account_cost capacity = { { 0 } };
        struct accounts *accounts;
        struct pool_info info;
        int r;

        pool_get_info(instance->manager->pool, &info);
        capacity.of[ACCOUNT_POOL] = info.limit > info.held ? info.limit - info.held : 0;
        r = accounts_new(&accounts, &capacity);
        if (r < 0)
                return r;
        r = count_pool(instance->manager, without_own ? instance : NULL, accounts);
        *ret_room = account_get_room(accounts, instance->owner, ACCOUNT_POOL);
        accounts_free(accounts);
        return r;
}

/* What @owner takes of the others' when it gets @bytes: whole slabs, beside what is free in those it has. */
static uint64_t get_demand(const struct pool *pool, const char *owner, uint64_t bytes)
{
        struct pool_info info;
        uint64_t room;

        pool_get_info(pool, &info);
        (void)pool_get_owned(pool, owner, &room);
        return bytes <= room
                       ? 0
                       : (bytes - room + info.slab_size - 1) / info.slab_size * info.slab_size;
}

static int refuse_pool(const struct instance *instance, uint64_t bytes, uint64_t room,
                       struct failure *failure)
{
        char wanted_text[SIZE_TEXT_MAX], room_text[SIZE_TEXT_MAX];

        return failure_set(failure, -ENOSPC, "PoolTooSmall",
                           "resume or end one of your suspended vGPUs, or ask who runs vgpud for a "
                           "larger --pool-limit",
                           "%s is needed, and user %u may put %s more into the pool: others need "
                           "the rest",
                           size_format(wanted_text, bytes), instance->owner,
                           size_format(room_text, room));
}

uint64_t policy_get_available(const struct instance *instance, const char *owner)
{
        uint64_t available = pool_available(instance->manager->pool, owner);
        uint64_t held = backing_get_held(instance->manager, instance);

        return available > held ? available - held : 0;
}

/* It was, when the vGPU was created there. */
static bool is_promised(const struct instance *instance, uint64_t bytes)
{
        return promise_is_any_overcommitted(instance) && bytes <= instance_get_quota(instance);
}

int policy_check_user(const struct instance *instance, const char *owner, uint64_t bytes,
                      struct failure *failure)
{
        uint64_t room = 0;
        int r;

        if (account_is_operator(instance->owner) || is_promised(instance, bytes))
                return 0;
        r = get_pool_room(instance, false, &room);
        if (r < 0 || get_demand(instance->manager->pool, owner, bytes) <= room)
                return r;
        return refuse_pool(instance, bytes, room, failure);
}

bool policy_may_user_ever(const struct instance *instance, const char *owner, uint64_t bytes)
{
        uint64_t room = 0;

        return account_is_operator(instance->owner) || is_promised(instance, bytes) ||
               (get_pool_room(instance, true, &room) == 0 &&
                get_demand(instance->manager->pool, owner, bytes) <= room);
}

int policy_check_pool(const struct instance *instance, const char *owner, uint64_t bytes,
                      struct failure *failure)
{
        uint64_t available = policy_get_available(instance, owner);
        char wanted_text[SIZE_TEXT_MAX], room_text[SIZE_TEXT_MAX];

        if (bytes > available)
                return failure_set(failure, -ENOSPC, "PoolTooSmall",
                                   "resume or end a suspended vGPU, or start vgpud with a larger "
                                   "--pool-limit",
                                   "%s is needed, the pool has room for %s",
                                   size_format(wanted_text, bytes),
                                   size_format(room_text, available));
        return policy_check_user(instance, owner, bytes, failure);
}
