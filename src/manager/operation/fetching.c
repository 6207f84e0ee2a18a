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
#include "manager/model/reading.h"
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

        if (result->took_ns > operation->measured.fetch_ns)
                operation->measured.fetch_ns = result->took_ns;
        if (r < 0)
                operation_fail(operation, r, "Failed", result->reason.hint,
                               "vGPU %s: its memory cannot be read from the spill: %.120s",
                               operation->instance->name, result->reason.message);
        else if (!guest_is_dead(guest))
                r = settle(guest);
        if (r < 0 && result->error == 0)
                operation_fail_store(operation, r, "noting what came back from the spill");
        end(guest);
}

/* Zeroed and pinned first: zeroing what was read already would lose it. */
static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest *guest = userdata;

        struct spill_copy *copy;

        (void)reservation;
        if (error == 0)
                error = spilled_begin_read(guest, guest->fetched, &copy, on_read, guest);
        if (error < 0)
                fail(guest, error);
}

/* What was read ahead. */
static void on_pinned(struct pool_reservation *reservation, int error, void *userdata)
{
        const struct spill_result result = { 0 };

        (void)reservation;
        if (error < 0)
                fail(userdata, error);
        else
                on_read(&result, userdata);
}

bool fetching_is_needed(const struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->spilled && !guest->spilled->ahead)
                        return true;
        return false;
}

static void fetch(struct guest *guest)
{
        uint32_t device = guest->instance->operation->target.device[0]->index;
        pool_prepared_fn then = guest->fetched ? on_pinned : on_prepared;
        struct pool *pool = guest->instance->manager->pool;
        char owner[POOL_OWNER_MAX];
        bool is_ready = false;
        int r = 0;

        operation_begin_part(guest->instance->operation);
        policy_name_owner(guest->instance, owner);
        if (!guest->fetched)
                r = pool_reserve_in(pool, &guest->fetched, owner, guest->instance->uuid, device,
                                    guest->spilled->bytes);
        if (r == 0)
                r = pool_prepare(pool, guest->fetched, device, then, guest, &is_ready);
        if (r < 0)
                fail(guest, r);
        else if (is_ready)
                then(guest->fetched, 0, guest);
}

/* What was read ahead is taken first: none of it shall go for the rest. */
static void fetch_all(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->spilled)
                        (void)spilled_take(guest, &guest->fetched);
        operation_for_each_guest(guest, operation)
                if (guest->spilled)
                        fetch(guest);
}

static void get_room(struct operation *operation)
{
        struct guest *guest;
        uint64_t bytes = 0;

        operation_for_each_guest(guest, operation)
                bytes += guest->spilled ? guest->spilled->bytes : 0;
        if (bytes > 0)
                make_room(operation, bytes, fetch_all);
}

void fetching_run(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                spilling_leave(guest);
        if (!reading_is_of(operation->instance)) {
                get_room(operation);
                return;
        }
        operation->awaits_reading = true;
        operation_begin_part(operation);
}

void fetching_go_on(struct operation *operation)
{
        if (!operation->awaits_reading)
                return;
        operation->awaits_reading = false;
        get_room(operation);
        operation_end_part(operation);
}
