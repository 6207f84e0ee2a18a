/* SPDX-License-Identifier: Apache-2.0 */
/* Spare reservations: kept as long as nobody needs the room. */
#include <errno.h>

#include "pool/pool-internal.h"

void pool_set_spare(struct pool *pool, struct pool_reservation *reservation,
                    pool_given_up_fn given_up, void *userdata)
{
        bool was_spare = reservation->given_up, is_spare = given_up;

        for (size_t i = 0; i < reservation->n_extents && was_spare != is_spare; i++)
                slab_set_spare(pool_find(pool, reservation->extents[i].slab),
                               reservation->extents[i].length, is_spare);
        reservation->given_up = given_up;
        reservation->spare_userdata = userdata;
}

int pool_spare(struct pool *pool, struct pool_reservation *reservation, pool_given_up_fn given_up,
               void *userdata)
{
        if (reservation->done)
                return -EBUSY;
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                if (slab->is_shared || slab->is_leaving || slab->needs_zero || !slab->stamps)
                        return -EBUSY;
        }
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct pool_extent *extent = &reservation->extents[i];
                const struct slab_range range = { extent->offset, extent->length };

                slab_stamps_clear(pool_find(pool, extent->slab)->stamps, &range);
        }
        pool_set_spare(pool, reservation, given_up, userdata);
        reservation->spare_since = ++pool->n_spared;
        return 0;
}

int pool_need(struct pool *pool, struct pool_reservation *reservation)
{
        int r = pool_make_generation(&reservation->generation);

        if (r == 0)
                pool_set_spare(pool, reservation, NULL, NULL);
        return r;
}

bool pool_give_up(struct pool *pool)
{
        struct pool_reservation *oldest = NULL;

        for (struct pool_reservation *r = pool->reservations; r; r = r->next)
                if (r->given_up && (!oldest || r->spare_since < oldest->spare_since))
                        oldest = r;
        if (!oldest)
                return false;
        oldest->given_up(oldest->spare_userdata);
        pool_give_back(pool, oldest);
        return true;
}
