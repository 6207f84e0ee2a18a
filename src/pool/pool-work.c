/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What movers do for the pool: pin slabs, zero them, let them go.
 *
 * A mover works on a slab by one action at a time. advance() looks at what a slab
 * is and what is wanted of it, and starts the next action; it is called whenever
 * one of the two has changed. So there are no sequences of steps to remember, and
 * none to get wrong when a mover dies in the middle.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "pool/pool-internal.h"

/* One action. */

static int start(struct pool *pool, struct slab *slab, enum pool_action action, uint32_t device)
{
        const struct pool_work work = { .action = action,
                                        .device = device,
                                        .slab = slab->id,
                                        .fd = slab->fd,
                                        .size = slab->size };
        int r;

        slab->action = action;
        slab->action_device = device;
        r = pool->worker(&work, pool->userdata);
        if (r < 0)
                slab->action = 0;
        return r;
}

static uint32_t any_device(uint32_t mask)
{
        return (uint32_t)__builtin_ctz(mask);
}

/* Preparations. */

static bool is_active(const struct pool_reservation *reservation)
{
        return reservation->done && reservation->error == 0;
}

static bool uses(const struct pool_reservation *reservation, uint32_t slab)
{
        for (size_t i = 0; i < reservation->n_extents; i++)
                if (reservation->extents[i].slab == slab)
                        return true;
        return false;
}

/* The devices that preparations want @slab on. */
static uint32_t wanted_on(const struct pool *pool, const struct slab *slab)
{
        uint32_t devices = 0;

        for (const struct pool_reservation *r = pool->reservations; r; r = r->next)
                if (is_active(r) && uses(r, slab->id))
                        devices |= pool_bit(r->device);
        return devices;
}

/* Those that want @slab on one of @devices have failed. */
static void fail_preparations(struct pool *pool, const struct slab *slab, uint32_t devices,
                              int error)
{
        for (struct pool_reservation *r = pool->reservations; r; r = r->next)
                if (is_active(r) && (pool_bit(r->device) & devices) && uses(r, slab->id))
                        r->error = error;
}

static bool is_pinned(const struct slab *slab, const struct pool_reservation *reservation)
{
        uint32_t device = reservation->device;

        return (slab->ready & pool_bit(device)) ||
               (reservation->wanted == POOL_BEING_PINNED && slab->action == POOL_ADD &&
                slab->action_device == device);
}

/* Zeroed for its owner, pinned, and nobody writes to it. */
static bool is_prepared(const struct pool *pool, const struct pool_reservation *reservation)
{
        for (size_t i = 0; i < reservation->n_extents; i++) {
                const struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                if (!is_pinned(slab, reservation) || slab->needs_zero || slab->action == POOL_ZERO)
                        return false;
        }
        return true;
}

/* Each callback may change anything: begin again after it. */
static void tell_finished(struct pool *pool)
{
        struct pool_reservation *r = pool->reservations;

        while (r) {
                if (r->done && (r->error < 0 || is_prepared(pool, r))) {
                        pool_prepared_fn done = TAKE(r->done);

                        done(r, r->error, r->userdata);
                        r = pool->reservations;
                } else {
                        r = r->next;
                }
        }
}

/* What comes next for a slab. */

/* A mover that cannot even be asked holds nothing: there is nothing to undo there. */
static void let_go(struct pool *pool, struct slab *slab)
{
        while (slab->ready) {
                if (start(pool, slab, POOL_REMOVE, any_device(slab->ready)) == 0)
                        return;
                slab->ready &= slab->ready - 1;
        }
        pool_destroy(pool, slab);
}

/* True: an action is started, or was tried in vain and its waiters have failed. */
static bool start_wanted(struct pool *pool, struct slab *slab)
{
        uint32_t wanted = wanted_on(pool, slab);
        uint32_t missing = wanted & ~slab->ready;
        uint32_t device;
        int r;

        if (missing) {
                device = any_device(missing);
                r = start(pool, slab, POOL_ADD, device);
                if (r < 0)
                        fail_preparations(pool, slab, pool_bit(device), r);
                return true;
        }
        if (wanted && slab->needs_zero) {
                r = start(pool, slab, POOL_ZERO, any_device(wanted));
                if (r < 0)
                        fail_preparations(pool, slab, wanted, r);
                return true;
        }
        return false;
}

/* Starts it; a slab that is let go may be freed here. */
static void advance(struct pool *pool, struct slab *slab)
{
        if (slab->is_leaving && !slab->action) {
                let_go(pool, slab);
                return;
        }
        while (!slab->action && start_wanted(pool, slab))
                ;
}

