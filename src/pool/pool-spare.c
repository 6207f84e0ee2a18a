/* SPDX-License-Identifier: Apache-2.0 */
/* Spare reservations: kept as long as nobody needs the room. */
#include <errno.h>
#include <stdlib.h>

#include "pool/pool-internal.h"

/* The extents are spare in their slabs, or are not any more. */
static void mark(struct pool *pool, const struct pool_reservation *reservation, bool is_spare)
{
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab_range range = pool_range(&reservation->extents[i]);

                slab_set_spare(pool_find(pool, reservation->extents[i].slab), &range, is_spare);
        }
}

/* NULL: no memory. */
static struct pool_spare_user *find_or_add(struct pool *pool, uid_t user)
{
        struct pool_spare_user *found = pool->spare_users;

        while (found && found->user != user)
                found = found->next;
        if (found)
                return found;
        found = calloc(1, sizeof(*found));
        if (!found)
                return NULL;
        found->user = user;
        found->next = pool->spare_users;
        pool->spare_users = found;
        return found;
}

static void forget(struct pool *pool, struct pool_spare_user *user)
{
        struct pool_spare_user **place = &pool->spare_users;

        while (*place != user)
                place = &(*place)->next;
        *place = user->next;
        free(user);
}

void pool_set_needed(struct pool *pool, struct pool_reservation *reservation)
{
        struct pool_spare_user *user = reservation->spare_user;

        if (!reservation->given_up)
                return;
        mark(pool, reservation, false);
        reservation->given_up = NULL;
        reservation->spare_user = NULL;
        user->bytes -= pool_get_length(reservation);
        if (user->bytes == 0)
                forget(pool, user);
}

/* Could anybody have changed what is in it? */
static bool is_ours_alone(const struct pool *pool, const struct pool_reservation *reservation)
{
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                if (slab->is_shared || slab->is_leaving || slab->needs_zero || !slab->stamps)
                        return false;
        }
        return !reservation->done;
}

int pool_spare(struct pool *pool, struct pool_reservation *reservation, uid_t user,
               pool_given_up_fn given_up, void *userdata)
{
        if (!is_ours_alone(pool, reservation))
                return -EBUSY;
        reservation->spare_user = find_or_add(pool, user);
        if (!reservation->spare_user)
                return -ENOMEM;
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct pool_extent *extent = &reservation->extents[i];
                const struct slab_range range = pool_range(extent);

                slab_stamps_clear(pool_find(pool, extent->slab)->stamps, &range,
                                  reservation->generation);
        }
        mark(pool, reservation, true);
        reservation->spare_user->bytes += pool_get_length(reservation);
        reservation->given_up = given_up;
        reservation->spare_userdata = userdata;
        reservation->spare_since = ++pool->n_spared;
        return 0;
}

int pool_need(struct pool *pool, struct pool_reservation *reservation)
{
        int r = pool_make_generation(&reservation->generation);

        if (r == 0)
                pool_set_needed(pool, reservation);
        return r;
}

static bool goes_before(const struct pool_reservation *one, const struct pool_reservation *other)
{
        if (one->spare_user->bytes != other->spare_user->bytes)
                return one->spare_user->bytes > other->spare_user->bytes;
        return one->spare_since < other->spare_since;
}

bool pool_give_up(struct pool *pool)
{
        struct pool_reservation *first = NULL;

        for (struct pool_reservation *r = pool->reservations; r; r = r->next)
                if (r->given_up && (!first || goes_before(r, first)))
                        first = r;
        if (!first)
                return false;
        first->given_up(first->spare_userdata);
        pool_give_back(pool, first);
        return true;
}
