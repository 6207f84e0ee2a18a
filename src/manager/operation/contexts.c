/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/contexts.h"

#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "base/process-maps.h"
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
#include "manager/model/recovery.h"
#include "manager/model/restore-room.h"
#include "manager/model/silence.h"
#include "manager/operation/admission.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/handover.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

static void step(struct guest *guest);

/* The driver has answered, or was not asked; or it takes too long. */
static void open_ceilings(struct guest *guest)
{
        guest->participant->context.closed_timer =
                sd_event_source_disable_unref(guest->participant->context.closed_timer);
        for (size_t i = 0; i < place_count(&guest->participant->context.closed); i++)
                ceiling_open(guest->participant->context.closed.device[i]);
        guest->participant->context.closed = place_nowhere;
        guest->participant->context.asking_deadline_ns = 0;
}

static void end(struct guest *guest)
{
        open_ceilings(guest);
        operation_end_part(guest->instance->operation);
}

/* From what the store says, would the next manager, who undoes the same, do what we are about to do? */
static bool is_foreseen(const struct guest *guest, enum context_action action,
                        const struct place *target)
{
        struct context_plan next =
                context_plan(guest->context.stored.state, &guest->context.stored.place,
                             &guest->context.stored.target, &guest->participant->context.wanted);

        return next.action == action && place_is_equal(&next.from, &guest->context.place) &&
               place_is_equal(&next.to, target);
}

/*
 * Takes the moment down: the driver's state alone does not say on which device. A full disk does not
 * keep us from undoing what need not be taken down.
 */
static int enter(struct guest *guest, enum guest_context context, const struct place *target)
{
        struct operation *operation = guest->instance->operation;
        int r;

        guest->participant->context.before.context = guest->context.state;
        guest->participant->context.before.target = guest->context.target;
        context_become(&guest->context, context, target);
        r = recovery_store_process(guest);
        if (r == 0 ||
            (operation->is_undoing &&
             is_foreseen(guest,
                         place_is_nowhere(target) ? CONTEXT_ACTION_SUSPEND : CONTEXT_ACTION_RESUME,
                         target)))
                return 0;
        operation_fail_store(operation, r, "noting what the driver is asked for");
        return r;
}

/* The call has not been made, or did nothing: so there is nothing to undo. */
static void step_back(struct guest *guest)
{
        context_become(&guest->context, guest->participant->context.before.context,
                       &guest->participant->context.before.target);
        (void)recovery_store_process(guest);
}

static void settle(struct guest *guest, enum guest_context context, struct place place)
{
        /* After that the driver answers imports with 3. */
        guest->takes_no_gifts |= !place_is_equal(&guest->context.place, &place);
        context_become(&guest->context, context, &place_nowhere);
        guest->context.place = place;
        restore_room_forget(guest);
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

/* The driver may fail on a process that is being killed, or by exec(), a little before the loop sees its end. */
static bool has_died(const struct guest *guest, const struct mover_done *done)
{
        uint64_t start_time;

        return done->error == -ESRCH || guest_is_replaced(guest) ||
               process_get_start_time(guest->pid, &start_time) == -ESRCH;
}

/* A profiler that was used once leaves the process so for ever: the driver answers this to its lock. */
static void fail_unsupported(struct operation *operation, const struct guest *guest)
{
        if (process_maps(guest->pid, "libcupti.so"))
                operation_fail(
                        operation, -EOPNOTSUPP, "NotMovable",
                        "it runs on; start it without torch.profiler, Nsight or whatever uses CUPTI",
                        "process %d (%.40s) has a profiler in it (CUPTI), and the driver cannot "
                        "checkpoint a process in which one was used",
                        (int)guest->pid, guest->name);
        else
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               "the driver cannot checkpoint e.g. managed memory",
                               "process %d (%.40s) holds something that cannot be suspended",
                               (int)guest->pid, guest->name);
}

static void fail(struct guest *guest, const struct device *device, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;
        bool is_dead = has_died(guest, done);

        if (done->error == -ECONNRESET)
                operation_lost_mover(operation, device);
        else if (is_dead)
                (void)0; /* it died; what is left of it is buried at the end */
        else if (guest->context.state == GUEST_CONTEXT_LOST)
                operation_lose_guest(operation, guest);
        else if (done->error == -EINPROGRESS)
                operation_fail_silent(operation, guest);
        else if (done->driver_code == CUDA_ERROR_DEINITIALIZED)
                operation_let_go_guest(operation, guest, "it is ending: its driver has ended");
        else if (done->error == -ENOSPC && !place_is_nowhere(&guest->participant->context.wanted))
                lack_fail_context(operation, device, guest);
        else if (done->error == -ENOSPC)
                operation_fail(operation, -ENOSPC, "NoRoom",
                               "free some memory there, or end a program; it runs on",
                               "device %u is full to the last: the driver needs some MiB of it to "
                               "checkpoint process %d (%.40s)",
                               device->index, (int)guest->pid, guest->name);
        else if (done->error == -ETIMEDOUT)
                operation_fail(operation, -ETIMEDOUT, "TimedOut",
                               "try again with a longer --timeout",
                               "process %d did not come to rest within %u ms", (int)guest->pid,
                               operation->request.timeout_ms);
        else if (done->driver_code == CUDA_ERROR_NOT_SUPPORTED)
                fail_unsupported(operation, guest);
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
                settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context.place);
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
                step_back(guest);
        else if (done->process_state == 0)
                settle(guest, GUEST_CONTEXT_RUNNING, guest->context.place);
        else if (done->process_state == CU_PROCESS_STATE_FAILED)
                settle(guest, GUEST_CONTEXT_LOST, guest->context.place);
        fail(guest, guest->instance->operation->source.device[0], done);
}

