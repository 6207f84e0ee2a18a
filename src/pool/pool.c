/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: who has what. What movers do for it is in pool-work.c.
 *
 * What is cheapest for a reservation was measured (per GiB): pinning memory that
 * is there 0.03 to 0.07 s, zeroing 0.1 s, a new slab 0.2 s, mostly for its pages.
 */

#include "pool/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "pool/pool-internal.h"

/* Slabs. */

struct slab *pool_find(const struct pool *pool, uint32_t id)
{
        for (size_t i = 0; i < pool->n_slabs; i++)
                if (pool->slabs[i]->id == id)
                        return pool->slabs[i];
        return NULL;
}

static uint64_t size_of(const struct pool *pool)
{
        uint64_t size = 0;

        for (size_t i = 0; i < pool->n_slabs; i++)
                size += pool->slabs[i]->size;
        return size;
}

uint64_t pool_room_for_new(const struct pool *pool)
{
        uint64_t size = size_of(pool) + pool->held;

        return size < pool->limit ? (pool->limit - size) / pool->slab_size * pool->slab_size : 0;
}

static int make_room_in_table(struct pool *pool)
{
        size_t n = pool->n_slabs_max > 0 ? 2 * pool->n_slabs_max : 64;
        struct slab **slabs;

        if (pool->n_slabs < pool->n_slabs_max)
                return 0;

        slabs = reallocarray(pool->slabs, n, sizeof(struct slab *));
        if (!slabs)
                return -ENOMEM;
        pool->slabs = slabs;
        pool->n_slabs_max = n;
        return 0;
}

static void add_slab(struct pool *pool, struct slab *slab)
{
        pool->slabs[pool->n_slabs++] = slab;
        if (slab->id > pool->last_id)
                pool->last_id = slab->id;
}

int pool_grow(struct pool *pool, struct slab **ret_slab)
{
        int r;

        r = make_room_in_table(pool);
        if (r == 0)
                r = slab_new(ret_slab, pool->last_id + 1, pool->slab_size);
        if (r < 0)
                return r;

        add_slab(pool, *ret_slab);
        return 0;
}

void pool_destroy(struct pool *pool, struct slab *slab)
{
        size_t i = 0;

        while (pool->slabs[i] != slab)
                i++;
        pool->slabs[i] = pool->slabs[--pool->n_slabs];
        if (slab->is_shared && pool->watch &&
            pool->watch(slab->fd, slab->size, slab->shared_with, pool->userdata) == 0)
                pool->held += slab->size;
        slab_free(slab);
}

/* Reserving. */

/* How dear a slab is for a reservation on @device. */
enum cost { COST_NOTHING, COST_PIN, COST_ZERO, COST_ZERO_AND_PIN, N_COSTS };

static enum cost cost_of(const struct slab *slab, const char *owner, uint32_t device)
{
        bool must_zero = slab_is_free(slab) ? slab->is_dirty && strcmp(slab->owner, owner) != 0
                                            : slab->needs_zero;
        bool must_pin = !(slab->ready & pool_bit(device));

        if (must_zero)
                return must_pin ? COST_ZERO_AND_PIN : COST_ZERO;
        return must_pin ? COST_PIN : COST_NOTHING;
}

static int add_extent(struct pool_reservation *reservation, uint32_t slab,
                      const struct slab_range *range)
{
        if (reservation->n_extents == reservation->n_extents_max) {
                size_t n = reservation->n_extents_max > 0 ? 2 * reservation->n_extents_max : 16;
                struct pool_extent *extents =
                        reallocarray(reservation->extents, n, sizeof(*extents));

                if (!extents)
                        return -ENOMEM;
                reservation->extents = extents;
                reservation->n_extents_max = n;
        }
        reservation->extents[reservation->n_extents++] = (struct pool_extent){
                .slab = slab, .offset = range->offset, .length = range->length
        };
        return 0;
}

static bool is_of_group(const struct pool_reservation *reservation)
{
        return strcmp(reservation->owner, reservation->vgpu) != 0;
}

/* All that is free in @slab, up to @bytes; what is missing then is left in it. */
static int take_from(struct slab *slab, struct pool_reservation *reservation, uint64_t *bytes)
{
        while (*bytes > 0) {
                struct slab_range range;
                int r;

                r = slab_take(slab, reservation->owner, *bytes, &range);
                if (r < 0)
                        return r == -ENOSPC ? 0 : r;
                slab->is_common = is_of_group(reservation);
                r = add_extent(reservation, slab->id, &range);
                if (r < 0) {
                        slab_give_back(slab, &range, reservation->generation);
                        return r;
                }
                *bytes -= range.length;
        }
        return 0;
}

