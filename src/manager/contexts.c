/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/contexts.h"

#include <errno.h>
#include <string.h>

#include "manager/custody.h"
#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/log.h"
#include "manager/manager.h"
#include "manager/operation.h"
#include "manager/process.h"

/* CUresult and CUprocessState, as far as they change what we do. */
#define DRIVER_NOT_INITIALIZED 3
#define DRIVER_NOT_SUPPORTED   801
#define PROCESS_CHECKPOINTED   2
#define PROCESS_FAILED         3

static void step(struct guest *guest);

static void end(struct guest *guest)
{
        operation_end_part(guest->instance->operation);
}

/* Takes the moment down: the driver's state alone does not say on which device. */
static int enter(struct guest *guest, enum guest_context context, struct device *target)
{
        guest->context = context;
        guest->context_target = target;
        return custody_store_process(guest);
}

static void settle(struct guest *guest, enum guest_context context, struct device *device)
{
        guest->context = context;
        guest->context_device = device;
        guest->context_target = NULL;
        (void)custody_store_process(guest); /* if not, the next manager does the call again */
}

/*
 * A process that has joined but never made a context is unknown to the driver's checkpoint. There
 * is nothing to save then; only a process without memory can be in that state.
 */
static bool has_no_context(const struct guest *guest, const struct mover_done *done)
{
        return done->driver_code == DRIVER_NOT_INITIALIZED && guest->n_memory == 0;
}

/* To the mover a process that was killed is there until it is reaped; the driver fails on it. */
static bool has_died(const struct guest *guest, const struct mover_done *done)
{
        uint64_t start_time;

        return done->error == -ESRCH || process_get_start_time(guest->pid, &start_time) == -ESRCH;
}

static void fail(struct guest *guest, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;
        bool is_dead = has_died(guest, done);

        if (done->error == -ECONNRESET)
                operation_lost_mover(operation);
        else if (is_dead)
                (void)0; /* it died; what is left of it is buried at the end */
        else if (done->error == -ETIMEDOUT)
                operation_fail(operation, -ETIMEDOUT, "TimedOut",
                               "try again with a longer --timeout",
                               "process %d did not come to rest within %u ms", (int)guest->pid,
                               operation->timeout_ms);
        else if (done->driver_code == DRIVER_NOT_SUPPORTED)
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               "the driver cannot checkpoint e.g. managed memory",
                               "process %d (%.40s) holds something that cannot be suspended",
                               (int)guest->pid, guest->name);
        else
                operation_fail_driver(operation, guest, done->call, done->driver_code, done->error);
        if (!is_dead)
                operation_leave_guest(operation, guest);
        end(guest);
}

static void count_time(struct operation *operation, const struct mover_done *done)
{
        uint64_t ns = done->lock_ns + done->checkpoint_ns;

        log_event(LOG_LEVEL_DEBUG, "the driver moved a context", "vgpu=%s ms=%.1f",
                  operation->instance->name, (double)ns / 1e6);
        if (ns > operation->context_ns)
                operation->context_ns = ns;
}

static void on_suspended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error == 0 || has_no_context(guest, done)) {
                count_time(guest->instance->operation, done);
                settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context_device);
                if (!guest->instance->operation->is_undoing)
                        operation_pass(guest->instance->operation, "checkpointed");
                step(guest);
                return;
        }
        if (done->process_state == 0)
                settle(guest, GUEST_CONTEXT_RUNNING, guest->context_device);
        else if (done->process_state == PROCESS_FAILED)
                settle(guest, GUEST_CONTEXT_LOST, guest->context_device);
        fail(guest, done);
}