/* Somebody has taken what was to be the way back; he may not stay. */

#define ROOM_LOOK_US   100000
#define ASKING_LOOK_US 2000
#define HALTED_LOOK_US 20000

/*
 * So long a restore waits for the gates: a call of the driver takes milliseconds, a gate waits 3 s for its ceiling,
 * and a guest that says for ever that it asks is no reason for more.
 */
#define ASKING_MAX_MS 2500u

static int on_room_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        guest->participant->context.timer =
                sd_event_source_disable_unref(guest->participant->context.timer);
        step(guest);
        return 0;
}

static bool look_again(struct guest *guest)
{
        return sd_event_add_time_relative(guest->instance->manager->event,
                                          &guest->participant->context.timer, CLOCK_MONOTONIC,
                                          ASKING_LOOK_US, 1000, on_room_time, guest) >= 0;
}

/* False: that was long enough. */
static bool waits_for_gates(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        uint32_t ms = operation->request.timeout_ms < ASKING_MAX_MS ? operation->request.timeout_ms
                                                                    : ASKING_MAX_MS;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (guest->participant->context.asking_deadline_ns == 0)
                guest->participant->context.asking_deadline_ns = now_ns + ms * 1000000ull;
        return now_ns < guest->participant->context.asking_deadline_ns && look_again(guest);
}

/* All at once: no two wait for each other. False: it is the gates' turn on one of them. */
static bool close_ceilings(struct guest *guest, const struct place *place)
{
        if (!place_is_nowhere(&guest->participant->context.closed))
                return true;
        for (size_t i = 0; i < place_count(place); i++)
                if (!ceiling_may_close(place->device[i]))
                        return false;
        for (size_t i = 0; i < place_count(place); i++)
                ceiling_close(place->device[i]);
        guest->participant->context.closed = *place;
        return true;
}

static uint64_t sum_asked(const struct guest *guest)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < place_count(&guest->participant->context.closed); i++)
                sum += ceiling_get_asked(guest->participant->context.closed.device[i],
                                         guest->instance);
        return sum;
}

/*
 * Before a restore: no gate begins to take memory until the driver has answered, and those that were let through
 * before, and are asking the driver, could get what the mover lets go. Gates of its own vGPU are closed, and ask
 * nothing before all are back. False: none asks any more; or that was long enough.
 */
static bool waits_for_those_who_ask(struct guest *guest, const struct place *target)
{
        uint64_t asked;

        if (!close_ceilings(guest, target) && waits_for_gates(guest))
                return true;
        asked = sum_asked(guest);
        if (asked == 0)
                return false;
        if (guest->participant->context.asking_deadline_ns == 0)
                log_event_of(guest->payer, LOG_LEVEL_INFO,
                             guest->instance->operation->is_undoing
                                     ? "waiting for those who ask for memory before going back"
                                     : "waiting for those who ask for memory before coming back",
                             "vgpu=%s pid=%d bytes=%llu", guest->instance->name, (int)guest->pid,
                             (unsigned long long)asked);
        return waits_for_gates(guest);
}

/*
 * A call that takes longer than they ever do is waited for with the gates let on: what it was promised is kept from them
 * then, which is as much as its process was seen to take. For a gate gives up after 3 s.
 */
#define CLOSED_CALL_NS  1500000000u
#define CLOSED_LEAST_NS 250000000u
#define CLOSED_MOST_NS  2500000000u

static uint64_t find_closed_ns(const struct guest *guest)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC), ns = CLOSED_CALL_NS;

        for (size_t i = 0; i < place_count(&guest->participant->context.closed); i++) {
                uint64_t age_ns =
                        now_ns - guest->participant->context.closed.device[i]->ceiling.closed_ns;

                if (age_ns + CLOSED_LEAST_NS >= CLOSED_MOST_NS)
                        return CLOSED_LEAST_NS;
                if (ns > CLOSED_MOST_NS - age_ns)
                        ns = CLOSED_MOST_NS - age_ns;
        }
        return ns;
}

static int on_closed_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        log_event_of(guest->payer, LOG_LEVEL_WARNING,
                     "a restore takes long: allocations beside it wait no longer", "vgpu=%s pid=%d",
                     guest->instance->name, (int)guest->pid);
        open_ceilings(guest);
        return 0;
}

