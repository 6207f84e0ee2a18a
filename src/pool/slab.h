/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOL_SLAB_H
#define POOL_SLAB_H

/*
 * A slab: one memfd of the pool, whose it is, and which of its bytes are taken.
 * What is to be done with it decides pool/pool.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/pool.h"
#include "pool/slab-stamp.h"

/* Where an extent may begin: a page, which any copy is content with. */
#define SLAB_EXTENT_ALIGN 4096

#define SLAB_NOBODY ((uid_t)-1)

struct slab {
        uint32_t id;
        int fd;
        uint64_t size;
        bool is_huge;
        struct slab_stamps
                *stamps; /* behind @size; NULL: an older release made it, so it only goes */

        char owner[POOL_OWNER_MAX]; /* in use, or dirty; "": nobody that we know */
        bool is_dirty;              /* data of @owner, or of somebody, is in it */
        bool needs_zero;            /* in use by another owner than that of the data in it */
        struct slab_range *ranges;  /* taken, by offset */
        size_t n_ranges, n_ranges_max;
        size_t n_spare; /* of them, what spare reservations have (pool.h), and its bytes */
        uint64_t spare_bytes;

        uint32_t ready;          /* a bit for each device: pinned there */
        bool is_shared;          /* a client may have it mapped: nobody else gets it any more */
        uid_t shared_with;       /* such a client; SLAB_NOBODY: not known, or none */
        bool is_leaving;         /* to be let go everywhere, then freed */
        enum pool_action action; /* that a mover works on, or 0 */
        uint32_t action_device;
        bool is_background; /* @action is ahead of demand */
};

/* slab_new() - a memfd of @size that can not shrink; in huge pages if wanted and possible. */
int slab_new(struct slab **ret_slab, uint32_t id, uint64_t size, bool try_huge);

/* slab_adopt() - @fd, which is taken. Errors: -EINVAL (not made by slab_new()). */
int slab_adopt(struct slab **ret_slab, uint32_t id, int fd);

struct slab *slab_free(struct slab *slab);

static inline bool slab_is_free(const struct slab *slab)
{
        return slab->n_ranges == 0;
}

/* slab_is_needed() - is anything in it that is not spare? */
static inline bool slab_is_needed(const struct slab *slab)
{
        return slab->n_ranges > slab->n_spare;
}

/* slab_is_usable() - may @owner take what is free in it? Perhaps after zeroing. */
bool slab_is_usable(const struct slab *slab, const char *owner);

/* slab_room() - bytes that can still be taken. */
uint64_t slab_room(const struct slab *slab);

/* slab_room_without_spare() - bytes that @owner could take once what is spare is given up. */
uint64_t slab_room_without_spare(const struct slab *slab, const char *owner);

/* slab_set_spare() - what a reservation has of it, @bytes in one range, is spare, or is not any more. */
void slab_set_spare(struct slab *slab, uint64_t bytes, bool is_spare);

/* slab_take() - the first gap, at most @wanted bytes of it, for @owner. Errors: -ENOSPC, -ENOMEM. */
int slab_take(struct slab *slab, const char *owner, uint64_t wanted, struct slab_range *ret_range);

/*
 * slab_adopt_range() - exactly @range, with the data that @owner has there
 * Errors: -EINVAL (outside, overlap, another owner), -ENOMEM.
 */
int slab_adopt_range(struct slab *slab, const char *owner, const struct slab_range *range);

/* slab_give_back() - the range that begins at @offset; after the last one the slab is dirty. */
void slab_give_back(struct slab *slab, uint64_t offset);

/* slab_share() - what a client of @user is given stays his; also for the next manager. Errors: fchmod(). */
int slab_share(struct slab *slab, uid_t user);

/* slab_set_clean() - it has been zeroed. */
void slab_set_clean(struct slab *slab);

#endif
