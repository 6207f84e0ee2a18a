/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/contexts.h"

#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/model/ceiling.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/recovery.h"
#include "manager/operation/admission.h"
#include "manager/operation/operation.h"

static void step(struct guest *guest);

static void end(struct guest *guest)
{
        operation_end_part(guest->instance->operation);
}

/*
 * What is done next for a process that is to be on @wanted, or suspended if that is NULL. The mover's
 * actions start from any state of the process, so what was interrupted is simply done again: a resume
 * first of all, for only its end tells where the context is.
 */
enum action { ACTION_NOTHING, ACTION_SUSPEND, ACTION_RESUME, ACTION_GIVE_UP };

struct plan {
        enum action action;
        struct device *from, *to;
};

static struct plan plan(enum guest_context context, struct device *device, struct device *target,
                        struct device *wanted)
{
        switch (context) {
        case GUEST_CONTEXT_RUNNING:
                return (struct plan){ wanted == device ? ACTION_NOTHING : ACTION_SUSPEND, device,
                                      NULL };
        case GUEST_CONTEXT_SUSPENDING:
                return wanted == device ? (struct plan){ ACTION_RESUME, device, wanted }
                                        : (struct plan){ ACTION_SUSPEND, device, NULL };
        case GUEST_CONTEXT_SUSPENDED:
                return (struct plan){ wanted ? ACTION_RESUME : ACTION_NOTHING, device, wanted };
        case GUEST_CONTEXT_RESUMING:
                return (struct plan){ target ? ACTION_RESUME : ACTION_GIVE_UP, device, target };
        case GUEST_CONTEXT_LOST:
                break;
        }
        return (struct plan){ ACTION_GIVE_UP, device, NULL };
}

/* From what the store says, would the next manager, who undoes the same, do what we are about to do? */
static bool is_foreseen(const struct guest *guest, enum action action, const struct device *target)
{
        struct plan next = plan(guest->stored.context, guest->stored.device, guest->stored.target,
                                guest->context_wanted);

        return next.action == action && next.from == guest->context_device && next.to == target;
}

/*
 * Takes the moment down: the driver's state alone does not say on which device. A full disk does not
 * keep us from undoing what need not be taken down.
 */
static int enter(struct guest *guest, enum guest_context context, struct device *target)
{
        struct operation *operation = guest->instance->operation;
        int r;

        guest->context_before.context = guest->context;
        guest->context_before.target = guest->context_target;
        guest->context = context;
        guest->context_target = target;
        r = recovery_store_process(guest);
        if (r == 0 || (operation->is_undoing &&
                       is_foreseen(guest, target ? ACTION_RESUME : ACTION_SUSPEND, target)))
                return 0;
        operation_fail_store(operation, r, "noting what the driver is asked for");
        return r;
}

/* The call has not been made, or did nothing: so there is nothing to undo. */
static void step_back(struct guest *guest)
{
        guest->context = guest->context_before.context;
        guest->context_target = guest->context_before.target;
        (void)recovery_store_process(guest);
}

static void settle(struct guest *guest, enum guest_context context, struct device *device)
{
        guest->context = context;
        guest->context_device = device;
        guest->context_target = NULL;
        (void)recovery_store_process(guest); /* if not, the next manager does the call again */
}

/*
 * A process that has joined but never made a context is unknown to the driver's checkpoint. There
 * is nothing to save then; only a process without memory can be in that state.
 */
static bool has_no_context(const struct guest *guest, const struct mover_done *done)
{
        return done->driver_code == CUDA_ERROR_NOT_INITIALIZED && guest->n_memory == 0;
}

/* The driver may fail on a process that is being killed a little before it has ended for everybody. */
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
        else if (guest->context == GUEST_CONTEXT_LOST)
                operation_lose_guest(operation, guest);
        else if (done->driver_code == CUDA_ERROR_DEINITIALIZED)
                operation_let_go_guest(operation, guest, "it is ending: its driver has ended");
        else if (done->error == -ENOSPC && guest->context_wanted)
                operation_fail(operation, -ENOSPC, "NoRoom",
                               "end or suspend what is there, or choose another device",
                               "device %u has too little free memory for the context of process "
                               "%d (%.40s)",
                               guest->context_wanted->index, (int)guest->pid, guest->name);
        else if (done->error == -ETIMEDOUT)
                operation_fail(operation, -ETIMEDOUT, "TimedOut",
                               "try again with a longer --timeout",
                               "process %d did not come to rest within %u ms", (int)guest->pid,
                               operation->timeout_ms);
        else if (done->driver_code == CUDA_ERROR_NOT_SUPPORTED)
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               "the driver cannot checkpoint e.g. managed memory",
                               "process %d (%.40s) holds something that cannot be suspended",
                               (int)guest->pid, guest->name);
        else
                operation_fail_driver(operation, guest, done->call, done->driver_code, done->error);
        if (!is_dead && !guest->is_dead)
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

