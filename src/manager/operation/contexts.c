/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/contexts.h"

#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/guests/gate-link.h"
#include "manager/model/ceiling.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/restore-room.h"
#include "manager/model/silence.h"
#include "manager/operation/admission.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/context-closing.h"
#include "manager/operation/context-fail.h"
#include "manager/operation/context-moment.h"
#include "manager/operation/context-pairs.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

static void step(struct guest *guest);

static void end(struct guest *guest)
{
        context_open_ceilings(guest);
        operation_end_part(guest->instance->operation);
}

/* Nothing of it leaves after all: gates need not be kept from so much until an undo of other processes has ended. */
static void stay(struct guest *guest)
{
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                struct room_promise *returning = &guest->room[i].returning;

                if (returning->state != ROOM_LEAVING)
                        continue;
                room_forget(returning);
                ceiling_look(guest->instance->operation->source.device[i]);
        }
}

static void fail(struct guest *guest, const struct device *device, const struct mover_done *done)
{
        context_fail(guest, device, done);
        if (guest->context.state == GUEST_CONTEXT_RUNNING)
                stay(guest);
        end(guest);
}

/*
 * A process that has joined but never made a context is unknown to the driver's checkpoint. There
 * is nothing to save then; only a process without memory can be in that state.
 */
static bool has_no_context(const struct guest *guest, const struct mover_done *done)
{
        return done->driver_code == CUDA_ERROR_NOT_INITIALIZED && guest->n_memory == 0;
}

static void count_time(struct operation *operation, const struct mover_done *done)
{
        uint64_t ns = done->lock_ns + done->checkpoint_ns;

        log_event(LOG_LEVEL_DEBUG, "the driver moved a context", "vgpu=%s ms=%.1f",
                  operation->instance->name, (double)ns / 1e6);
        if (ns > operation->measured.context_ns)
                operation->measured.context_ns = ns;
}

/*
 * How large a context is shows in what becomes free, if nothing else happens on the device. Where memory was handed over
 * before, some of that may become free only now.
 */

static uint64_t neighbours_bytes(const struct operation *operation)
{
        const struct device *device = operation->source.device[0];
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                if (instance != operation->instance && instance_is_on(instance, device) &&
                    !instance_is_off(instance))
                        sum += guests_get_used(instance);
        return sum;
}

static bool is_alone(const struct operation *operation)
{
        const struct device *device = operation->source.device[0];
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance->operation && instance->operation != operation &&
                    operation_is_at(instance->operation, device))
                        return false;
        return operation->n_processes == 1 && !handover_has_passed(operation);
}

static void expect_back(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        operation->neighbours_bytes =
                is_alone(operation) ? neighbours_bytes(operation) : UINT64_MAX;
        footprint_note(guest);
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                admission_expect_back(operation, guest, i);
                room_leave(&guest->room[i].returning); /* it is still there */
                ceiling_look(operation->source.device[i]);
        }
}

static void note_left(struct guest *guest, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;
        struct room_promise *returning = &guest->room[0].returning;

        if (!returning->room)
                return;
        if (done->bytes > 0 && is_alone(operation) &&
            neighbours_bytes(operation) == operation->neighbours_bytes)
                footprint_measure(guest, done->bytes);
        if (!done->is_held ||
            footprint_get(guest, 0, operation->source.device[0]) > returning->bytes)
                admission_expect_back(operation, guest, 0);
        else
                room_turn(returning);
        ceiling_look(operation->source.device[0]); /* gates may wait for what it has made free */
}

/*
 * The other devices of a process. The mover that calls the driver has a window of its own device (mover/room.h);
 * those of the others are told before the call, one after another in the order of parts, and behind it. They hold
 * the room of theirs: after the checkpoint, for the way back, and before the restore, until right before the call.
 */

static void end_lending_of(struct guest *guest, size_t part, enum mover_call call)
{
        struct device *device = guest->participant->job[part].lent;

        guest->participant->job[part].lent = NULL;
        if (device && device->mover)
                (void)mover_lend_end(device->mover, guest->pid, call, 0, NULL, NULL);
}

