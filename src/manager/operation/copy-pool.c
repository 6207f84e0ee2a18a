/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copy-pool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/keep-once.h"
#include "manager/model/manager.h"
#include "manager/model/parting.h"
#include "manager/model/recovery.h"
#include "manager/operation/copy-hashes.h"
#include "manager/operation/copy-way.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* be lone: what others hold is never written to. The try before may have come as far as to share blocks. */

static int store_extents(struct guest *guest)
{
        int r = recovery_put_slabs(guest);

        return r < 0 ? r : recovery_store_memory(guest);
}

/* What it has goes once there is something else for it: without room all stays as it is. */
int copy_pool_be_lone(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct pool *pool = operation->instance->manager->pool;
        CLEANUP(freep) struct pool_place *places = NULL;
        struct pool_reservation *others;
        int r;

        if (!guest->reservation || pool_is_lone(pool, guest->reservation))
                return 0;
        if (handover_has_parked(guest))
                return -EBUSY; /* it has all that there is of that */
        places = calloc(parting_count(guest), sizeof(*places));
        if (!places)
                return -ENOMEM;
        r = parting_part(guest, guest->participant->job[0].device->index, operation->is_undoing,
                         places, &others, &operation->failure);
        if (r == 0)
                r = store_extents(guest);
        pool_release(pool, others);
        return r;
}

/*
 * prepare: all slabs of the guest's reservation are made ready on the jobs' devices, one after another. The copy begins
 * with the first that are pinned.
 */

/* Processes wait at the same time: what counts is for how long one did. */
void copy_pool_begin_wait(struct operation *operation)
{
        if (operation->measured.n_pool_waits++ == 0)
                operation->measured.pool_since_ns = clock_now(CLOCK_MONOTONIC);
}

void copy_pool_end_wait(struct operation *operation)
{
        if (operation->measured.n_pool_waits > 0 && --operation->measured.n_pool_waits == 0)
                operation->measured.pool_ns +=
                        clock_now(CLOCK_MONOTONIC) - operation->measured.pool_since_ns;
}

static int prepare_from(struct guest *guest, size_t part);

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest_job *job = userdata;
        const struct device *device = job->device;

        (void)reservation;
        copy_pool_end_wait(job->guest->instance->operation);
        if (error && (!device->mover || mover_is_lost(device->mover)))
                error = -ECONNRESET;
        if (error == 0)
                error = prepare_from(job->guest, job->part + 1);
        if (error == COPY_WAITS)
                return;
        if (error < 0)
                copy_way_fail(job, error, NULL);
        copy_way_go_on(job->guest);
}

/* One that hands its memory over needs all of its slabs before another vGPU has the first part of that. */
static int prepare_on(struct guest_job *job)
{
        struct operation *operation = job->guest->instance->operation;
        struct pool *pool = operation->instance->manager->pool;
        uint32_t device = job->device->index;
        bool is_ready = false;
        int r = handover_may(job->guest) ? pool_prepare(pool, job->guest->reservation, device,
                                                        on_prepared, job, &is_ready)
                                         : pool_prepare_soon(pool, job->guest->reservation, device,
                                                             on_prepared, job, &is_ready);

        if (r < 0 || is_ready)
                return r;
        copy_pool_begin_wait(operation);
        return COPY_WAITS;
}

static int prepare_from(struct guest *guest, size_t part)
{
        int r = 0;

        for (; r == 0 && part < guest->instance->n_parts; part++)
                if (guest->participant->job[part].is_in_use)
                        r = prepare_on(&guest->participant->job[part]);
        return r;
}

int copy_pool_prepare(struct guest *guest)
{
        if (!guest->participant->copy.way->is_pooled(guest))
                return 0;
        return guest->reservation ? prepare_from(guest, 0) : -ESTALE;
}

/* keep once: all that the reservation is to have is there, and nothing twice. */

static bool is_hashed(const struct guest *guest)
{
        bool is = true;

        for (size_t i = 0; i < guest->instance->n_parts; i++)
                is &= !guest->participant->job[i].is_in_use ||
                      guest->participant->job[i].n_hashes > 0;
        return is;
}

static void on_kept_once(struct guest *guest, bool has_moved)
{
        guest->participant->copy.has_moved |= has_moved;
        copy_way_go_on(guest);
}

int copy_pool_keep_once(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        bool waits, has_moved;
        int r;

        guest->participant->copy.has_moved = false;
        if (!is_hashed(guest))
                return 0;
        clean_copy_end(guest, guest->participant->copy.is_compared,
                       !guest->participant->copy.has_no_hashes);
        if (handover_has_parked(guest) && handover_count(guest) < guest->n_memory) {
                clean_copy_spoil(guest); /* an undo may have to write there */
                return 0;
        }
        r = clean_copy_complete(guest, &guest->participant->copy.has_moved);
        if (r < 0) {
                guest->participant->copy.is_done = false;
                operation_fail_errno(operation, r, "sharing memory of the pool");
                operation_leave_guest(operation, guest);
                return 0; /* what is left to do is to end the job */
        }
        waits = keep_once(guest, copy_hashes_must_verify(operation), &has_moved, on_kept_once);
        guest->participant->copy.has_moved |= has_moved;
        return waits ? COPY_WAITS : 0;
}

/* stamp: the copy out is complete; only now, and for this process alone, it is what may be copied in. */

int copy_pool_stamp(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r;

        if (!guest->participant->copy.is_done)
                return 0;
        r = pool_stamp(operation->instance->manager->pool, guest->reservation, guest->pid,
                       guest->start_time);
        if (r == 0 &&
            guest->participant->copy
                    .has_moved) /* the next manager adopts what others hold by the stamp */
                r = store_extents(guest);
        if (r < 0) {
                guest->participant->copy.is_done = false;
                operation_fail_errno(operation, r, "marking memory of the pool");
                operation_leave_guest(operation, guest);
        }
        if (!operation->is_undoing && operation->kind->number == OPERATION_SUSPEND)
                operation_pass(operation, "copied");
        return 0;
}
