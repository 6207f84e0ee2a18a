/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOL_POOL_INTERNAL_H
#define POOL_POOL_INTERNAL_H

/* Shared by pool.c (who owns what) and pool-work.c (the work of movers for the pool). */

#include "pool/pool.h"
#include "pool/slab.h"

/* A user, and how much of what is spare is his. */
struct pool_spare_user {
        struct pool_spare_user *next;
        uid_t user;
        uint64_t bytes;
};

/* How far each slab has to be with its pinning for a preparation to be done. */
enum pool_readiness { POOL_PINNED, POOL_BEING_PINNED };

struct pool_reservation {
        struct pool_reservation *next;
        char owner[POOL_OWNER_MAX]; /* of its slabs */
        char vgpu
                [POOL_OWNER_MAX]; /* whose memory its stamps say it is; the same, if not of a group */
        uint64_t generation;
        struct pool_extent *extents;
        size_t n_extents, n_extents_max;

        pool_given_up_fn given_up; /* spare, or NULL; then also: */
        void *spare_userdata;
        struct pool_spare_user *spare_user;
        uint64_t spare_since; /* in the order in which they became spare */

        pool_prepared_fn done; /* being prepared, or NULL */
        void *userdata;
        uint32_t device;
        enum pool_readiness wanted;
        int error; /* of a preparation that has failed */
};

struct pool {
        uint64_t limit, slab_size;
        pool_worker_fn worker;
        pool_watch_fn watch;
        uint64_t held; /* by clients: of slabs that are no longer in the table */
        void *userdata;
        struct slab **slabs;
        size_t n_slabs, n_slabs_max;
        uint32_t last_id;
        struct pool_reservation *reservations;
        uint64_t n_spared; /* that ever became spare */
        struct pool_spare_user *spare_users;
        uint64_t wanted[POOL_DEVICES_MAX]; /* ready ahead of demand */
        uint32_t wants_all;                /* a bit for each device: also what others have pinned */
        bool is_resting[POOL_DEVICES_MAX]; /* after a failure */
        unsigned int n_pauses;
};

static inline uint32_t pool_bit(uint32_t device)
{
        return (uint32_t)1 << device;
}

static inline struct slab_range pool_range(const struct pool_extent *extent)
{
        return (struct slab_range){ .offset = extent->offset, .length = extent->length };
}

struct slab *pool_find(const struct pool *pool, uint32_t slab);

/* pool_grow() - a new slab; pool_room_for_new() must be more than 0. */
int pool_grow(struct pool *pool, struct slab **ret_slab);
uint64_t pool_room_for_new(const struct pool *pool);
void pool_destroy(struct pool *pool, struct slab *slab);

/* pool_give_back() - its extents are free; nothing else is done about that. */
void pool_give_back(struct pool *pool, struct pool_reservation *reservation);

/* pool_make_generation() - a number that no other reservation has. Errors: getrandom(). */
int pool_make_generation(uint64_t *ret_generation);

/* pool_set_needed() - it is not spare any more, if it was. */
void pool_set_needed(struct pool *pool, struct pool_reservation *reservation);

/* pool_give_up() - the oldest spare reservation of the user who has most. False: there is none. */
bool pool_give_up(struct pool *pool);

/* pool_shrink() - let go free slabs above the limit, and those that clients have had. pool_work_ahead() - what pool_want() asked. */
void pool_shrink(struct pool *pool);
void pool_work_ahead(struct pool *pool);

#endif