static void end_lending(struct guest *guest, enum mover_call call)
{
        for (size_t part = 0; part < guest->instance->n_parts; part++)
                end_lending_of(guest, part, call);
}

static void on_left(struct guest *guest)
{
        if (!guest->instance->operation->is_undoing)
                operation_pass(guest->instance->operation, "checkpointed");
        step(guest);
}

static void hold_left(struct guest *guest, size_t part);

static void on_left_held(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;
        struct guest *guest = job->guest;

        (void)mover;
        if (done->error && guest->room[job->part].returning.room)
                admission_expect_back(guest->instance->operation, guest, job->part);
        else
                room_turn(&guest->room[job->part].returning);
        ceiling_look(guest->instance->operation->source.device[job->part]); /* as in note_left() */
        hold_left(guest, job->part + 1);
}

/* By the mover that has lent its device, as the end of that, or by that of the source. */
static int ask_to_hold_left(struct guest *guest, size_t part, uint64_t bytes)
{
        struct device *lent = guest->participant->job[part].lent;
        struct mover *mover;
        int r = device_get_mover(lent ? lent : guest->instance->operation->source.device[part],
                                 &mover);

        guest->participant->job[part].lent = NULL;
        if (r < 0)
                return r;
        return lent ? mover_lend_end(mover, guest->pid, MOVER_CALL_CHECKPOINT, bytes, on_left_held,
                                     &guest->participant->job[part])
                    : mover_hold(mover, guest->pid, bytes, on_left_held,
                                 &guest->participant->job[part]);
}

static void hold_left(struct guest *guest, size_t part)
{
        struct operation *operation = guest->instance->operation;

        for (; part < guest->instance->n_parts; part++) {
                struct room_promise *returning = &guest->room[part].returning;
                uint64_t bytes = returning->room && !operation->is_undoing ? returning->bytes : 0;

                if (bytes == 0 && !guest->participant->job[part].lent)
                        continue;
                if (ask_to_hold_left(guest, part, bytes) == 0)
                        return;
                if (bytes > 0)
                        admission_expect_back(operation, guest, part);
        }
        on_left(guest);
}

/* NULL: it is that of the mover that calls. */
static struct device *find_lender(const struct guest *guest, size_t part)
{
        struct device *device = guest->context.place.device[part];

        return device == guest->instance->operation->source.device[0] ? NULL : device;
}

static void on_suspended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error == 0 || has_no_context(guest, done)) {
                count_time(guest->instance->operation, done);
                context_settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context.place);
                note_left(guest, done);
                /* In an undo the process is on the target, and the mover of the source calls. */
                end_lending_of(guest, 0, MOVER_CALL_CHECKPOINT);
                hold_left(guest, 1);
                return;
        }
        end_lending(guest, MOVER_CALL_CHECKPOINT);
        guest->context.is_spoiled |= operation_is_spoiled(done->call, done->driver_code);
        if (done->error == -EINPROGRESS)
                silence_begin(guest, guest->instance->operation->source.device[0], done->call);
        if (done->is_untouched)
                context_step_back(guest);
        else if (done->process_state == 0)
                context_settle(guest, GUEST_CONTEXT_RUNNING, guest->context.place);
        else if (done->process_state == CU_PROCESS_STATE_FAILED)
                context_settle(guest, GUEST_CONTEXT_LOST, guest->context.place);
        fail(guest, guest->instance->operation->source.device[0], done);
}

/* Somebody has taken what was to be the way back; he may not stay. */

#define ROOM_LOOK_US   100000
#define HALTED_LOOK_US 20000

/* False: that was long enough. */
static bool waits_for_room(struct guest *guest, const struct device *device)
{
        const struct operation *operation = guest->instance->operation;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (guest->context.room_deadline_ns == 0) {
                guest->context.room_deadline_ns =
                        now_ns + operation->request.timeout_ms * 1000000ull;
                log_event_of(guest->payer, LOG_LEVEL_WARNING, "waiting for room to go back",
                             "vgpu=%s pid=%d device=%u", guest->instance->name, (int)guest->pid,
                             device->index);
        }
        return now_ns < guest->context.room_deadline_ns && context_wait(guest, ROOM_LOOK_US);
}