static int take_at_cost(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
                        enum cost cost, uint64_t *bytes)
{
        int r = 0;

        for (size_t i = 0; i<pool->n_slabs && * bytes> 0 && r == 0; i++) {
                struct slab *slab = pool->slabs[i];

                if (slab_is_usable(slab, reservation->owner) &&
                    cost_of(slab, reservation->owner, device) == cost)
                        r = take_from(slab, reservation, bytes);
        }
        return r;
}

static int take_new(struct pool *pool, struct pool_reservation *reservation, uint64_t *bytes)
{
        struct slab *slab;
        int r = 0;

        while (*bytes > 0 && r == 0) {
                if (pool_room_for_new(pool) == 0)
                        return -ENOSPC;
                r = pool_grow(pool, &slab);
                if (r == 0)
                        r = take_from(slab, reservation, bytes);
        }
        return r;
}

static int reservation_new(struct pool *pool, struct pool_reservation **ret_reservation,
                           const char *owner, const char *vgpu)
{
        struct pool_reservation *reservation;

        if (strlen(owner) >= POOL_OWNER_MAX || strlen(vgpu) >= POOL_OWNER_MAX)
                return -ENAMETOOLONG;
        if (!*owner || !*vgpu)
                return -EINVAL; /* nobody's memory is a slab's state */

        reservation = calloc(1, sizeof(*reservation));
        if (!reservation)
                return -ENOMEM;
        memcpy(reservation->owner, owner, strlen(owner) + 1);
        memcpy(reservation->vgpu, vgpu, strlen(vgpu) + 1);
        reservation->next = pool->reservations;
        pool->reservations = reservation;
        *ret_reservation = reservation;
        return 0;
}

/* It must not come again, so it is no counter: that would begin anew with each manager. */
int pool_make_generation(uint64_t *ret_generation)
{
        do
                if (getrandom(ret_generation, sizeof(*ret_generation), 0) < 0)
                        return -errno;
        while (*ret_generation == 0 || *ret_generation == SLAB_ALL_STAMPS);
        return 0;
}

uint64_t pool_available(const struct pool *pool, const char *owner)
{
        uint64_t available = pool_room_for_new(pool);

        for (size_t i = 0; i < pool->n_slabs; i++)
                available += slab_room_without_spare(pool->slabs[i], owner);
        return available;
}

static uint64_t available_now(const struct pool *pool, const char *owner)
{
        uint64_t available = pool_room_for_new(pool);

        for (size_t i = 0; i < pool->n_slabs; i++)
                if (slab_is_usable(pool->slabs[i], owner))
                        available += slab_room(pool->slabs[i]);
        return available;
}

int pool_reserve(struct pool *pool, struct pool_reservation **ret_reservation, const char *owner,
                 uint32_t device, uint64_t bytes)
{
        return pool_reserve_in(pool, ret_reservation, owner, owner, device, bytes);
}

int pool_reserve_in(struct pool *pool, struct pool_reservation **ret_reservation, const char *owner,
                    const char *vgpu, uint32_t device, uint64_t bytes)
{
        struct pool_reservation *reservation;
        int r;

        if (bytes == 0 || device >= POOL_DEVICES_MAX)
                return -EINVAL;
        r = reservation_new(pool, &reservation, owner, vgpu);
        if (r < 0)
                return r;

        r = pool_make_generation(&reservation->generation);
        if (r == 0 && bytes > pool_available(pool, owner))
                r = -ENOSPC;
        while (r == 0 && bytes > available_now(pool, owner) && pool_give_up(pool))
                ;
        for (enum cost cost = 0; cost < N_COSTS && r == 0; cost++)
                r = take_at_cost(pool, reservation, device, cost, &bytes);
        if (r == 0)
                r = take_new(pool, reservation, &bytes);
        if (r < 0) {
                pool_release(pool, reservation);
                return r;
        }
        *ret_reservation = reservation;
        return 0;
}

static void unlink_reservation(struct pool *pool, struct pool_reservation *reservation)
{
        struct pool_reservation **place = &pool->reservations;

        while (*place != reservation)
                place = &(*place)->next;
        *place = reservation->next;
}

void pool_give_back(struct pool *pool, struct pool_reservation *reservation)
{
        pool_set_needed(pool, reservation);
        unlink_reservation(pool, reservation);
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab_range range = pool_range(&reservation->extents[i]);

                slab_give_back(pool_find(pool, reservation->extents[i].slab), &range,
                               reservation->generation);
        }
        free(reservation->extents);
        free(reservation);
}

