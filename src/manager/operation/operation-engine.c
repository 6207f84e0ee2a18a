/* SPDX-License-Identifier: Apache-2.0 */
/* One step after another, and back. */
#include "manager/operation/operation-engine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/control/control.h"
#include "manager/model/backlog.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/place-text.h"
#include "manager/model/recovery.h"
#include "manager/model/silence.h"
#include "manager/operation/admission.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/copies.h"
#include "manager/operation/group.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"
#include "manager/operation/refresh.h"
#include "manager/operation/rest.h"
#include "manager/schedule/schedule.h"

static void operation_set_phase(struct operation *operation, enum operation_phase phase)
{
        static const uint32_t transitions[] = {
                [OPERATION_BETWEEN] = 1u << OPERATION_RUNS | 1u << OPERATION_UNDONE,
                [OPERATION_RUNS] = 1u << OPERATION_BETWEEN,
                [OPERATION_UNDONE] = 0,
        };

        assert(transitions[operation->phase] & 1u << phase);
        operation->phase = phase;
}

/* Its caller has been answered: what is left concerns nobody but us. */
static bool is_tidying(const struct operation *operation)
{
        return !operation->is_undoing &&
               operation->step > operation_find_step(operation->kind, OPERATION_ANSWERS);
}

/* The end. */

/* Who waits still when the manager ends was hung up on already. */
static void drop_caller(struct control_pending *pending)
{
        const struct failure failure = { .name = "Failed", .message = "vgpud ends" };

        if (pending)
                control_fail(pending, &failure);
}

struct operation *operation_free(struct operation *operation)
{
        if (!operation)
                return NULL;
        sd_event_source_disable_unref(operation->advance);
        sd_event_source_disable_unref(operation->admission.timer);
        sd_event_source_disable_unref(operation->shared.timer);
        sd_event_source_disable_unref(operation->ahead.timer);
        rest_leave(operation);
        participants_free(operation->instance);
        list_remove(&operation->admission.link);
        list_remove(&operation->making.link);
        sd_event_source_disable_unref(operation->making.timer);
        for (size_t i = 0; i < INSTANCE_PARTS_MAX; i++)
                room_forget(&operation->staging[i]);
        drop_caller(operation->request.pending);
        drop_caller(operation->next);
        free(operation);
        return NULL;
}

static void free_guests_marked_dead(struct instance *instance)
{
        struct guest *guest, *after;

        list_for_each_safe(guest, after, &instance->guests, link)
                if (guest_is_dead(guest) && !guest->refresh) /* else its end buries it */
                        guest_free(guest);
}

/* One that has failed is tried again when a gate comes back, or what was full has room. */
static void record_undone(struct operation *operation, enum state_instance_state state)
{
        struct instance *instance = operation->instance;

        instance->state = state;
        if (state == STATE_FAILED)
                instance_set_state(instance, state);
        if (state != STATE_FAILED)
                backlog_end_lack(instance);
        else if (operation->has_lacked_room)
                backlog_add_lack(instance);
        if (state == STATE_FAILED ? operation->has_failed_store
                                  : recovery_store_instance(instance) < 0)
                backlog_add_instance(instance);
}

static const char *hint_undone(const struct operation *operation)
{
        if (operation->has_failed_store)
                return "free room on the disk of vgpud's state directory: the rest is then undone automatically";
        if (operation->has_lacked_room)
                return "make room there (end, suspend or move others): the rest is then undone automatically; or end that process";
        return "the operation could not be undone for that process: end the process, and the others continue";
}

/* What could not be undone for a process leaves a job: the mover lets go of it, and nobody waits for that. */
static void drop_jobs(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->participant)
                        copies_drop(guest);
}

