/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/admission.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "manager/model/ceiling.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/promise.h"
#include "manager/model/restore-room.h"
#include "manager/operation/admission-queue.h"
#include "manager/operation/copies.h"
#include "manager/operation/fetching.h"
#include "manager/operation/handover.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* What staging leaves free, for others on the device. */
#define STAGE_RESERVE      (1024 * MIB)
#define STAGE_RESERVE_PART 16

/* What others ask the driver for is there in a moment, or is not believed for long. */
#define PENDING_LOOK_US 100000

/* The movers of the vgpud before end with it, but not at once: they may be in a call of the driver. */
#define FORMER_NS 5000000000u

static void ask_driver(struct operation *operation);
static void look(struct operation *operation);
static void start_timer(struct operation *operation);

#define BIT(state) (1u << ADMISSION_##state)

static const uint32_t transitions[] = {
        [ADMISSION_IDLE] = BIT(IDLE) | BIT(QUEUED) | BIT(LOOKING),
        [ADMISSION_QUEUED] = BIT(IDLE) | BIT(LOOKING) | BIT(AWAITS_TURN),
        [ADMISSION_LOOKING] = BIT(IDLE) | BIT(QUEUED),
        [ADMISSION_AWAITS_TURN] = BIT(IDLE),
};

static void admission_set_state(struct operation *operation, enum admission_state state)
{
        assert(transitions[operation->admission.state] & 1u << state);
        operation->admission.state = state;
}

/* The parts of the target are asked for one after another; this is the one whose turn it is. */
static struct device *device_of(const struct operation *operation)
{
        return operation->target.device[operation->admission.part];
}

/* What is needed. */

static bool needs_restore(const struct operation *operation, const struct guest *guest)
{
        return guest->context.state != GUEST_CONTEXT_RUNNING ||
               !place_is_equal(&guest->context.place, &operation->target);
}

static uint64_t memory_bytes(const struct guest *guest, size_t part)
{
        struct page_use use;

        if (guest->n_memory > 0)
                return guest_sum_memory(guest, part);
        guest_get_use_of(guest, &guest->instance->part[part], &use);
        return use.movable;
}

/* Returns what is lacking; what the mover holds of it already will not be free again. */
static uint64_t ask(struct operation *operation, struct room_promise *promise, uint64_t bytes)
{
        struct room *room = &device_of(operation)->room;
        uint64_t had = room_is_to(promise, room) ? promise->bytes : 0;

        if (had >= bytes)
                return 0;
        operation->admission.held += promise->state == ROOM_MEMORY ? had : 0;
        room_promise(room, promise, bytes);
        return bytes - had;
}

/* Makes the promises, as yet unchecked: false: nothing is lacking. */
static bool ask_all(struct operation *operation)
{
        size_t part = operation->admission.part;
        uint64_t sum = 0;
        struct guest *guest;

        operation->admission.held = 0;
        operation_for_each_guest(guest, operation) {
                struct guest_room *room = &guest->room[part];

                if (needs_restore(operation, guest))
                        sum += ask(operation, &room->coming,
                                   footprint_get(guest, part, device_of(operation)));
                sum += ask(operation, &room->arriving, memory_bytes(guest, part));
        }
        operation->admission.needed = sum;
        return sum > 0;
}

static void let_go(struct device *device, const struct guest *guest)
{
        if (device->mover && !mover_is_lost(device->mover))
                (void)mover_hold(device->mover, guest->pid, 0, NULL, NULL);
}

static void forget(struct operation *operation, size_t part)
{
        struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link) {
                struct guest_room *room = &guest->room[part];

                if (room->coming.state == ROOM_MEMORY)
                        let_go(operation->target.device[part], guest);
                restore_room_end(guest, part, &room->coming);
                room_forget(&room->arriving);
        }
        room_forget(&operation->staging[part]);
}

/* Who waits. */

/* May others be told to leave for it? By demand that is asked before the operation begins. */
static bool has_turn(const struct operation *operation)
{
        const struct place place = instance_place(operation->instance);

        return operation->kind->number == OPERATION_RESUME && !operation->request.is_by_itself &&
               !operation->request.group && place_is_equal(&operation->target, &place) &&
               promise_is_any_overcommitted(operation->instance);
}