struct pool_reservation *pool_release(struct pool *pool, struct pool_reservation *reservation)
{
        if (!reservation)
                return NULL;

        pool_give_back(pool, reservation);
        pool_shrink(pool);
        pool_work_ahead(pool);
        return NULL;
}

const struct pool_extent *pool_get_extents(const struct pool_reservation *reservation,
                                           size_t *ret_n)
{
        *ret_n = reservation->n_extents;
        return reservation->extents;
}

uint64_t pool_get_owned(const struct pool *pool, const char *owner, uint64_t *ret_room)
{
        uint64_t sum = 0;

        *ret_room = 0;
        for (size_t i = 0; i < pool->n_slabs; i++) {
                const struct slab *slab = pool->slabs[i];

                if (!slab_is_needed(slab) || strcmp(slab->owner, owner) != 0)
                        continue;
                sum += pool->slab_size;
                if (slab_is_usable(slab, owner))
                        *ret_room += slab_room(slab);
        }
        return sum;
}

uint64_t pool_get_length(const struct pool_reservation *reservation)
{
        uint64_t sum = 0;

        for (size_t i = 0; reservation && i < reservation->n_extents; i++)
                sum += reservation->extents[i].length;
        return sum;
}

const char *pool_get_owner(const struct pool_reservation *reservation)
{
        return reservation->owner;
}

/* Whose memory it is. */

uint64_t pool_get_generation(const struct pool_reservation *reservation)
{
        return reservation->generation;
}

static struct pool_mark make_mark(const struct pool_reservation *reservation, pid_t pid,
                                  uint64_t start_time)
{
        struct pool_mark mark = { .generation = reservation->generation,
                                  .start_time = start_time,
                                  .pid = pid };

        memcpy(mark.owner, reservation->vgpu, sizeof(mark.owner));
        return mark;
}

int pool_stamp(struct pool *pool, const struct pool_reservation *reservation, pid_t pid,
               uint64_t start_time)
{
        struct pool_mark mark = make_mark(reservation, pid, start_time);
        int r = 0;

        for (size_t i = 0; i < reservation->n_extents && r == 0; i++) {
                const struct slab_range range = pool_range(&reservation->extents[i]);
                struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                r = slab->stamps ? slab_stamps_put(slab->stamps, &range, &mark) : -ENOSPC;
        }
        return r;
}

int pool_check(const struct pool *pool, const struct pool_reservation *reservation, pid_t pid,
               uint64_t start_time, uint32_t *ret_slab)
{
        struct pool_mark mark = make_mark(reservation, pid, start_time);

        if (mark.generation == 0)
                return 0;
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab_range range = pool_range(&reservation->extents[i]);
                const struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                *ret_slab = slab->id;
                if (!slab->stamps ||
                    slab_stamps_look(slab->stamps, &range, &mark) != SLAB_FOUND_MARK)
                        return -ESTALE;
        }
        return 0;
}

bool pool_is_in_use(const struct pool *pool, uint32_t id)
{
        const struct slab *slab = pool_find(pool, id);

        return slab && slab_is_needed(slab);
}

int pool_get_slab(const struct pool *pool, uint32_t id)
{
        const struct slab *slab = pool_find(pool, id);

        return slab ? slab->fd : -1;
}

int pool_share(struct pool *pool, uint32_t id, uid_t user)
{
        struct slab *slab = pool_find(pool, id);
        int r = slab ? slab_share(slab, user) : -ENOENT;

        return r < 0 ? r : slab->fd;
}

void pool_gone(struct pool *pool, uint64_t size)
{
        pool->held -= size;
        pool_work_ahead(pool);
}

/* After a restart. */

int pool_adopt(struct pool *pool, uint32_t id, int fd)
{
        struct slab *slab;
        int r;

        if (pool_find(pool, id))
                return -EEXIST;
        r = make_room_in_table(pool);
        if (r == 0)
                r = slab_adopt(&slab, id, fd);
        if (r == 0)
                add_slab(pool, slab);
        return r;
}