/* Nothing of it is left to do; @has_succeeded: it was done, else it was undone as far as possible. */
static void finish(struct operation *operation, bool has_succeeded)
{
        struct instance *instance = operation->instance;
        struct manager *manager = instance->manager;
        enum state_instance_state state = operation->former_state;
        struct control_pending *next = operation->next;
        const struct operation_kind *kind = operation->kind;

        operation->next = NULL;
        if (operation->has_failed_undo) {
                state = STATE_FAILED;
                snprintf(operation->failure.hint, sizeof(operation->failure.hint), "%s",
                         hint_undone(operation));
        }
        if (!has_succeeded) {
                record_undone(operation, state);
                operation_report_end(operation, false);
        }
        admission_end(operation);
        drop_jobs(instance);
        instance->operation = NULL;
        memset(&instance->course, 0, sizeof(instance->course));
        operation_free(operation); /* with what it has of those that are freed now */
        free_guests_marked_dead(instance);
        recovery_sync_slabs(manager);
        pool_unpause(manager->pool);
        observer_tell_instance(&manager->observers, instance, INSTANCE_LET_GO);
        if (next)
                control_call_again(next);
        if (!has_succeeded && kind->undone)
                kind->undone(instance);
        observer_tell_instance(&manager->observers, instance, INSTANCE_FREE);
        operation_wake_all(manager);
        admission_look_again(manager);
        if (instance->state != STATE_FAILED)
                backlog_room_came(manager->backlog);
        for (size_t i = 0; i < manager->n_devices; i++)
                device_settle(&manager->device[i]);
        instance_settle(instance);
        observer_tell_changed(&manager->observers);
}

/* One step after another. */

static void clear_error(struct operation *operation)
{
        operation->error = 0;
        operation->has_lost_peer = false;
}

/* The step is over. True: run it again. */
static bool wants_retry(struct operation *operation)
{
        if (!operation->has_lost_peer || operation->was_retried)
                return false;
        log_event_of(operation->instance->owner, LOG_LEVEL_WARNING,
                     "trying again with a new mover or connection", "vgpu=%s operation=%s step=%s",
                     operation->instance->name, operation->kind->name,
                     operation->kind->steps[operation->step].name);
        operation->was_retried = true;
        if (!operation->is_undoing) /* else it is why all is undone */
                operation->failure = (struct failure){ 0 };
        clear_error(operation);
        return true;
}

/* Can the step still be undone, as far as the store is concerned? */
static bool is_reversible(const struct operation *operation)
{
        size_t final = operation_find_step(operation->kind, OPERATION_RECORDS);

        return operation->step < final || (operation->step == final && operation->error);
}

static void check_survivors(struct operation *operation)
{
        if (operation->n_processes > 0 && !operation_next_guest(operation, NULL) &&
            operation->lost[0])
                operation_fail(operation, -EUCLEAN, "GuestLost",
                               "end what is left of it, and start the program again",
                               "%s: the driver could not restore it", operation->lost);
        else if (operation->n_processes > 0 && !operation_next_guest(operation, NULL))
                operation_fail(operation, -ESRCH, "GuestLost", "", "all processes of vGPU %s ended",
                               operation->instance->name);
}

static void accept_step(struct operation *operation)
{
        const char *name = operation->kind->steps[operation->step].name;
        int r;

        check_survivors(operation);
        operation_pass(operation, name);
        if (operation->error)
                return;
        r = operation_persist(operation, name);
        if (r < 0)
                operation_fail_store(operation, r, "remembering the step");
}

/* It may wait for the end of this one's handing over. */
static void wake_early(const struct operation *operation)
{
        struct operation *early = handover_find_early(operation->source.device[0]);

        if (operation->request.hands_over && early)
                operation_wake(early);
}

static void next_step(struct operation *operation)
{
        clear_error(operation);
        operation->was_retried = false;
        operation->step++;
        group_wake(operation);
        wake_early(operation);
}

/* The others do not come back either: all are where they were. */
static void call_back(struct operation *operation)
{
        struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link)
                if (operation->kind->may_leave_behind && guest_is_away(guest))
                        guest_set_presence(guest, GUEST_PRESENT);
}

/* Who came into the room of one that stays after all goes again. */
static void break_early(const struct operation *operation)
{
        struct operation *early = handover_find_early(operation->source.device[0]);

        if (!early || early->is_undoing || early->standing.fate == GROUP_BROKEN ||
            early == operation || !operation->request.hands_over)
                return;
        group_break_one(early, &operation->failure);
        admission_give_up(early);
        operation_wake(early);
}

void operation_start_undoing(struct operation *operation)
{
        operation->was_retried = false;
        operation->is_undoing = operation->instance->course.is_undoing = true;
        group_break(operation);
        break_early(operation);
        call_back(operation);
        broadcast_gather(operation);
}