/* Is another operation at work on its device, which may leave or take less than it was promised? */
static bool has_others(const struct operation *operation)
{
        const struct device *device = device_of(operation);
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link) {
                const struct operation *other = instance->operation;
                bool waits = other && (admission_queue_has(other) ||
                                       other->admission.state == ADMISSION_AWAITS_TURN);

                if (other && other != operation && !waits && operation_is_at(other, device))
                        return true;
        }
        return false;
}

static void look_at_first(struct device *device)
{
        struct operation *first = admission_queue_get_first(device);

        if (first && first->admission.state == ADMISSION_QUEUED)
                look(first);
}

static int on_look_again(sd_event_source *source, uint64_t usec, void *userdata);

static bool look_in(struct operation *operation, uint64_t in_us)
{
        return operation->admission.again ||
               sd_event_add_time_relative(operation->instance->manager->event,
                                          &operation->admission.again, CLOCK_MONOTONIC, in_us, 1000,
                                          on_look_again, operation) >= 0;
}

static void leave_queue(struct operation *operation)
{
        admission_set_state(operation, ADMISSION_IDLE);
        operation->admission.timer = sd_event_source_disable_unref(operation->admission.timer);
        operation->admission.again = sd_event_source_disable_unref(operation->admission.again);
        list_remove(&operation->admission.link);
}

/* Of what was not asked for yet, the device that comes first: so no two wait for each other. */
static bool find_next(struct operation *operation)
{
        bool has_any = false;

        for (size_t i = 0; i < operation->instance->n_parts; i++) {
                if (operation->admission.is_asked[i] ||
                    (has_any && operation->target.device[i]->index > device_of(operation)->index))
                        continue;
                operation->admission.part = i;
                has_any = true;
        }
        if (has_any)
                operation->admission.is_asked[operation->admission.part] = true;
        return has_any;
}

static void begin(struct operation *operation)
{
        struct device *device = device_of(operation);

        if (!operation->admission.can_wait) { /* those in the queue wait for it */
                look(operation);
                return;
        }
        forget(operation, operation->admission.part);
        admission_set_state(operation, ADMISSION_QUEUED);
        list_append(&device->admissions, &operation->admission.link);
        start_timer(operation);
        if (admission_queue_get_first(device) == operation)
                look(operation);
        else if (admission_queue_has_strangers_behind(admission_queue_get_first(device)))
                (void)look_in(admission_queue_get_first(device), ADMISSION_QUEUE_FIRST_MOST_US);
}

/* Those that lack nothing are passed over. */
static void ask_next(struct operation *operation)
{
        while (find_next(operation))
                if (ask_all(operation)) {
                        begin(operation);
                        return;
                }
        operation_end_part(operation);
}

/* The end of its turn; the next one's, and the next part's. */
static void end(struct operation *operation)
{
        struct device *device = device_of(operation);

        if (operation->admission.waiting_since_ns)
                operation->measured.room_ns +=
                        clock_now(CLOCK_MONOTONIC) - operation->admission.waiting_since_ns;
        operation->admission.waiting_since_ns = 0;
        operation->instance->residency.waits_for_room = false;
        if (operation->error)
                ceiling_look(device);
        leave_queue(operation);
        if (operation->error)
                operation_end_part(operation);
        else
                ask_next(operation);
        look_at_first(device);
}

/* What was promised to it and is no memory yet. */
static uint64_t sum_own(const struct operation *operation)
{
        size_t part = operation->admission.part;
        const struct room *room = &device_of(operation)->room;
        const struct room_promise *staging = &operation->staging[part];
        uint64_t sum =
                room_is_to(staging, room) && staging->state == ROOM_OWED ? staging->bytes : 0;
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                const struct guest_room *own = &guest->room[part];

                if (room_is_to(&own->coming, room) && own->coming.state == ROOM_OWED)
                        sum += own->coming.bytes;
                if (room_is_to(&own->arriving, room) && own->arriving.state == ROOM_OWED)
                        sum += own->arriving.bytes;
        }
        return sum;
}

/* What is held for it until its turn comes is not others'. */
static uint64_t get_held(const struct operation *operation)
{
        const struct room_promise *promise =
                &operation->instance->part[operation->admission.part].residency.promise;

        return room_is_to(promise, &device_of(operation)->room) ? promise->bytes : 0;
}

