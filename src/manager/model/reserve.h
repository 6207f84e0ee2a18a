/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RESERVE_H
#define MANAGER_RESERVE_H

/*
 * Room on the disk of the spill that is held for one vGPU: as much as its quota, on all of its devices together.
 *
 * Then its memory can leave the pool at any time, whatever else fills the disk. It is a file without a name
 * (spill/spill-reserve.h), of which each of its processes gets a part. The keeper has it, so a new manager finds
 * the room held.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"

struct guest;
struct instance;
struct manager;

struct reserve {
        int fd;
        uint64_t size;
};

/* reserve_get_size() - what a quota of @quota bytes takes of the disk. */
uint64_t reserve_get_size(uint64_t quota);

/* reserve_has() - is room held for @quota bytes of @instance's, and may it be used? */
bool reserve_has(const struct instance *instance, uint64_t quota);

/* reserve_is_backed() - for all of its quota? */
bool reserve_is_backed(const struct instance *instance);

/* reserve_hold() - for a quota of @quota. Errors: NoRoom, and nothing has changed. */
int reserve_hold(struct instance *instance, uint64_t quota, struct failure *failure);

/* reserve_drop() - give it back; not while memory is in it. */
void reserve_drop(struct instance *instance);

/* reserve_is_used() - has it memory of a process, or will it have? */
bool reserve_is_used(const struct instance *instance);

/* reserve_find_place() - where in it is room for @bytes of a process? 0: nowhere. */
uint64_t reserve_find_place(const struct instance *instance, uint64_t bytes);

/* reserve_get_sum() - what is held for all. */
uint64_t reserve_get_sum(const struct manager *manager);

/* reserve_get_free() - what the disk can hold more, without what it keeps free (spill-reserve.h: *@ret_kept, or NULL). */
uint64_t reserve_get_free(const struct manager *manager, uint64_t *ret_kept);

/* What users have of the disk: in what is held and in files. */
struct reserve_users {
        uint64_t all;
        uint64_t n; /* that have some */
};

struct reserve_users reserve_count_users(const struct manager *manager);

/* reserve_get_share() - how much more may be held for @user's vGPUs, of @free that there is (account.h)? */
uint64_t reserve_get_share(const struct manager *manager, const struct reserve_users *users,
                           uid_t user, uint64_t free);

/* reserve_adopt() - what a former manager held for it. */
void reserve_adopt(struct instance *instance);

/* reserve_forget() - at the end of vgpud: the keeper has it. */
void reserve_forget(struct instance *instance);

/* reserve_drop_ownerless() - after loading: those of vGPUs that are gone. */
void reserve_drop_ownerless(struct manager *manager);

#endif