/* Another of its group has failed. */
static void fail_broken(struct operation *operation)
{
        const struct failure *why = &operation->standing.broken_by;

        if (operation->standing.fate == GROUP_BROKEN && operation->error == 0)
                operation_fail(operation, -ECANCELED, why->name, why->hint, "%.400s", why->message);
}

/* Also the step that records can still be given up while it has not run, here or for all of the group. */
static bool can_give_up(const struct operation *operation)
{
        return operation->step <= operation_find_step(operation->kind, OPERATION_RECORDS) &&
               operation->standing.fate != GROUP_RECORDED;
}

/* Before the next step, or where it waits for the others. */
static void give_up_broken(struct operation *operation)
{
        if (operation->standing.fate != GROUP_BROKEN || operation->is_undoing ||
            operation->phase == OPERATION_RUNS || operation->n_parts > 0 || !can_give_up(operation))
                return;
        fail_broken(operation);
        clear_error(operation);
        operation_start_undoing(operation);
}

/* A step has run and none of its parts is left. */
static void end_step(struct operation *operation)
{
        operation_set_phase(operation, OPERATION_BETWEEN);
        operation_report_moment(operation, operation->kind->steps[operation->step].name);
        if (!is_reversible(operation)) {
                if (operation->error)
                        log_event_of(operation->instance->owner, LOG_LEVEL_ERROR,
                                     "the rest of an operation failed",
                                     "vgpu=%s step=%s error=\"%s\"", operation->instance->name,
                                     operation->kind->steps[operation->step].name,
                                     strerror(-operation->error));
                operation_pass(operation, operation->kind->steps[operation->step].name);
                if (operation->kind->steps[operation->step].flags & OPERATION_ANSWERS)
                        operation_report_end(operation, true);
                next_step(operation);
                return;
        }
        if (operation->error == 0)
                accept_step(operation);
        fail_broken(operation);
        if (operation->error == 0) {
                next_step(operation);
        } else if (!wants_retry(operation)) {
                clear_error(operation);
                operation_start_undoing(operation);
        }
}

/* Also one that was left behind before the step was tried again for the others. */
static bool has_stuck_guest(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->participant && guest->participant->is_stuck && !guest_is_dead(guest))
                        return true;
        return false;
}

/*
 * What undoes a step has run. The store says so, for then the next manager must not do it again: a
 * guest that is closed with memory mapped may have it created, or mapped again, and which of them
 * shows only in the step. After a failure the store stays behind: undoing begins there again, once
 * the guests that are stuck come back.
 */
static void end_undo(struct operation *operation)
{
        char point[STORE_WORD_MAX];

        operation_set_phase(operation, OPERATION_BETWEEN);
        if (operation->error && wants_retry(operation))
                return;
        if (operation->error || has_stuck_guest(operation->instance))
                operation->has_failed_undo = true;
        if (!operation->has_failed_undo)
                (void)operation_store_undone(operation); /* see leaving_undo_keep() */
        snprintf(point, sizeof(point), "undo-%s", operation->kind->steps[operation->step].name);
        operation_pass(operation, point);
        clear_error(operation);
        operation->was_retried = false;
        if (operation->step > 0)
                operation->step--;
        else
                operation_set_phase(operation, OPERATION_UNDONE);
        group_wake(operation);
}

static bool is_over(const struct operation *operation)
{
        return operation->phase == OPERATION_UNDONE || operation->step == operation->kind->n_steps;
}

static void start_step(struct operation *operation)
{
        const struct operation_step *step = &operation->kind->steps[operation->step];

        operation_set_phase(operation, OPERATION_RUNS);
        operation_report_progress(operation);
        if (!operation->is_undoing)
                step->run(operation);
        else if (step->undo)
                step->undo(operation);
}

/* Memory that will be free in a moment must not count as taken. */
static bool is_being_tidied(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance->operation && is_tidying(instance->operation) &&
                    operation_is_at(instance->operation, device))
                        return true;
        return false;
}

static bool is_target_being_tidied(const struct operation *operation)
{
        for (size_t i = 0; i < operation->instance->n_parts; i++)
                if (is_being_tidied(operation->target.device[i]))
                        return true;
        return false;
}

/* Those that began while it copied ahead hold room in the pool that it may need from here on. */
static bool has_ended_ahead(const struct operation *operation)
{
        return operation->ahead.began_ns > 0 && operation->measured.closing_ns == 0;
}

static bool is_losing_mover(const struct device *device)
{
        return device->mover && mover_is_lost(device->mover);
}