static int adopt_extent(struct pool *pool, struct pool_reservation *reservation,
                        const struct pool_mark *mark, const struct pool_extent *extent)
{
        const struct slab_range range = pool_range(extent);
        struct slab *slab = pool_find(pool, extent->slab);
        enum slab_finding found = SLAB_FOUND_NOTHING;
        int r;

        if (!slab)
                return -ENOENT;
        if (slab->stamps)
                found = slab_stamps_look(slab->stamps, &range, mark);
        if (found == SLAB_FOUND_OTHER)
                return -ESTALE;

        r = slab_adopt_range(slab, reservation->owner, &range, found == SLAB_FOUND_MARK);
        if (r < 0)
                return r;
        slab->is_common = is_of_group(reservation);
        r = add_extent(reservation, slab->id, &range);
        if (r < 0)
                slab_give_back(slab, &range, mark->generation);
        return r;
}

bool pool_has_none_but(const struct pool *pool, const struct pool_extent *extents, size_t n_extents,
                       const char *vgpu)
{
        for (size_t i = 0; i < n_extents; i++) {
                const struct slab *slab = pool_find(pool, extents[i].slab);

                if (!slab || !slab->stamps || !slab_stamps_are_of(slab->stamps, vgpu))
                        return false;
        }
        return true;
}

int pool_adopt_reservation(struct pool *pool, struct pool_reservation **ret_reservation,
                           const char *owner, const struct pool_mark *mark,
                           const struct pool_extent *extents, size_t n_extents)
{
        struct pool_reservation *reservation;
        int r;

        r = reservation_new(pool, &reservation, owner, mark->owner);
        if (r < 0)
                return r;

        reservation->generation = mark->generation;
        for (size_t i = 0; i < n_extents && r == 0; i++)
                r = adopt_extent(pool, reservation, mark, &extents[i]);
        if (r < 0) { /* no slab goes for it: what is free now may be another one's to adopt */
                pool_give_back(pool, reservation);
                return r;
        }
        *ret_reservation = reservation;
        return 0;
}

/* The whole. */

static uint64_t quarter_of_ram(void)
{
        return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
}

int pool_new(struct pool **ret_pool, const struct pool_options *options)
{
        uint64_t slab_size = options->slab_size ? options->slab_size : POOL_SLAB_SIZE;
        uint64_t limit = options->limit ? options->limit : quarter_of_ram();
        struct pool *pool;

        if (slab_size % POOL_SLAB_ALIGN != 0)
                return -EINVAL;

        pool = calloc(1, sizeof(*pool));
        if (!pool)
                return -ENOMEM;

        pool->slab_size = slab_size;
        pool->limit = limit / slab_size * slab_size;
        pool->worker = options->worker;
        pool->watch = options->watch;
        pool->userdata = options->userdata;
        *ret_pool = pool;
        return 0;
}

struct pool *pool_free(struct pool *pool)
{
        if (!pool)
                return NULL;

        while (pool->reservations) {
                struct pool_reservation *reservation = pool->reservations;

                pool->reservations = reservation->next;
                free(reservation->extents);
                free(reservation);
        }
        while (pool->spare_users) {
                struct pool_spare_user *user = pool->spare_users;

                pool->spare_users = user->next;
                free(user);
        }
        for (size_t i = 0; i < pool->n_slabs; i++)
                slab_free(pool->slabs[i]);
        free(pool->slabs);
        free(pool);
        return NULL;
}

/* Of the slabs that are not about to go. */
static uint64_t size_of_staying(const struct pool *pool)
{
        uint64_t size = 0;

        for (size_t i = 0; i < pool->n_slabs; i++)
                size += pool->slabs[i]->is_leaving ? 0 : pool->slabs[i]->size;
        return size;
}

void pool_set_limit(struct pool *pool, uint64_t limit)
{
        pool->limit = limit / pool->slab_size * pool->slab_size;
        pool_shrink(pool);
        while (size_of_staying(pool) > pool->limit && pool_give_up(pool))
                pool_shrink(pool);
        pool_work_ahead(pool);
}

static void add_needed(const struct slab *slab, struct pool_info *info)
{
        for (size_t i = 0; i < slab->n_ranges; i++) {
                const struct slab_range *range = &slab->ranges[i];
                uint32_t n_needed = range->n_holders - range->n_spare;

                if (n_needed == 0)
                        continue;
                info->used += range->length;
                info->saved += (n_needed - 1) * range->length;
        }
}

void pool_get_info(const struct pool *pool, struct pool_info *ret_info)
{
        *ret_info = (struct pool_info){ .limit = pool->limit,
                                        .held = pool->held,
                                        .slab_size = pool->slab_size };

        for (size_t i = 0; i < pool->n_slabs; i++) {
                const struct slab *slab = pool->slabs[i];

                ret_info->size += slab->size;
                ret_info->ready += slab->ready ? slab->size : 0;
                ret_info->spare += slab->spare_bytes;
                add_needed(slab, ret_info);
        }
}