/* Of an overcommitted device, where others were to leave for it. Its time began with it. */
static void refuse_turn(struct operation *operation, uint64_t needed)
{
        lack_fail_turn(operation, operation->admission.part, needed,
                       clock_now(CLOCK_MONOTONIC) - operation->measured.started_ns);
        end(operation);
}

static void refuse(struct operation *operation)
{
        const struct device *device = device_of(operation);
        uint64_t own = sum_own(operation);
        struct lack lack = {
                .free = operation->admission.free,
                .owed = operation->admission.owed,
                .asked = operation->admission.look.pending,
                .needed = own > 0 ? own : operation->admission.needed,
                .is_refused = operation->admission.outcome == ADMISSION_FULL,
        };

        if (operation->admission.patience == ADMISSION_TIMED_OUT && has_turn(operation)) {
                refuse_turn(operation, lack.needed);
                return;
        }
        operation->admission.was_passed = lack.free >= lack.needed;
        lack_fail(operation, device, &lack);
        end(operation);
}

void admission_note_lack(struct operation *operation, size_t part, uint64_t free, uint64_t owed,
                         uint64_t needed)
{
        if (operation->admission.state != ADMISSION_AWAITS_TURN)
                return;
        operation->admission.part = part;
        operation->admission.free = free;
        operation->admission.owed = owed;
        operation->admission.look.pending = ceiling_get_pending(device_of(operation));
        operation->admission.needed = needed;
}

static void give_up(struct operation *operation, enum admission_patience patience)
{
        if (!admission_queue_has(operation) && operation->admission.state != ADMISSION_AWAITS_TURN)
                return;
        operation->admission.timer = sd_event_source_disable_unref(operation->admission.timer);
        operation->admission.patience = patience;
        if (operation->admission.state != ADMISSION_LOOKING)
                refuse(operation);
}

void admission_give_up(struct operation *operation)
{
        give_up(operation, operation->admission.patience == ADMISSION_TIMED_OUT
                                   ? ADMISSION_TIMED_OUT
                                   : ADMISSION_LATE);
}

static int on_waited(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        give_up(userdata, ADMISSION_TIMED_OUT);
        return 0;
}

static void start_timer(struct operation *operation)
{
        if (!operation->admission.timer && operation->admission.patience == ADMISSION_PATIENT)
                (void)sd_event_add_time_relative(operation->instance->manager->event,
                                                 &operation->admission.timer, CLOCK_MONOTONIC,
                                                 (uint64_t)operation->request.timeout_ms * 1000, 0,
                                                 on_waited, operation);
}

/*
 * Outside of the queue: those that come by demand are not to wait for it. What it has on other devices already is
 * theirs, too, for as long as it waits.
 */
static void await_turn(struct operation *operation)
{
        admission_set_state(operation, ADMISSION_AWAITS_TURN);
        for (size_t i = 0; i < operation->instance->n_parts; i++) {
                forget(operation, i);
                ceiling_look(operation->target.device[i]);
        }
        operation->admission.again = sd_event_source_disable_unref(operation->admission.again);
        list_remove(&operation->admission.link);
        look_at_first(device_of(operation));
        observer_tell_instance(&operation->instance->manager->observers, operation->instance,
                               INSTANCE_AWAITS_TURN);
}

void admission_take_turn(struct operation *operation)
{
        admission_set_state(operation, ADMISSION_IDLE);
        memset(operation->admission.is_asked, 0, sizeof(operation->admission.is_asked));
        ask_next(operation);
}

static int on_look_again(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct operation *operation = userdata;

        (void)source, (void)usec;
        operation->admission.again = sd_event_source_disable_unref(operation->admission.again);
        if (operation->admission.state == ADMISSION_QUEUED)
                admission_queue_let_others_pass(operation);
        look_at_first(device_of(operation));
        return 0;
}

/* No operation's end tells when it has come out what others ask for. False: it lacks more than that. */
static bool look_again(struct operation *operation)
{
        return operation->admission.lacks_pending && look_in(operation, PENDING_LOOK_US);
}

