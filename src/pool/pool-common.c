/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that several reservations hold; slab.h says what must hold for them. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pool/pool-internal.h"

/* A list of extents that grows at its end. */

struct list {
        struct pool_extent *extents;
        size_t n, n_max;
};

static void list_deinit(struct list *list)
{
        free(list->extents);
}

static int list_add(struct list *list, uint32_t slab, uint64_t offset, uint64_t length)
{
        struct pool_extent *last = list->n > 0 ? &list->extents[list->n - 1] : NULL;

        if (last && last->slab == slab && last->offset + last->length == offset) {
                last->length += length;
                return 0;
        }
        if (list->n == list->n_max) {
                size_t n = list->n_max > 0 ? 2 * list->n_max : 16;
                struct pool_extent *extents = reallocarray(list->extents, n, sizeof(*extents));

                if (!extents)
                        return -ENOMEM;
                list->extents = extents;
                list->n_max = n;
        }
        list->extents[list->n++] =
                (struct pool_extent){ .slab = slab, .offset = offset, .length = length };
        return 0;
}

static int split_all(struct pool *pool, const struct list *list)
{
        int r = 0;

        for (size_t i = 0; i < list->n && r == 0; i++) {
                const struct slab_range range = pool_range(&list->extents[i]);

                r = slab_split(pool_find(pool, list->extents[i].slab), &range);
        }
        return r;
}

static void set_extents(struct pool_reservation *reservation, struct list *list)
{
        free(reservation->extents);
        reservation->extents = list->extents;
        reservation->n_extents = list->n;
        reservation->n_extents_max = list->n_max;
        *list = (struct list){ 0 };
}

/* The bytes of a reservation, one after another. */

struct cursor {
        const struct pool_reservation *reservation;
        size_t extent;
        uint64_t offset; /* in it */
};

/* The next @n bytes, to the end of @list; less at the end of the reservation. */
static int move_on(struct cursor *cursor, uint64_t n, struct list *list)
{
        int r = 0;

        while (n > 0 && cursor->extent < cursor->reservation->n_extents && r == 0) {
                const struct pool_extent *extent = &cursor->reservation->extents[cursor->extent];
                uint64_t rest = extent->length - cursor->offset, length = rest < n ? rest : n;

                r = list_add(list, extent->slab, extent->offset + cursor->offset, length);
                cursor->offset += length;
                n -= length;
                if (cursor->offset == extent->length) {
                        cursor->extent++;
                        cursor->offset = 0;
                }
        }
        return r;
}

void pool_get_places(const struct pool_reservation *reservation, uint64_t block,
                     struct pool_place *places, size_t n)
{
        uint64_t begin = 0; /* of the extent, in the reservation */
        size_t k = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t at = i * block;
                const struct pool_extent *extent;

                while (k < reservation->n_extents && begin + reservation->extents[k].length <= at)
                        begin += reservation->extents[k++].length;
                extent = &reservation->extents[k];
                places[i] = (struct pool_place){ 0 };
                if (k < reservation->n_extents && at + block <= begin + extent->length)
                        places[i] =
                                (struct pool_place){ extent->slab, extent->offset + (at - begin) };
        }
}

static uint32_t get_holders(const struct pool *pool, const struct pool_place *place, uint64_t block)
{
        const struct slab_range range = { .offset = place->offset, .length = block };
        const struct slab *slab = place->slab ? pool_find(pool, place->slab) : NULL;

        return slab ? slab_get_holders(slab, &range) : 0;
}

bool pool_is_lone(const struct pool *pool, const struct pool_reservation *reservation)
{
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab_range range = pool_range(&reservation->extents[i]);

                if (slab_get_holders(pool_find(pool, reservation->extents[i].slab), &range) != 1)
                        return false;
        }
        return true;
}

/* Parting. */

size_t pool_get_common(const struct pool *pool, const struct pool_reservation *reservation,
                       uint64_t block, size_t n, struct pool_place *ret_places)
{
        size_t n_common = 0;

        pool_get_places(reservation, block, ret_places, n);
        for (size_t i = 0; i < n; i++) {
                if (get_holders(pool, &ret_places[i], block) > 1)
                        n_common++;
                else
                        ret_places[i].slab = 0;
        }
        return n_common;
}

struct parting {
        struct pool_reservation *reservation, *fresh;
        uint64_t block;
        const struct pool_place *places; /* of those that have other holders */
        size_t n;
        struct list own, others;
};

static int plan_parting(struct parting *parting)
{
        struct cursor own = { .reservation = parting->reservation };
        struct cursor fresh = { .reservation = parting->fresh };
        int r = 0;

        for (size_t i = 0; i < parting->n && r == 0; i++) {
                bool is_shared = parting->places[i].slab;

                r = move_on(&own, parting->block, is_shared ? &parting->others : &parting->own);
                if (r == 0 && is_shared)
                        r = move_on(&fresh, parting->block, &parting->own);
        }
        return r < 0 ? r : move_on(&own, UINT64_MAX, &parting->own);
}

/* What it has is nobody's memory from now on. */
static void clear_stamps(const struct pool *pool, const struct pool_reservation *reservation)
{
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab_range range = pool_range(&reservation->extents[i]);
                const struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                if (slab->stamps)
                        slab_stamps_clear(slab->stamps, &range, reservation->generation);
        }
}