/* How large a context is shows in what becomes free, if nothing else happens on the device. */

static uint64_t neighbours_bytes(const struct operation *operation)
{
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &operation->source->manager->instances, link)
                if (instance != operation->instance &&
                    instance_is_on(instance, operation->source) && !instance_is_off(instance))
                        sum += guests_get_used(instance);
        return sum;
}

static bool is_alone(const struct operation *operation)
{
        const struct instance *instance;

        list_for_each(instance, &operation->source->manager->instances, link) {
                const struct operation *other = instance->operation;

                if (other && other != operation &&
                    (other->source == operation->source || other->target == operation->source))
                        return false;
        }
        return operation->n_processes == 1;
}

static void expect_back(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        operation->neighbours_bytes =
                is_alone(operation) ? neighbours_bytes(operation) : UINT64_MAX;
        footprint_note(guest);
        admission_expect_back(operation, guest);
        room_turn(&guest->returning); /* for it is still there */
}

static void note_left(struct guest *guest, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;

        if (!guest->returning.room)
                return;
        if (done->bytes > 0 && is_alone(operation) &&
            neighbours_bytes(operation) == operation->neighbours_bytes)
                footprint_measure(guest, done->bytes);
        if (!done->is_held || footprint_get(guest, operation->source) > guest->returning.bytes)
                admission_expect_back(operation, guest);
}

static void on_suspended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error == 0 || has_no_context(guest, done)) {
                count_time(guest->instance->operation, done);
                settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context_device);
                note_left(guest, done);
                if (!guest->instance->operation->is_undoing)
                        operation_pass(guest->instance->operation, "checkpointed");
                step(guest);
                return;
        }
        if (done->is_untouched)
                step_back(guest);
        else if (done->process_state == 0)
                settle(guest, GUEST_CONTEXT_RUNNING, guest->context_device);
        else if (done->process_state == CU_PROCESS_STATE_FAILED)
                settle(guest, GUEST_CONTEXT_LOST, guest->context_device);
        fail(guest, done);
}

/* Somebody has taken what was to be the way back; he may not stay. */

#define ROOM_LOOK_US   100000
#define ASKING_LOOK_US 2000

/*
 * So long the ceilings of all vGPUs of a device may be frozen for one guest's way back: a call of the driver
 * takes milliseconds, a gate waits 3 s for its ceiling, and a guest that says for ever that it asks is no
 * reason for more.
 */
#define ASKING_MAX_MS 2500u

static int on_room_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        guest->room_timer = sd_event_source_disable_unref(guest->room_timer);
        step(guest);
        return 0;
}

/*
 * On the way back: who was let through before, and is asking the driver, could get what the mover lets go
 * for the restore. False: nobody asks any more, and nobody begins to; or that was long enough. Whoever waits
 * in its own vGPU has a closed gate, and does not ask before all are back.
 */
static bool waits_for_those_who_ask(struct guest *guest, struct device *target)
{
        const struct operation *operation = guest->instance->operation;
        uint32_t ms = operation->timeout_ms < ASKING_MAX_MS ? operation->timeout_ms : ASKING_MAX_MS;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (!operation->is_undoing || ceiling_freeze(target, guest->instance) == 0)
                return false;
        if (guest->asking_deadline_ns == 0) {
                guest->asking_deadline_ns = now_ns + ms * 1000000ull;
                log_event_of(guest->payer, LOG_LEVEL_INFO,
                             "waiting for those who ask for memory before going back",
                             "vgpu=%s pid=%d device=%u", guest->instance->name, (int)guest->pid,
                             target->index);
        }
        return now_ns < guest->asking_deadline_ns &&
               sd_event_add_time_relative(guest->instance->manager->event, &guest->room_timer,
                                          CLOCK_MONOTONIC, ASKING_LOOK_US, 1000, on_room_time,
                                          guest) >= 0;
}