/*
 * A mover that is dying has not let go of the memory yet: nobody tries again before it is gone. And
 * a guest that has just come back may still be answering what it was asked then.
 */
static bool must_wait(const struct operation *operation)
{
        struct guest *guest;

        if (operation->step == 0 && !operation->is_undoing &&
            (is_target_being_tidied(operation) || refresh_must_wait(operation)))
                return true;
        if (!operation->is_undoing && has_ended_ahead(operation) && refresh_must_wait(operation))
                return true;

        operation_for_each_guest(guest, operation)
                if (guest->request.done)
                        return true;
        for (size_t i = 0; i < operation->instance->n_parts; i++)
                if (is_losing_mover(operation->source.device[i]) ||
                    is_losing_mover(operation->target.device[i]))
                        return true;
        return false;
}

/* Jobs that nobody will run any more hold slabs of the pool. True: wait for their end. */
static bool end_jobs_of_dead(struct operation *operation)
{
        struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link)
                if (guest_is_dead(guest) && guest->participant)
                        copies_end(operation, guest);
        return operation->n_parts > 0;
}

static int on_advance(sd_event_source *source, void *userdata)
{
        struct operation *operation = userdata;

        (void)source;
        give_up_broken(operation);
        while (operation->n_parts == 0 && !must_wait(operation)) {
                if (operation->phase == OPERATION_RUNS) {
                        if (operation->is_undoing)
                                end_undo(operation);
                        else
                                end_step(operation);
                }
                if (is_over(operation) && end_jobs_of_dead(operation))
                        return 0;
                if (is_over(operation)) {
                        finish(operation, operation->phase != OPERATION_UNDONE);
                        return 0;
                }
                give_up_broken(operation);
                if (operation->n_parts > 0 || group_must_wait(operation) ||
                    handover_must_wait(operation))
                        return 0;
                start_step(operation);
        }
        return 0;
}

/* Starting. */

struct operation *operation_new(struct instance *instance, const struct operation_kind *kind)
{
        struct operation *operation = calloc(1, sizeof(*operation));
        struct guest *guest;

        if (!operation)
                return NULL;
        *operation = (struct operation){
                .instance = instance,
                .kind = kind,
                .source = instance_place(instance),
                .target = instance_place(instance),
                .asker = instance->owner,
                .former_state = instance->state,
                .measured.started_ns = clock_now(CLOCK_MONOTONIC),
        };
        list_init(&operation->admission.link);
        list_init(&operation->making.link);
        if (participants_new(instance) < 0)
                return operation_free(operation);
        operation_for_each_guest(guest, operation)
                operation->n_processes++;
        if (sd_event_add_defer(instance->manager->event, &operation->advance, on_advance,
                               operation) < 0)
                return operation_free(operation);
        (void)sd_event_source_set_enabled(operation->advance, SD_EVENT_OFF);
        return operation;
}

/* It would answer nothing; what we hold of it is kept, should a vgpud that it knows come back. */
static int check_gates(const struct instance *instance, struct failure *failure)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest) && !guest->gate && guest->refused_version)
                        return failure_set(
                                failure, -EPROTONOSUPPORT, "NotMovable",
                                instance_is_off(instance)
                                        ? "only a vgpud that speaks its version can resume it; if "
                                          "there is none that starts here, end the process"
                                        : "it runs on; end it and start it again",
                                "process %d (%.40s) has the gate of another release, which speaks "
                                "version %u and this vgpud version %u",
                                (int)guest->pid, guest->name, guest->refused_version,
                                GATE_WIRE_VERSION);
        return 0;
}

static int refuse_failed(const struct instance *instance, struct failure *failure)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (silence_lasts(guest))
                        return silence_refuse(guest, failure);
        return failure_set(failure, -EUCLEAN, "WrongState",
                           "end its processes; the log of vgpud says what happened",
                           "vGPU %s has failed", instance->name);
}

static int check_usable(const struct instance *instance, struct failure *failure)
{
        int r = instance_check_idle(instance, failure);

        if (r == 0 && instance->state == STATE_FAILED)
                r = refuse_failed(instance, failure);
        return r < 0 ? r : check_gates(instance, failure);
}