/* What came of it; @device: whose mover says so. */
static void end_resume(struct guest *guest, const struct device *device,
                       const struct mover_done *done)
{
        end_lending(guest, MOVER_CALL_RESTORE);
        context_open_ceilings(guest);
        if (done->is_untouched) {
                context_step_back(guest);
        } else if (done->process_state == CU_PROCESS_STATE_CHECKPOINTED) {
                bool was_detour = !place_is_equal(&guest->context.target,
                                                  &guest->participant->context.wanted);

                context_settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context.place);
                if (was_detour) { /* it need not have gone there */
                        step(guest);
                        return;
                }
                if (done->error == -ENOSPC && guest->instance->operation->is_undoing &&
                    waits_for_room(guest, device))
                        return;
        } else if (done->process_state == CU_PROCESS_STATE_FAILED) {
                context_settle(guest, GUEST_CONTEXT_LOST, guest->context.place);
        }
        fail(guest, device, done);
}

static void on_resumed(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error == -EINPROGRESS)
                silence_begin(guest, guest->context.target.device[0], done->call);
        if (done->error != 0 && !has_no_context(guest, done)) {
                end_resume(guest, guest->context.target.device[0], done);
                return;
        }
        end_lending(guest, MOVER_CALL_RESTORE);
        count_time(guest->instance->operation, done);
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                room_turn(restore_room_promise(guest, i, guest->context.target.device[i]));
        context_open_ceilings(guest);
        context_settle(guest, GUEST_CONTEXT_RUNNING, guest->context.target);
        step(guest);
}

static void fail_unasked(struct guest *guest, const struct device *device, int error)
{
        const struct mover_done failed = { .error = error };

        context_step_back(guest);
        fail(guest, device, &failed);
}

/*
 * So long each call of the driver is waited for: others wait for its device meanwhile, so it is not for a client to say.
 * An operation that is given next to no time does not give up a call that takes as long as such calls do; and what only
 * the driver can move takes its time: it was never seen to be slower. The process says how much that is, and no more is
 * believed than devices have.
 */
#define CALL_LEAST_MS     5000u
#define CALL_MOST_MS      10000u
#define CALL_BYTES_PER_MS (GIB / 1000)

static uint64_t get_bytes_of_call(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        uint64_t most = 0;
        struct page_use use;

        for (size_t i = 0; i < guest->instance->n_parts; i++)
                most += operation->source.device[i]->memory_total;
        guest_get_use(guest, &use);
        return use.fixed < most ? use.fixed : most;
}

static uint32_t get_call_ms(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        uint32_t least = operation->is_undoing ? CALL_MOST_MS : CALL_LEAST_MS;
        uint32_t ms = operation->request.timeout_ms < CALL_MOST_MS ? operation->request.timeout_ms
                                                                   : CALL_MOST_MS;

        return (ms > least ? ms : least) + (uint32_t)(get_bytes_of_call(guest) / CALL_BYTES_PER_MS);
}

/* By a mover of the devices that it leaves: that of another may still be starting. */
static void call_suspend(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct mover_checkpoint_options options = { .timeout_ms = operation->request.timeout_ms,
                                                    .call_ms = get_call_ms(guest) };
        struct device *source = operation->source.device[0];
        struct mover *mover;
        int r = device_get_mover(source, &mover);

        if (!operation->is_undoing)
                options.bytes = guest->room[0].returning.bytes;
        if (r == 0)
                r = mover_checkpoint(mover, guest->pid, guest->pidfd, MOVER_CHECKPOINT_SUSPEND,
                                     &options, on_suspended, guest);
        if (r < 0) {
                end_lending(guest, MOVER_CALL_CHECKPOINT);
                fail_unasked(guest, source, r);
        }
}

static void lend(struct guest *guest, size_t part);

static void on_lent(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;
        struct guest *guest = job->guest;

        (void)mover;
        if (done->error == -ENOSPC) {
                end_lending(guest, MOVER_CALL_CHECKPOINT);
                fail_unasked(guest, guest->context.place.device[job->part], -ENOSPC);
                return;
        }
        job->lent = done->error == 0 ? guest->context.place.device[job->part] : NULL;
        lend(guest, job->part + 1);
}

