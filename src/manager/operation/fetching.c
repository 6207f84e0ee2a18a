/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/fetching.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/model/recovery.h"
#include "manager/model/spill-use.h"
#include "manager/model/spilled.h"
#include "manager/model/spilling.h"
#include "manager/operation/make-room.h"
#include "manager/operation/operation.h"
#include "spill/spill.h"

static void end(struct guest *guest)
{
        struct manager *manager = guest->instance->manager;

        guest->fetched = pool_release(manager->pool, guest->fetched);
        operation_end_part(guest->instance->operation);
}

static void fail(struct guest *guest, int error)
{
        const struct device *device = guest->instance->operation->target.device[0];

        if (error == -ECONNRESET || !device->mover || mover_is_lost(device->mover))
                operation_lost_mover(guest->instance->operation, device);
        else
                operation_fail_errno(guest->instance->operation, error,
                                     "getting memory back from the spill");
        end(guest);
}

/* Only when the store says where it is now is the file needed no more. */
static int settle(struct guest *guest)
{
        struct pool *pool = guest->instance->manager->pool;
        int r = pool_stamp(pool, guest->fetched, guest->pid, guest->start_time);

        if (r < 0)
                return r;
        guest->reservation = TAKE(guest->fetched);
        r = recovery_put_slabs(guest);
        if (r == 0)
                r = recovery_store_memory(guest);
        if (r < 0) {
                guest->fetched = TAKE(guest->reservation);
                return r;
        }
        clean_copy_follow(guest, guest->spilled->generation);
        spilled_drop(guest);
        return 0;
}

static void on_read(const struct spill_result *result, void *userdata)
{
        struct guest *guest = userdata;
        struct operation *operation = guest->instance->operation;
        int r = result->error;

        if (result->took_ns > operation->fetch_ns)
                operation->fetch_ns = result->took_ns;
        if (r < 0)
                operation_fail(operation, r, "Failed", result->reason.hint,
                               "vGPU %s: its memory cannot be read from the spill: %.120s",
                               operation->instance->name, result->reason.message);
        else if (!guest->is_dead)
                r = settle(guest);
        if (r < 0 && result->error == 0)
                operation_fail_store(operation, r, "noting what came back from the spill");
        end(guest);
}

static int begin_copy(struct guest *guest)
{
        struct manager *manager = guest->instance->manager;
        CLEANUP(freep) struct spill_extent *places = NULL;
        struct spill_order order = { .is_read = true,
                                     .fd = guest->spilled->fd,
                                     .begin = guest->spilled->begin };
        const struct pool_extent *extents = pool_get_extents(guest->fetched, &order.n_extents);
        struct spill_copy *copy;

        places = calloc(order.n_extents, sizeof(*places));
        if (!places)
                return -ENOMEM;
        for (size_t i = 0; i < order.n_extents; i++)
                places[i] = (struct spill_extent){ pool_get_slab(manager->pool, extents[i].slab),
                                                   extents[i].offset, extents[i].length };
        order.extents = places;
        spilled_make_mark(guest, guest->spilled->generation, &order.mark);
        return spill_begin(manager->spill, &copy, &order, on_read, guest);
}

/* Zeroed and pinned first: zeroing what was read already would lose it. */
static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest *guest = userdata;

        (void)reservation;
        if (error == 0)
                error = begin_copy(guest);
        if (error < 0)
                fail(guest, error);
}

static void fetch(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct pool *pool = guest->instance->manager->pool;
        char owner[POOL_OWNER_MAX];
        bool is_ready = false;
        int r;

        operation_begin_part(operation);
        policy_name_owner(guest->instance, owner);
        r = pool_reserve_in(pool, &guest->fetched, owner, guest->instance->uuid,
                            operation->target.device[0]->index, guest->spilled->bytes);
        if (r == 0)
                r = pool_prepare(pool, guest->fetched, operation->target.device[0]->index,
                                 on_prepared, guest, &is_ready);
        if (r < 0)
                fail(guest, r);
        else if (is_ready)
                on_prepared(guest->fetched, 0, guest);
}

static void fetch_all(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->spilled)
                        fetch(guest);
}

void fetching_run(struct operation *operation)
{
        struct guest *guest;
        uint64_t bytes = 0;

        operation_for_each_guest(guest, operation) {
                spilling_leave(guest);
                bytes += guest->spilled ? guest->spilled->bytes : 0;
        }
        if (bytes > 0)
                make_room(operation, bytes, fetch_all);
}