/* What we hold of an absent one is all that there is of it: no other operation may touch that. */
static int check_present(const struct instance *instance, struct failure *failure)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest) && instance_is_usable(instance) && guest_is_away(guest))
                        return failure_set(failure, -EBUSY, "GuestLost",
                                           process_advise_halt(process_get_halt(guest->pid)),
                                           "process %d (%.40s) hung when vGPU %s was resumed, and "
                                           "is not back",
                                           (int)guest->pid, guest->name, instance->name);
        return 0;
}

void operation_begin(struct operation *operation)
{
        struct instance *instance = operation->instance;

        schedule_hold(instance);
        instance->operation = operation;
        instance->course.target = operation->target;
        instance->course.timeout_ms = operation->request.timeout_ms;
        instance->course.group = operation->request.group;
        instance->course.gives_up_stopped =
                operation->request.is_by_itself && operation->kind->number == OPERATION_SUSPEND;
        instance->state = operation->kind->busy_state;
        pool_pause(instance->manager->pool);
        refresh_stop_all(instance->manager);
        operation_wake(operation);
}

/* What an earlier one could not record comes first: the steps trust that nothing is left of it. */
static int begin_in_store(struct operation *operation, struct failure *failure)
{
        int r = backlog_settle(operation->instance);

        if (r == 0)
                r = operation_persist(operation, "");
        if (r == 0)
                return 0;
        return failure_set(failure, r, "Failed", OPERATION_STORE_HINT,
                           "%s of vGPU %s cannot begin: the state database takes no writes (%s)",
                           operation->kind->name, operation->instance->name, strerror(-r));
}

bool operation_call_after(struct instance *instance, struct control_pending *pending)
{
        struct operation *operation = instance->operation;

        if (!operation || operation->request.pending || operation->next)
                return false;
        operation->next = pending;
        admission_give_up(operation);
        return true;
}

static uint32_t find_conditions(const struct operation_request *request)
{
        return (request->keep_context ? OPERATION_KEEPS_CONTEXT : 0) |
               (request->must_verify ? OPERATION_VERIFIES : 0) |
               (request->will_detach ? OPERATION_DETACHES : 0) |
               (request->pre_copies ? OPERATION_PRE_COPIES : 0) |
               (request->is_by_itself ? OPERATION_BY_ITSELF : 0) |
               (request->hands_over ? OPERATION_HANDS_OVER : 0) |
               (request->is_early ? OPERATION_EARLY : 0) |
               (request->group ? OPERATION_IN_GROUP : 0);
}

/* What nobody has thought of together is not tried. */
static int check_conditions(const struct operation_kind *kind,
                            const struct operation_request *request, struct failure *failure)
{
        if ((find_conditions(request) & ~kind->takes) == 0)
                return 0;
        return failure_set(failure, -EINVAL, "InvalidParameter", "leave out what it does not take",
                           "a %s cannot be asked for in this way", kind->name);
}

int operation_start(struct instance *instance, const struct operation_kind *kind,
                    const struct operation_request *request, struct failure *failure)
{
        char from[PLACE_TEXT_MAX], to[PLACE_TEXT_MAX];
        struct operation *operation;
        int r = check_conditions(kind, request, failure);

        if (r == 0)
                r = check_usable(instance, failure);
        if (r == 0 && kind->guests == GUEST_PRESENT)
                r = check_present(instance, failure);
        if (r < 0)
                return r;
        operation = operation_new(instance, kind);
        if (!operation)
                return -ENOMEM;
        operation->request = *request;
        operation->request.pending = NULL; /* its caller has the failure of what has not begun */
        operation->request.hands_over &= instance->n_parts == 1;
        operation->request.is_early &= instance->n_parts == 1;
        if (request->pending)
                operation->asker = request->pending->uid;
        if (!place_is_nowhere(&request->target))
                operation->target = request->target;
        r = kind->check(operation, failure);
        if (r == 0)
                r = begin_in_store(operation, failure);
        if (r < 0) {
                operation_free(operation);
                return r;
        }
        operation->request.pending = request->pending;
        operation_begin(operation);
        observer_tell_changed(&instance->manager->observers);
        log_event_of(instance->owner, LOG_LEVEL_INFO, kind->name,
                     "vgpu=%s processes=%zu from=%s to=%s timeout_ms=%u", instance->name,
                     operation->n_processes, place_describe(&operation->source, from),
                     place_describe(&operation->target, to), operation->request.timeout_ms);
        return 0;
}