void pool_shrink(struct pool *pool)
{
        uint64_t size = 0;

        for (size_t i = 0; i < pool->n_slabs; i++)
                size += pool->slabs[i]->is_leaving ? 0 : pool->slabs[i]->size;
        for (size_t i = pool->n_slabs; i-- > 0;) { /* from the end: one that leaves may go */
                struct slab *slab = pool->slabs[i];

                if (!slab_is_free(slab) || slab->is_leaving ||
                    (size <= pool->limit && !slab->is_shared && slab->stamps))
                        continue;
                size -= slab->size;
                slab->is_leaving = true;
                advance(pool, slab);
        }
}

static int prepare(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
                   enum pool_readiness wanted, pool_prepared_fn done, void *userdata,
                   bool *ret_ready)
{
        if (reservation->done)
                return -EBUSY;
        if (device >= POOL_DEVICES_MAX)
                return -EINVAL;

        reservation->device = device;
        reservation->error = 0;
        reservation->wanted = wanted;
        if (is_prepared(pool, reservation)) {
                *ret_ready = true;
                return 0;
        }

        reservation->done = done;
        reservation->userdata = userdata;
        for (size_t i = 0; i < reservation->n_extents && reservation->error == 0; i++)
                advance(pool, pool_find(pool, reservation->extents[i].slab));
        if (reservation->error < 0) { /* what was started before goes on, for nobody */
                reservation->done = NULL;
                return reservation->error;
        }
        *ret_ready = is_prepared(pool, reservation); /* that is, being pinned */
        if (*ret_ready)
                reservation->done = NULL;
        return 0;
}

int pool_prepare(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
                 pool_prepared_fn done, void *userdata, bool *ret_ready)
{
        return prepare(pool, reservation, device, POOL_PINNED, done, userdata, ret_ready);
}

int pool_prepare_soon(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
                      pool_prepared_fn done, void *userdata, bool *ret_ready)
{
        return prepare(pool, reservation, device, POOL_BEING_PINNED, done, userdata, ret_ready);
}

/* A failure is tried again by the preparation, which tells it. */
void pool_begin(struct pool *pool, const struct pool_reservation *reservation, uint32_t device)
{
        for (size_t i = 0; i < reservation->n_extents; i++) {
                struct slab *slab = pool_find(pool, reservation->extents[i].slab);

                if (!slab->action && !(slab->ready & pool_bit(device)) &&
                    start(pool, slab, POOL_ADD, device) < 0)
                        return;
        }
}

/* Ahead of demand. */

static bool has_background_work(const struct pool *pool)
{
        for (size_t i = 0; i < pool->n_slabs; i++)
                if (pool->slabs[i]->action && pool->slabs[i]->is_background)
                        return true;
        return false;
}

static uint64_t count_ahead(const struct pool *pool, uint32_t device)
{
        uint64_t size = 0;

        for (size_t i = 0; i < pool->n_slabs; i++) {
                const struct slab *slab = pool->slabs[i];

                if (slab_is_free(slab) && !slab->is_leaving && (slab->ready & pool_bit(device)))
                        size += slab->size;
        }
        return size;
}

static bool is_idle(const struct slab *slab)
{
        return slab_is_free(slab) && !slab->action && !slab->is_leaving;
}

static struct slab *find_idle_dirty(const struct pool *pool)
{
        for (size_t i = 0; i < pool->n_slabs; i++)
                if (is_idle(pool->slabs[i]) && pool->slabs[i]->is_dirty && pool->slabs[i]->ready)
                        return pool->slabs[i];
        return NULL;
}

/* A slab that @device could have: one that no device has, a new one, or one of another device. */
static struct slab *find_for_device(struct pool *pool, uint32_t device)
{
        struct slab *shared = NULL, *slab;

        for (size_t i = 0; i < pool->n_slabs; i++) {
                slab = pool->slabs[i];
                if (!is_idle(slab) || (slab->ready & pool_bit(device)))
                        continue;
                if (!slab->ready)
                        return slab;
                shared = slab;
        }
        if (pool_room_for_new(pool) > 0 && pool_grow(pool, &slab) == 0)
                return slab;
        return shared;
}

static int start_ahead(struct pool *pool, struct slab *slab, enum pool_action action,
                       uint32_t device)
{
        int r = start(pool, slab, action, device);

        slab->is_background = r == 0;
        return r;
}

static void work_for_device(struct pool *pool, uint32_t device)
{
        struct slab *slab;

        if (pool->is_resting[device] || count_ahead(pool, device) >= pool->wanted[device])
                return;

        slab = find_for_device(pool, device);
        if (slab ? start_ahead(pool, slab, POOL_ADD, device) < 0
                 : !(pool->wants_all & pool_bit(device)))
                pool->is_resting[device] = true;
}