/* What did not fit. */
static void wait_or_refuse(struct operation *operation)
{
        if (!operation->admission.can_wait) {
                refuse(operation);
                return;
        }
        admission_set_state(operation, ADMISSION_QUEUED);
        forget(operation, operation->admission.part);
        if (operation->admission.patience != ADMISSION_PATIENT ||
            (!has_turn(operation) && !look_again(operation) && !has_others(operation))) {
                refuse(operation);
                return;
        }
        if (!operation->admission.waiting_since_ns) {
                operation->admission.waiting_since_ns = clock_now(CLOCK_MONOTONIC);
                log_event_of(operation->instance->owner, LOG_LEVEL_INFO, "waiting for room",
                             "vgpu=%s operation=%s device=%u", operation->instance->name,
                             operation->kind->name, device_of(operation)->index);
        }
        operation->instance->residency.waits_for_room = true;
        if (has_turn(operation))
                await_turn(operation);
        else if (admission_queue_has_strangers_behind(operation))
                (void)look_in(operation, ADMISSION_QUEUE_FIRST_MOST_US);
        ceiling_look(device_of(operation));
}

/* Asking the driver. */

/* What is not free may be held by movers that are about to end. */
static bool has_just_begun(const struct manager *manager)
{
        return clock_now(CLOCK_MONOTONIC) - manager->began_ns < FORMER_NS;
}

static void fail(struct operation *operation, int error, const struct mover_done *done)
{
        if (operation->admission.outcome != ADMISSION_FULL)
                operation->admission.outcome = error == -ENOMEM ? ADMISSION_FULL : ADMISSION_FAILED;
        if (error == -ECONNRESET)
                operation_lost_mover(operation, device_of(operation));
        else if (error == -ENOMEM) {
                operation->admission.lacks_pending = has_just_begun(operation->instance->manager);
        } else if (done)
                operation_fail(operation, error, "DriverFailed", "look at it with nvidia-smi",
                               "device %u cannot be used: %.63s failed with %d",
                               device_of(operation)->index, done->call, done->driver_code);
        else
                operation_fail_errno(operation, error, "asking for free memory");
}

/* No hold is under way any more. */
static void settle(struct operation *operation)
{
        if (operation->admission.outcome == ADMISSION_FITS) {
                end(operation);
                return;
        }
        if (operation->admission.outcome == ADMISSION_FULL) {
                wait_or_refuse(operation);
                return;
        }
        if (operation->admission.can_wait)
                forget(operation, operation->admission.part);
        end(operation);
}

static void end_hold(struct operation *operation)
{
        if (--operation->admission.n_holds == 0)
                settle(operation);
}

static void on_held(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;
        struct operation *operation = job->guest->instance->operation;

        (void)mover;
        if (done->error)
                fail(operation, done->error, done);
        else
                room_turn(&job->guest->room[job->part].coming);
        end_hold(operation);
}

static void hold(struct operation *operation)
{
        size_t part = operation->admission.part;
        struct device *device = device_of(operation);
        struct guest *guest;
        struct mover *mover;
        int r = device_get_mover(device, &mover);

        operation->admission.n_holds = 1; /* until all are asked for */
        operation_for_each_guest(guest, operation) {
                const struct room_promise *coming = &guest->room[part].coming;

                if (!room_is_to(coming, &device->room) || coming->state == ROOM_MEMORY)
                        continue;
                if (r == 0)
                        r = mover_hold(mover, guest->pid, coming->bytes, on_held,
                                       &guest->participant->job[part]);
                if (r == 0)
                        operation->admission.n_holds++;
        }
        if (r < 0)
                fail(operation, r, NULL);
        end_hold(operation);
}

/* As much as there is, but not what others may want. */
static uint64_t sum_arriving(const struct operation *operation)
{
        struct guest *guest;
        uint64_t sum = 0;

        operation_for_each_guest(guest, operation)
                sum += guest->room[operation->admission.part].arriving.bytes;
        return sum;
}

static void promise_staging(struct operation *operation, uint64_t left)
{
        struct device *device = device_of(operation);
        uint64_t total = device->memory_total;
        uint64_t reserve = total / STAGE_RESERVE_PART < STAGE_RESERVE ? total / STAGE_RESERVE_PART
                                                                      : STAGE_RESERVE;
        uint64_t sum = sum_arriving(operation);

        left = left > reserve ? left - reserve : 0;
        room_promise(&device->room, &operation->staging[operation->admission.part],
                     left < sum ? left : sum);
}