static void limit_closing(struct guest *guest)
{
        if (place_is_nowhere(&guest->participant->context.closed))
                return;
        (void)sd_event_add_time_relative(guest->instance->manager->event,
                                         &guest->participant->context.closed_timer, CLOCK_MONOTONIC,
                                         find_closed_ns(guest) / 1000, 1000, on_closed_time, guest);
}

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
        return now_ns < guest->context.room_deadline_ns &&
               sd_event_add_time_relative(guest->instance->manager->event,
                                          &guest->participant->context.timer, CLOCK_MONOTONIC,
                                          ROOM_LOOK_US, 1000, on_room_time, guest) >= 0;
}

/* What came of it; @device: whose mover says so. */
static void end_resume(struct guest *guest, const struct device *device,
                       const struct mover_done *done)
{
        end_lending(guest, MOVER_CALL_RESTORE);
        open_ceilings(guest);
        if (done->is_untouched) {
                step_back(guest);
        } else if (done->process_state == CU_PROCESS_STATE_CHECKPOINTED) {
                bool was_detour = !place_is_equal(&guest->context.target,
                                                  &guest->participant->context.wanted);

                settle(guest, GUEST_CONTEXT_SUSPENDED, guest->context.place);
                if (was_detour) { /* it need not have gone there */
                        step(guest);
                        return;
                }
                if (done->error == -ENOSPC && guest->instance->operation->is_undoing &&
                    waits_for_room(guest, device))
                        return;
        } else if (done->process_state == CU_PROCESS_STATE_FAILED) {
                settle(guest, GUEST_CONTEXT_LOST, guest->context.place);
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
        open_ceilings(guest);
        settle(guest, GUEST_CONTEXT_RUNNING, guest->context.target);
        step(guest);
}

static bool has_part(const struct place *place, const struct device *device, size_t *ret_part)
{
        for (size_t i = 0; i < place_count(place); i++)
                if (place->device[i] == device) {
                        *ret_part = i;
                        return true;
                }
        return false;
}

/*
 * The driver wants a permutation of all devices of the machine. What is in the way of a process goes where
 * the chain of those that leave begins; so two devices change places.
 */
static const struct device *image_of(const struct device *device, const struct place *from,
                                     const struct place *to)
{
        size_t part;

        if (has_part(from, device, &part))
                return to->device[part];
        while (has_part(to, device, &part))
                device = from->device[part];
        return device;
}

static size_t make_pairs(const struct place *from, const struct place *to,
                         struct mover_pair pairs[MOVER_PAIRS_MAX])
{
        const struct manager *manager = from->device[0]->manager;
        size_t n = 0;

        if (place_is_equal(from, to))
                return 0;
        for (; n < manager->n_devices && n < MOVER_PAIRS_MAX; n++) {
                const struct device *old = &manager->device[n];
                const struct device *new = image_of(old, from, to);

                memcpy(pairs[n].old_uuid, old->uuid_bytes, sizeof(pairs[n].old_uuid));
                memcpy(pairs[n].new_uuid, new->uuid_bytes, sizeof(pairs[n].new_uuid));
        }
        return n;
}

static void fail_unasked(struct guest *guest, const struct device *device, int error)
{
        const struct mover_done failed = { .error = error };

        step_back(guest);
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

        for (; part < guest->instance->n_parts && !guest->is_dead; part++) {
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
                is_known &= !operation->source.device[i]->ceiling.is_looking;
        return !is_known && waits_for_gates(guest);
}

static void suspend(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r;

        if (waits_for_ceilings(guest))
                return;
        guest->participant->context.asking_deadline_ns = 0;
        r = enter(guest, GUEST_CONTEXT_SUSPENDING, &place_nowhere);
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
                .n_pairs = make_pairs(&guest->context.place, &guest->context.target, pairs),
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

        if (part == guest->instance->n_parts || guest->is_dead) {
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

        if (waits_for_those_who_ask(guest, target))
                return;
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                (void)restore_room_promise(guest, i, target->device[i]);
        r = enter(guest, GUEST_CONTEXT_RESUMING, target);
        if (r < 0) {
                fail_unasked(guest, target->device[0], r);
                return;
        }
        limit_closing(guest);
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

        open_ceilings(guest);
        if (guest->participant->context.halted_deadline_ns == 0) {
                guest->participant->context.halted_deadline_ns =
                        now_ns + operation->request.timeout_ms * 1000000ull;
                log_event_of(guest->payer, LOG_LEVEL_WARNING,
                             "waiting for a process to run before the driver is asked",
                             "vgpu=%s pid=%d operation=%s", guest->instance->name, (int)guest->pid,
                             operation->kind->name);
        }
        return now_ns < guest->participant->context.halted_deadline_ns &&
               sd_event_add_time_relative(guest->instance->manager->event,
                                          &guest->participant->context.timer, CLOCK_MONOTONIC,
                                          HALTED_LOOK_US, 1000, on_room_time, guest) >= 0;
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

        if (guest->is_dead || next.action == CONTEXT_ACTION_NOTHING)
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
        guest->participant->context.wanted = *wanted;
        guest->context.room_deadline_ns = 0;
        guest->participant->context.asking_deadline_ns = 0;
        guest->participant->context.halted_deadline_ns = 0;
        step(guest);
}
