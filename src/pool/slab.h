/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOL_SLAB_H
#define POOL_SLAB_H

/*
 * A slab: one memfd of the pool, whose it is, and which of its bytes are taken, by how many.
 * What is to be done with it decides pool/pool.h.
 *
 * Blocks that are equal are kept once, so several reservations of one owner may hold the same range.
 * What must hold:
 *
 *   1. Nothing is written to a range that has more than one holder. A reservation that is to be written to
 *      is made lone first (pool_part()), and the copy out refuses one that is not (pool_is_lone()).
 *   2. A range is free when its last holder has given it back, and not before. It does not matter who came
 *      first: who holds it are equals.
 *   3. All holders of a range have the slab's owner: the user (pool_reserve_in()), never another user.
 *   4. Each holder has a stamp of its own on what it holds (slab-stamp.h). It gives back no stamp but that.
 *   5. Nobody stores the counts. They are the number of extents that reservations have there, and those of
 *      each process are in the database; the next manager counts them anew as it adopts them.
 *   6. The extents of a reservation begin and end where ranges do. So giving back splits nothing, and
 *      cannot fail.
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
        struct slab_stamps
                *stamps; /* behind @size; NULL: an older release made it, so it only goes */

        char owner[POOL_OWNER_MAX]; /* in use, or dirty; "": nobody that we know */
        bool is_dirty;              /* data of @owner, or of somebody, is in it */
        bool needs_zero;            /* in use by another owner than that of the data in it */
        struct slab_range *ranges;  /* taken, by offset */
        size_t n_ranges, n_ranges_max;
        size_t n_needed;      /* of them, those with a holder that is not spare (pool.h) */
        uint64_t spare_bytes; /* of the others */

        uint32_t ready;    /* a bit for each device: pinned there */
        bool is_shared;    /* a client may have it mapped: nobody else gets it any more */
        uid_t shared_with; /* such a client; SLAB_NOBODY: not known, or none */
        bool is_common;    /* of several vGPUs of one user: then nobody gets more of a shared one */
        bool is_leaving;   /* to be let go everywhere, then freed */
        enum pool_action action; /* that a mover works on, or 0 */
        uint32_t action_device;
        bool is_background; /* @action is ahead of demand */
};

/* slab_new() - a memfd of @size that can not shrink; the mover asks for huge pages. */
int slab_new(struct slab **ret_slab, uint32_t id, uint64_t size);

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
        return slab->n_needed > 0;
}

/* slab_is_usable() - may @owner take what is free in it? Perhaps after zeroing. */
bool slab_is_usable(const struct slab *slab, const char *owner);

/* slab_room() - bytes that can still be taken. */
uint64_t slab_room(const struct slab *slab);

/* slab_room_without_spare() - bytes that @owner could take once what is spare is given up. */
uint64_t slab_room_without_spare(const struct slab *slab, const char *owner);

/* slab_set_spare() - one holder of @range is spare, or is not any more. */
void slab_set_spare(struct slab *slab, const struct slab_range *range, bool is_spare);

/* slab_get_holders() - the most that any byte of @range has; 0: some of it is free. */
uint32_t slab_get_holders(const struct slab *slab, const struct slab_range *range);

/* slab_split() - from now on ranges begin and end where @range does. Errors: -ENOMEM. */
int slab_split(struct slab *slab, const struct slab_range *range);

/* slab_hold_range() - one holder more of @range, which is split there and taken. */
void slab_hold_range(struct slab *slab, const struct slab_range *range);

/* slab_take() - the first gap, at most @wanted bytes of it, for @owner. Errors: -ENOSPC, -ENOMEM. */
int slab_take(struct slab *slab, const char *owner, uint64_t wanted, struct slab_range *ret_range);

/*
 * slab_adopt_range() - exactly @range, with the data that @owner has there; @may_share: some of it may have
 * holders already. Errors: -EINVAL (outside, overlap, another owner), -ENOMEM.
 */
int slab_adopt_range(struct slab *slab, const char *owner, const struct slab_range *range,
                     bool may_share);

/*
 * slab_give_back() - one holder of @range, that of the stamps with @generation, has it no more; after the
 * last range the slab is dirty.
 */
void slab_give_back(struct slab *slab, const struct slab_range *range, uint64_t generation);

/* slab_share() - what a client of @user is given stays his; also for the next manager. Errors: fchmod(). */
int slab_share(struct slab *slab, uid_t user);

/* slab_set_clean() - it has been zeroed. */
void slab_set_clean(struct slab *slab);

#endif