/* Who comes early gets only the room for contexts at once, out of what those that leave have let go. */
static uint64_t sum_later(const struct operation *operation)
{
        return operation->request.is_early
                       ? sum_arriving(operation) + handover_get_lent(device_of(operation))
                       : 0;
}

/*
 * What was to be copied ahead is for what is left over: who has grown meanwhile has the room itself. Its mover
 * lets go of it before it answers how much is free.
 */
static bool give_up_staging(struct operation *operation)
{
        struct room_promise *staging = &operation->staging[operation->admission.part];
        struct guest *guest;

        if (operation->admission.can_wait || !room_is_to(staging, &device_of(operation)->room) ||
            staging->bytes == 0)
                return false;
        room_forget(staging);
        operation_for_each_guest(guest, operation)
                copies_end(operation, guest);
        ask_driver(operation);
        return true;
}

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        struct operation *operation = userdata;
        struct device *device = device_of(operation);
        int64_t left;

        (void)mover;
        if (error) {
                fail(operation, error, NULL);
                settle(operation);
                return;
        }
        operation->admission.free = info->memory_free;
        operation->admission.owed =
                room_owed(&device->room) - sum_own(operation) - get_held(operation);
        left = room_balance(&device->room, info->memory_free + operation->admission.held,
                            operation->admission.look.mark) -
               (int64_t)operation->admission.look.pending + (int64_t)sum_later(operation);
        operation->admission.lacks_pending =
                left < 0 && (left + (int64_t)operation->admission.look.pending >= 0 ||
                             has_just_begun(operation->instance->manager));
        if (left < 0) {
                if (!give_up_staging(operation))
                        wait_or_refuse(operation);
                return;
        }
        if (!operation->staging[operation->admission.part].room && !operation->request.is_early &&
            !fetching_is_needed(operation))
                promise_staging(operation, (uint64_t)left);
        ceiling_settle(device, info->memory_free, operation->admission.held,
                       &operation->admission.look);
        hold(operation);
}

/* Free memory is only known with a context. */
static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct operation *operation = userdata;
        struct device *device = device_of(operation);
        int r = done->error;

        ceiling_freeze(device, &operation->admission.look);
        device->has_context |= r == 0;
        if (r == 0)
                r = mover_info(mover, on_info, operation);
        if (r == 0)
                return;
        fail(operation, r, done->error ? done : NULL);
        settle(operation);
}

static void ask_driver(struct operation *operation)
{
        struct mover *mover;
        int r = device_get_mover(device_of(operation), &mover);

        if (r == 0)
                r = mover_context(mover, on_context, operation);
        if (r == 0)
                return;
        fail(operation, r, NULL);
        settle(operation);
}

static void look(struct operation *operation)
{
        admission_set_state(operation, ADMISSION_LOOKING);
        operation->admission.outcome = ADMISSION_FITS;
        operation->admission.lacks_pending = false;
        (void)ask_all(operation);
        ask_driver(operation);
}

void admission_begin(struct operation *operation, bool can_wait)
{
        operation_begin_part(operation);
        operation->admission.can_wait = can_wait;
        memset(operation->admission.is_asked, 0, sizeof(operation->admission.is_asked));
        ask_next(operation);
}

/* The way back. */

void admission_expect_back(struct operation *operation, struct guest *guest, size_t part)
{
        restore_room_expect(guest, part, operation->source.device[part]);
}

/* The end. */

static void end_part(struct operation *operation, size_t part)
{
        struct device *source = operation->source.device[part];
        struct device *target = operation->target.device[part];
        struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link) {
                struct guest_room *room = &guest->room[part];

                if (room->coming.room && room->coming.state == ROOM_OWED)
                        let_go(target, guest);
                if (room->returning.room)
                        let_go(source, guest);
                if (room->kept.room)
                        let_go(target, guest);
                restore_room_end(guest, part, &room->returning);
        }
        forget(operation, part);
}

void admission_end(struct operation *operation)
{
        leave_queue(operation);
        operation->instance->residency.waits_for_room = false;
        for (size_t i = 0; i < operation->instance->n_parts; i++)
                end_part(operation, i);
        handover_end(operation);
        for (size_t i = 0; i < operation->instance->n_parts; i++) {
                ceiling_look(operation->target.device[i]);
                ceiling_look(operation->source.device[i]);
        }
}

void admission_look_again(struct manager *manager)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                look_at_first(&manager->device[i]);
}