/* Of part @part and those behind it. Without its mover the driver is asked all the same: it may have room. */
static void lend(struct guest *guest, size_t part)
{
        struct mover *mover;

        for (; part < guest->instance->n_parts && !guest_is_dead(guest); part++) {
                struct device *device = find_lender(guest, part);

                if (device && device_get_mover(device, &mover) == 0 &&
                    mover_lend(mover, guest->pid, MOVER_CALL_CHECKPOINT, on_lent,
                               &guest->participant->job[part]) == 0)
                        return;
        }
        call_suspend(guest);
}

/*
 * What the checkpoint will make free is promised, and the gates know it, before the driver is asked. True: they do
 * not yet.
 */
static bool waits_for_ceilings(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        bool is_known = true;

        if (operation->is_undoing)
                return false;
        if (guest->room[0].returning.state != ROOM_LEAVING)
                expect_back(guest);
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                is_known &= ceiling_is_known(operation->source.device[i]);
        return !is_known && context_waits_for_gates(guest);
}

static void suspend(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r;

        if (waits_for_ceilings(guest))
                return;
        guest->participant->context.asking_deadline_ns = 0;
        r = context_enter(guest, GUEST_CONTEXT_SUSPENDING, &place_nowhere);
        if (r < 0)
                fail_unasked(guest, operation->source.device[0], r);
        else
                lend(guest, 0);
}

/* The room is free from here on, but for those who were promised it. */
static struct room_promise *return_room(struct guest *guest, size_t part)
{
        struct device *device = guest->context.target.device[part];
        struct room_promise *promise = restore_room_promise(guest, part, device);

        room_return(promise);
        if (!ceiling_is_on(device))
                ceiling_look(device);
        return promise;
}

/* By a mover of the devices that it enters, which holds the room for it there. */
static void call_resume(struct guest *guest)
{
        struct device *target = guest->context.target.device[0];
        struct mover_pair pairs[MOVER_PAIRS_MAX];
        struct mover_checkpoint_options options = {
                .timeout_ms = guest->instance->operation->request.timeout_ms,
                .pairs = pairs,
                .n_pairs = context_make_pairs(&guest->context.place, &guest->context.target, pairs),
                .call_ms = get_call_ms(guest),
        };
        struct mover *mover;
        int r = device_get_mover(target, &mover);

        if (r == 0) {
                options.bytes = return_room(guest, 0)->bytes;
                r = mover_checkpoint(mover, guest->pid, guest->pidfd, MOVER_CHECKPOINT_RESUME,
                                     &options, on_resumed, guest);
        }
        if (r < 0) {
                end_lending(guest, MOVER_CALL_RESTORE);
                fail_unasked(guest, target, r);
        }
}

static void hold_target(struct guest *guest, size_t part);

/* It lacks nothing, if the process has it: a mover or a manager may have died after the restore. */
static void on_state(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;
        const struct mover_done none = { .error = -ENOSPC,
                                         .process_state = CU_PROCESS_STATE_CHECKPOINTED };

        (void)mover;
        if (done->error == 0 && done->process_state == CU_PROCESS_STATE_CHECKPOINTED)
                end_resume(job->guest, job->guest->context.target.device[job->part], &none);
        else
                call_resume(job->guest);
}

static void fail_to_hold(struct guest *guest, size_t part, int error)
{
        end_lending(guest, MOVER_CALL_RESTORE);
        fail_unasked(guest, guest->context.target.device[part], error);
}

static void look_at_state(struct guest_job *job, struct mover *mover)
{
        struct guest *guest = job->guest;
        const struct mover_checkpoint_options options = { .timeout_ms = 1,
                                                          .call_ms = get_call_ms(guest) };
        int r = mover_checkpoint(mover, guest->pid, guest->pidfd, MOVER_CHECKPOINT_STATE, &options,
                                 on_state, job);

        if (r < 0)
                fail_to_hold(guest, job->part, r);
}

static void on_room_made(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover;
        if (done->error) {
                fail_to_hold(job->guest, job->part, done->error);
                return;
        }
        job->lent = job->guest->context.target.device[job->part];
        hold_target(job->guest, job->part + 1);
}