static void on_resumed(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error == 0 || has_no_context(guest, done)) {
                count_time(guest->instance->operation, done);
                settle(guest, GUEST_CONTEXT_RUNNING, guest->context_target);
                step(guest);
                return;
        }
        if (done->process_state == PROCESS_CHECKPOINTED) {
                bool was_detour = guest->context_target != guest->context_wanted;

                settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context_device);
                if (was_detour) { /* it need not have gone there */
                        step(guest);
                        return;
                }
        } else if (done->process_state == PROCESS_FAILED) {
                settle(guest, GUEST_CONTEXT_LOST, guest->context_device);
        }
        fail(guest, done);
}

/* The driver wants a permutation of all devices of the machine: the two change places. */
static size_t make_pairs(const struct device *from, const struct device *to,
                         struct mover_pair pairs[MOVER_PAIRS_MAX])
{
        const struct manager *manager = from->manager;
        size_t n = 0;

        if (from == to)
                return 0;
        for (; n < manager->n_devices && n < MOVER_PAIRS_MAX; n++) {
                const struct device *old = &manager->device[n];
                const struct device *new = old == from ? to : old == to ? from : old;

                memcpy(pairs[n].old_uuid, old->uuid_bytes, sizeof(pairs[n].old_uuid));
                memcpy(pairs[n].new_uuid, new->uuid_bytes, sizeof(pairs[n].new_uuid));
        }
        return n;
}

/* By the mover of the device that it leaves: that of the other may still be starting. */
static void suspend(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct mover_done failed = { 0 };
        struct mover *mover;
        int r = enter(guest, GUEST_CONTEXT_SUSPENDING, NULL);

        if (r == 0)
                r = device_get_mover(operation->source, &mover);
        if (r == 0)
                r = mover_checkpoint(mover, guest->pid, MOVER_CHECKPOINT_SUSPEND,
                                     operation->timeout_ms, NULL, 0, on_suspended, guest);
        if (r < 0) {
                failed.error = r;
                fail(guest, &failed);
        }
}

static void resume(struct guest *guest, struct device *target)
{
        struct operation *operation = guest->instance->operation;
        struct mover_pair pairs[MOVER_PAIRS_MAX];
        size_t n_pairs = make_pairs(guest->context_device, target, pairs);
        struct mover_done failed = { 0 };
        struct mover *mover;
        int r = enter(guest, GUEST_CONTEXT_RESUMING, target);

        if (r == 0)
                r = device_get_mover(operation->target, &mover);
        if (r == 0)
                r = mover_checkpoint(mover, guest->pid, MOVER_CHECKPOINT_RESUME,
                                     operation->timeout_ms, pairs, n_pairs, on_resumed, guest);
        if (r < 0) {
                failed.error = r;
                fail(guest, &failed);
        }
}

/*
 * The mover's actions start from any state of the process, so what was interrupted is simply done
 * again: a resume first of all, for only its end tells where the context is.
 */
static void step(struct guest *guest)
{
        struct device *wanted = guest->context_wanted;

        if (guest->is_dead) {
                end(guest);
                return;
        }
        switch (guest->context) {
        case GUEST_CONTEXT_RUNNING:
                if (wanted == guest->context_device)
                        end(guest);
                else
                        suspend(guest);
                return;
        case GUEST_CONTEXT_SUSPENDING:
                if (wanted == guest->context_device)
                        resume(guest, wanted);
                else
                        suspend(guest);
                return;
        case GUEST_CONTEXT_SUSPENDED:
                if (wanted)
                        resume(guest, wanted);
                else
                        end(guest);
                return;
        case GUEST_CONTEXT_RESUMING:
                resume(guest, guest->context_target);
                return;
        case GUEST_CONTEXT_LOST:
                operation_fail(guest->instance->operation, -EUCLEAN, "GuestLost",
                               "end the process: the driver has given it up",
                               "process %d (%.40s) cannot be restored", (int)guest->pid,
                               guest->name);
                operation_leave_guest(guest->instance->operation, guest);
                end(guest);
                return;
        }
}

void contexts_move(struct operation *operation, struct guest *guest, struct device *wanted)
{
        operation_begin_part(operation);
        guest->context_wanted = wanted;
        step(guest);
}
