/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ACCOUNT_H
#define MANAGER_ACCOUNT_H

/*
 * What the manager has taken of the machine for each user: no user keeps the others out.
 *
 * What is taken is charged to a user before, and given back with the thing. A user may take as long as
 * what he has is no more than one n-th of what is left afterwards, n being the users who have some of the
 * kind, him included, and those below not. Alone he gets half; the second one a sixth at least, the third a twelfth: the n-th
 * always gets 1 of n * (n + 1) parts, whatever the others did before. (dbus-broker's rule.)
 *
 * Root and the user of vgpud are charged and never refused; a reserve that is in no capacity is theirs.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"

enum account_kind {
        ACCOUNT_BYTES,       /* of messages that are kept: calls in part, answers not read */
        ACCOUNT_DESCRIPTORS, /* of vgpud */
        ACCOUNT_OBJECTS,     /* connections, vGPUs, processes */
        ACCOUNT_REQUESTS,    /* calls under way, gates that have not joined */
        ACCOUNT_POOL,        /* bytes of the pool: policy_get_pool_room() */
        ACCOUNT_KINDS,
};

struct accounts;
struct account_user;

struct account_cost {
        uint64_t of[ACCOUNT_KINDS];
};

/* In the thing that it is for; all 0: nothing is charged. */
struct account_charge {
        struct account_user *user;
        struct account_cost cost;
};

/*
 * Who is charged for what the vGPU of an operator costs by a container's doing: root of a container is no
 * operator. No user has that number.
 */
#define ACCOUNT_CONTAINERS ((uid_t)-2)

/* account_is_operator() - root and the user of vgpud: they may do everything. */
bool account_is_operator(uid_t uid);

/* account_room() - how much a user who has @own may take of what @n users have taken @all of @capacity. */
uint64_t account_room(uint64_t capacity, uint64_t all, uint64_t own, uint64_t n);

/* accounts_get_capacity() - of this machine and process, without the reserve. */
struct account_cost accounts_get_capacity(void);

int accounts_new(struct accounts **ret_accounts, const struct account_cost *capacity);

/* accounts_free() - when all charges are given back. Returns NULL. */
struct accounts *accounts_free(struct accounts *accounts);

/*
 * account_take() - charge @user with @cost more, all or nothing; a charge is of one user as long as it has
 * anything. Errors: -EDQUOT, NoRoom: which limit, what is used, and what to do.
 */
int account_take(struct accounts *accounts, struct account_charge *charge, uid_t user,
                 const struct account_cost *cost, struct failure *failure);

/* account_force() - the same, and it is not refused: what is there already. Errors: -ENOMEM. */
int account_force(struct accounts *accounts, struct account_charge *charge, uid_t user,
                  const struct account_cost *cost);

/* account_give() - give a part back. */
void account_give(struct account_charge *charge, enum account_kind kind, uint64_t amount);

/* account_end() - give all of it back. */
void account_end(struct account_charge *charge);

/* account_set_waiting() - @user's descriptors that wait to be closed are @n now: open, whatever he may. */
void account_set_waiting(struct accounts *accounts, uid_t user, uint64_t n);

/* account_get_room() - how much more of @kind @user may take now; of an operator all that is left. */
uint64_t account_get_room(const struct accounts *accounts, uid_t user, enum account_kind kind);

/* accounts_get_all() - what all users have of @kind, and what they may have together. */
uint64_t accounts_get_all(const struct accounts *accounts, enum account_kind kind,
                          uint64_t *ret_capacity);

/* account_get() - what @user has of @kind. */
uint64_t account_get(const struct accounts *accounts, uid_t user, enum account_kind kind);

#endif