static void on_room_held(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;
        int r;

        if (done->error == -ENOMEM) {
                look_at_state(job, mover);
                return;
        }
        if (done->error) {
                fail_to_hold(job->guest, job->part, done->error);
                return;
        }
        (void)return_room(job->guest, job->part);
        r = mover_lend(mover, job->guest->pid, MOVER_CALL_RESTORE, on_room_made, job);
        if (r < 0)
                fail_to_hold(job->guest, job->part, r);
}

/* Of part @part and those behind it. */
static void hold_target(struct guest *guest, size_t part)
{
        struct device *device;
        struct mover *mover;
        int r;

        if (part == guest->instance->n_parts || guest_is_dead(guest)) {
                call_resume(guest);
                return;
        }
        device = guest->context.target.device[part];
        r = device_get_mover(device, &mover);
        if (r == 0)
                r = mover_hold(mover, guest->pid, restore_room_promise(guest, part, device)->bytes,
                               on_room_held, &guest->participant->job[part]);
        if (r < 0)
                fail_to_hold(guest, part, r);
}

static void resume(struct guest *guest, const struct place *target)
{
        int r;

        if (context_waits_for_those_who_ask(guest, target))
                return;
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                (void)restore_room_promise(guest, i, target->device[i]);
        r = context_enter(guest, GUEST_CONTEXT_RESUMING, target);
        if (r < 0) {
                fail_unasked(guest, target->device[0], r);
                return;
        }
        context_limit_closing(guest);
        hold_target(guest, 1);
}

static void give_up(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        if (guest->context.state == GUEST_CONTEXT_RESUMING) {
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

/*
 * The driver's thread in a process that is stopped or frozen does not answer, and no time-out of the driver's passes
 * meanwhile. So the driver is not asked before the process runs again. False: that was long enough.
 */
static bool waits_until_it_runs(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        context_open_ceilings(guest);
        if (guest->participant->context.halted_deadline_ns == 0) {
                guest->participant->context.halted_deadline_ns =
                        now_ns + operation->request.timeout_ms * 1000000ull;
                log_event_of(guest->payer, LOG_LEVEL_WARNING,
                             "waiting for a process to run before the driver is asked",
                             "vgpu=%s pid=%d operation=%s", guest->instance->name, (int)guest->pid,
                             operation->kind->name);
        }
        return now_ns < guest->participant->context.halted_deadline_ns &&
               context_wait(guest, HALTED_LOOK_US);
}

/* Its gate comes back once the process runs: then what is left to undo is undone. */
static void fail_halted(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        broadcast_fail_stopped(operation, guest);
        if (operation->is_undoing && guest->gate)
                gate_link_hang_up(guest->gate);
        operation_leave_guest(operation, guest);
        end(guest);
}

/* It is undone once the call has returned. */
static void fail_silent(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        operation_fail_silent(operation, guest);
        operation_leave_guest(operation, guest);
        end(guest);
}

static void step(struct guest *guest)
{
        struct context_plan next =
                context_plan(guest->context.state, &guest->context.place, &guest->context.target,
                             &guest->participant->context.wanted);

        if (guest_is_dead(guest) || next.action == CONTEXT_ACTION_NOTHING)
                end(guest);
        else if (silence_lasts(guest))
                fail_silent(guest);
        else if (next.action != CONTEXT_ACTION_GIVE_UP && process_is_stopped(guest->pid)) {
                if (!waits_until_it_runs(guest))
                        fail_halted(guest);
        } else if (next.action == CONTEXT_ACTION_SUSPEND)
                suspend(guest);
        else if (next.action == CONTEXT_ACTION_RESUME)
                resume(guest, &next.to);
        else
                give_up(guest);
}

void contexts_move(struct operation *operation, struct guest *guest, const struct place *wanted)
{
        operation_begin_part(operation);
        guest->participant->context.again = step;
        guest->participant->context.wanted = *wanted;
        guest->context.room_deadline_ns = 0;
        guest->participant->context.asking_deadline_ns = 0;
        guest->participant->context.halted_deadline_ns = 0;
        step(guest);
}