/* The new ones become the reservation's, and those that it shared @fresh's. */
static int exchange(struct pool *pool, struct parting *parting)
{
        int r = plan_parting(parting);

        if (r == 0)
                r = split_all(pool, &parting->own);
        if (r == 0)
                r = split_all(pool, &parting->others);
        if (r == 0) {
                clear_stamps(pool, parting->reservation);
                set_extents(parting->reservation, &parting->own);
                set_extents(parting->fresh, &parting->others);
        }
        list_deinit(&parting->own);
        list_deinit(&parting->others);
        return r;
}

int pool_part(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
              uint64_t block, size_t n, struct pool_place *ret_places,
              struct pool_reservation **ret_others)
{
        struct parting parting = {
                .reservation = reservation, .block = block, .places = ret_places, .n = n
        };
        size_t n_common;
        int r;

        *ret_others = NULL;
        if (reservation->done || reservation->given_up)
                return -EBUSY;
        n_common = pool_get_common(pool, reservation, block, n, ret_places);
        if (n_common == 0)
                return 0;
        r = pool_reserve_in(pool, &parting.fresh, reservation->owner, reservation->vgpu, device,
                            n_common * block);
        if (r < 0)
                return r;
        r = exchange(pool, &parting);
        if (r < 0) {
                pool_release(pool, parting.fresh);
                return r;
        }
        *ret_others = parting.fresh;
        return 0;
}

/* Joining. */

static bool can_join(const struct pool *pool, const struct pool_reservation *reservation,
                     const struct pool_place *place, uint64_t block)
{
        const struct slab *slab = pool_find(pool, place->slab);

        return slab && strcmp(slab->owner, reservation->owner) == 0 && slab->stamps &&
               get_holders(pool, place, block) > 0;
}

static bool is_same(const struct pool_place *a, const struct pool_place *b)
{
        return a->slab == b->slab && a->offset == b->offset;
}

struct joining {
        struct list all, held, left;
};

static void joining_deinit(struct joining *joining)
{
        list_deinit(&joining->all);
        list_deinit(&joining->held);
        list_deinit(&joining->left);
}

static int plan_joining(const struct pool *pool, const struct pool_reservation *reservation,
                        uint64_t block, const struct pool_place *places, size_t n,
                        struct joining *joining)
{
        CLEANUP(freep) struct pool_place *own = calloc(n + 1, sizeof(*own));
        struct cursor cursor = { .reservation = reservation };
        int r = own ? 0 : -ENOMEM;

        if (r == 0)
                pool_get_places(reservation, block, own, n);
        for (size_t i = 0; i < n && r == 0; i++) {
                const struct pool_place *place = &places[i];
                bool joins = place->slab && !is_same(place, &own[i]);

                if (joins && !can_join(pool, reservation, place, block))
                        r = -EINVAL;
                if (r == 0)
                        r = move_on(&cursor, block, joins ? &joining->left : &joining->all);
                if (r == 0 && joins)
                        r = list_add(&joining->all, place->slab, place->offset, block);
                if (r == 0 && joins)
                        r = list_add(&joining->held, place->slab, place->offset, block);
        }
        return r < 0 ? r : move_on(&cursor, UINT64_MAX, &joining->all);
}

/* Each extent is to be stamped, and a slab has room for so many stamps. */
static bool can_be_stamped(const struct pool *pool, const struct list *list)
{
        for (size_t i = 0; i < pool->n_slabs; i++) {
                const struct slab *slab = pool->slabs[i];
                uint32_t n = 0;

                for (size_t k = 0; k < list->n; k++)
                        n += list->extents[k].slab == slab->id;
                if (n > 0 && (!slab->stamps || n > slab_stamps_get_room(slab->stamps)))
                        return false;
        }
        return true;
}

/* First it is held, then the own is left: one of these may be what another block joins. */
static void join(struct pool *pool, struct pool_reservation *reservation, struct joining *joining)
{
        for (size_t i = 0; i < joining->held.n; i++) {
                const struct slab_range range = pool_range(&joining->held.extents[i]);

                slab_hold_range(pool_find(pool, joining->held.extents[i].slab), &range);
        }
        for (size_t i = 0; i < joining->left.n; i++) {
                const struct slab_range range = pool_range(&joining->left.extents[i]);

                slab_give_back(pool_find(pool, joining->left.extents[i].slab), &range,
                               reservation->generation);
        }
        set_extents(reservation, &joining->all);
}

int pool_join(struct pool *pool, struct pool_reservation *reservation, uint64_t block,
              const struct pool_place *places, size_t n)
{
        CLEANUP(joining_deinit) struct joining joining = { 0 };
        int r;

        if (reservation->done || reservation->given_up)
                return -EBUSY;
        r = plan_joining(pool, reservation, block, places, n, &joining);
        if (r == 0 && joining.held.n > 0 && !can_be_stamped(pool, &joining.all))
                r = -ENOSPC;
        if (r == 0)
                r = split_all(pool, &joining.all);
        if (r == 0)
                r = split_all(pool, &joining.held);
        if (r == 0)
                r = split_all(pool, &joining.left);
        if (r < 0)
                return r;
        join(pool, reservation, &joining);
        pool_shrink(pool);
        pool_work_ahead(pool);
        return 0;
}