/* Not free ones that nobody has pinned: they are of use to nobody yet. */
static struct slab *find_of_others(const struct pool *pool, uint32_t device)
{
        for (size_t i = 0; i < pool->n_slabs; i++) {
                struct slab *slab = pool->slabs[i];

                if (!slab->action && !slab->is_leaving && !(slab->ready & pool_bit(device)) &&
                    (slab->ready || !slab_is_free(slab)))
                        return slab;
        }
        return NULL;
}

static void work_for_visitors(struct pool *pool, uint32_t device)
{
        struct slab *slab;

        if (pool->is_resting[device] || !(pool->wants_all & pool_bit(device)))
                return;
        slab = find_of_others(pool, device);
        if (slab && start_ahead(pool, slab, POOL_ADD, device) < 0)
                pool->is_resting[device] = true;
}

/* One action at a time in the background: what somebody waits for shall not queue behind many. */
void pool_work_ahead(struct pool *pool)
{
        struct slab *dirty;

        if (pool->n_pauses > 0 || has_background_work(pool))
                return;

        dirty = find_idle_dirty(pool);
        if (dirty && !pool->is_resting[any_device(dirty->ready)] &&
            start_ahead(pool, dirty, POOL_ZERO, any_device(dirty->ready)) == 0)
                return;
        for (uint32_t i = 0; i < POOL_DEVICES_MAX && !has_background_work(pool); i++)
                work_for_device(pool, i);
        for (uint32_t i = 0; i < POOL_DEVICES_MAX && !has_background_work(pool); i++)
                work_for_visitors(pool, i);
}

void pool_want(struct pool *pool, uint32_t device, uint64_t bytes)
{
        if (device >= POOL_DEVICES_MAX)
                return;
        pool->wanted[device] = bytes;
        pool->is_resting[device] = false;
        pool_work_ahead(pool);
}

void pool_want_all(struct pool *pool, uint32_t device, bool is_wanted)
{
        if (device >= POOL_DEVICES_MAX)
                return;
        pool->wants_all &= ~pool_bit(device);
        pool->wants_all |= is_wanted ? pool_bit(device) : 0;
        pool->is_resting[device] = false;
        pool_work_ahead(pool);
}

void pool_pause(struct pool *pool)
{
        pool->n_pauses++;
}

void pool_unpause(struct pool *pool)
{
        pool->n_pauses--;
        pool_work_ahead(pool);
}

void pool_rest(struct pool *pool, uint32_t device)
{
        if (device >= POOL_DEVICES_MAX)
                return;
        pool->wants_all &= ~pool_bit(device);
        pool->is_resting[device] = true;
}

/* The end of an action. */

static void apply(struct slab *slab, enum pool_action action, uint32_t device)
{
        switch (action) {
        case POOL_ADD:
                slab->ready |= pool_bit(device);
                break;
        case POOL_REMOVE:
                slab->ready &= ~pool_bit(device);
                break;
        case POOL_ZERO:
                if (slab_is_free(slab) || slab->needs_zero)
                        slab_set_clean(slab);
                break;
        }
}

static void finish(struct pool *pool, struct slab *slab, int error)
{
        enum pool_action action = slab->action;
        uint32_t device = slab->action_device;

        slab->action = 0;
        if (error == 0 || action == POOL_REMOVE) { /* asked again it would fail again */
                apply(slab, action, device);
        } else {
                fail_preparations(pool, slab, action == POOL_ADD ? pool_bit(device) : UINT32_MAX,
                                  error);
                pool->is_resting[device] |= slab->is_background;
        }
        slab->is_background = false;
        advance(pool, slab);
}

void pool_work_done(struct pool *pool, enum pool_action action, uint32_t device, uint32_t id,
                    int error)
{
        struct slab *slab = pool_find(pool, id);

        if (!slab || slab->action != action || slab->action_device != device)
                return; /* of a device that is lost */

        finish(pool, slab, error);
        tell_finished(pool);
        pool_work_ahead(pool);
}

void pool_device_lost(struct pool *pool, uint32_t device)
{
        if (device >= POOL_DEVICES_MAX)
                return;

        pool_rest(pool, device); /* until pool_want() says that there is a mover again */
        for (struct pool_reservation *r = pool->reservations; r; r = r->next)
                if (is_active(r) && r->device == device)
                        r->error = -ECONNRESET;
        for (size_t i = pool->n_slabs; i-- > 0;) { /* from the end: a slab that leaves may go */
                struct slab *slab = pool->slabs[i];

                slab->ready &= ~pool_bit(device);
                if (slab->action && slab->action_device == device)
                        finish(pool, slab, -ECONNRESET);
        }
        tell_finished(pool);
        pool_work_ahead(pool);
}