/* False: that was long enough. */
static bool waits_for_room(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (guest->room_deadline_ns == 0) {
                guest->room_deadline_ns = now_ns + operation->timeout_ms * 1000000ull;
                log_event_of(guest->payer, LOG_LEVEL_WARNING, "waiting for room to go back",
                             "vgpu=%s pid=%d device=%u", guest->instance->name, (int)guest->pid,
                             guest->context_wanted->index);
        }
        return now_ns < guest->room_deadline_ns &&
               sd_event_add_time_relative(guest->instance->manager->event, &guest->room_timer,
                                          CLOCK_MONOTONIC, ROOM_LOOK_US, 1000, on_room_time,
                                          guest) >= 0;
}

static void on_resumed(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error == 0 || has_no_context(guest, done)) {
                count_time(guest->instance->operation, done);
                room_turn(admission_promise_to(guest, guest->context_target));
                settle(guest, GUEST_CONTEXT_RUNNING, guest->context_target);
                step(guest);
                return;
        }
        if (done->is_untouched) {
                step_back(guest);
        } else if (done->process_state == CU_PROCESS_STATE_CHECKPOINTED) {
                bool was_detour = guest->context_target != guest->context_wanted;

                settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context_device);
                if (was_detour) { /* it need not have gone there */
                        step(guest);
                        return;
                }
                if (done->error == -ENOSPC && guest->instance->operation->is_undoing &&
                    waits_for_room(guest))
                        return;
        } else if (done->process_state == CU_PROCESS_STATE_FAILED) {
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

static void fail_unasked(struct guest *guest, int error)
{
        const struct mover_done failed = { .error = error };

        step_back(guest);
        fail(guest, &failed);
}

/* By the mover of the device that it leaves: that of the other may still be starting. */
static void suspend(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct mover_checkpoint_options options = { .timeout_ms = operation->timeout_ms };
        struct mover *mover;
        int r = enter(guest, GUEST_CONTEXT_SUSPENDING, NULL);

        if (!operation->is_undoing) {
                expect_back(guest);
                options.bytes = guest->returning.bytes;
        }

        if (r == 0)
                r = device_get_mover(operation->source, &mover);
        if (r == 0)
                r = mover_checkpoint(mover, guest->pid, guest->pidfd, MOVER_CHECKPOINT_SUSPEND,
                                     &options, on_suspended, guest);
        if (r < 0)
                fail_unasked(guest, r);
}

/* By the mover of the device that it enters, which holds the room for it there. */
static void resume(struct guest *guest, struct device *target)
{
        struct room_promise *promise = admission_promise_to(guest, target);
        struct mover_pair pairs[MOVER_PAIRS_MAX];
        struct mover_checkpoint_options options = {
                .timeout_ms = guest->instance->operation->timeout_ms,
                .pairs = pairs,
                .n_pairs = make_pairs(guest->context_device, target, pairs),
                .bytes = promise->bytes,
        };
        struct mover *mover;
        int r;

        if (waits_for_those_who_ask(guest, target))
                return;
        r = enter(guest, GUEST_CONTEXT_RESUMING, target);
        if (r == 0)
                r = device_get_mover(target, &mover);
        if (r == 0) {
                room_return(promise);
                if (!ceiling_is_on(target))
                        ceiling_look(target);
                r = mover_checkpoint(mover, guest->pid, guest->pidfd, MOVER_CHECKPOINT_RESUME,
                                     &options, on_resumed, guest);
        }
        if (r < 0)
                fail_unasked(guest, r);
}

static void give_up(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        if (guest->context == GUEST_CONTEXT_RESUMING) {
                operation_fail(operation, -ENODEV, "GuestLost",
                               "start vgpud again when the device is there, or end the process",
                               "process %d (%.40s) was being restored on a device that is gone",
                               (int)guest->pid, guest->name);
                operation_leave_guest(operation, guest);
        } else {
                operation_lose_guest(operation, guest);
        }
        end(guest);
}

static void step(struct guest *guest)
{
        struct plan next = plan(guest->context, guest->context_device, guest->context_target,
                                guest->context_wanted);

        if (guest->is_dead || next.action == ACTION_NOTHING)
                end(guest);
        else if (next.action == ACTION_SUSPEND)
                suspend(guest);
        else if (next.action == ACTION_RESUME)
                resume(guest, next.to);
        else
                give_up(guest);
}

void contexts_move(struct operation *operation, struct guest *guest, struct device *wanted)
{
        operation_begin_part(operation);
        guest->context_wanted = wanted;
        guest->room_deadline_ns = guest->asking_deadline_ns = 0;
        step(guest);
}
