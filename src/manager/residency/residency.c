/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/residency/residency.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/guests/guest-watch.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/promise.h"
#include "manager/model/residency-view.h"
#include "manager/model/way-back.h"
#include "manager/operation/ahead.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"
#include "scheduler/stay.h"

/* Between two looks whether one runs again whose vGPU is away. */
#define STOPPED_LOOK_NS 100000000u

/* Between two looks for room. */
#define ROOM_LOOK_NS (100 * NS_PER_MS)

/* What is promised to one that asked is for it so long. It asks again before that, if it must (gate/quota.c). */
#define PROMISE_NS (10 * NS_PER_S)

/* Whoever waits so long is told of in the log, and again after twice the time. */
#define LONG_WAIT_NS (60 * NS_PER_S)

/* So often in turn others may be promised the room of one that comes before that is its failure. */
#define PASSED_MAX 3

static uint64_t now_ns(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

static bool is_ours(const struct instance *instance)
{
        return instance->residency.after_ns > 0 || instance_is_away(instance) ||
               promise_is_any_overcommitted(instance) || residency_may_refresh(instance);
}

/* Not from within what calls us: that may be in the middle of something. */
static void look_soon(struct residency *residency, const struct instance *instance)
{
        if (is_ours(instance))
                residency_look_in(residency, 0);
}

/* The gates say what they have to do only to those who ask. */
static void tell_gates(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (residency_takes_part(guest) && guest->gate)
                        guest_watch_demand(guest, is_ours(instance));
}

/* What cannot leave is said, and not tried. */
static void note_hold(struct instance *instance)
{
        char hold[sizeof(instance->residency.reason)], quoted[LOG_QUOTED_MAX];

        residency_find_hold(instance, hold, sizeof(hold));
        if (!hold[0] || strcmp(hold, instance->residency.reason) == 0)
                return;
        residency_note_reason(instance, hold);
        log_event_of_program(&(struct log_program){ instance->owner, instance->id, instance->name },
                             LOG_LEVEL_NOTICE, "stays though idle", "vgpu=%s reason=%s",
                             instance->name, log_quote(quoted, hold));
}

static void let_wait(struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                page_write_waits(&instance->part[i].page,
                                 ahead_lets_wait(instance->part[i].device));
}

/*
 * Does a thread ask for room? And if none wants any more, what was held for it is free. So it is after a while in which
 * one has neither taken it nor asked again, as gates do that wait in vain (gate/quota.c): else it would keep a ceiling
 * there for ever.
 */
static void look_at_asks_of(struct instance *instance, struct instance_part *part, uint64_t now)
{
        struct residency_part *mine = &part->residency;
        struct page_claim claim;

        if (!promise_is_overcommitted(part->device))
                return;
        if (page_is_asking(&part->page)) {
                instance->residency.sums.n_waits += mine->asks_ns == 0;
                mine->asks_ns = mine->asks_ns ? mine->asks_ns : now;
                return;
        }
        mine->asks_ns = 0;
        residency_note_no_reason(instance, (size_t)(part - instance->part));
        page_read_claim(&part->page, instance->frame_buffer, &claim);
        if (claim.wanted > 0 && now - mine->answered_ns < PROMISE_NS)
                return;
        mine->extra = claim.wanted > 0 ? mine->extra : 0;
        room_forget(&mine->promise);
}

static void look_at_asks(struct instance *instance, uint64_t now)
{
        let_wait(instance);
        for (size_t i = 0; i < instance->n_parts; i++)
                look_at_asks_of(instance, &instance->part[i], now);
}

/* Returns when to look again. */
static uint64_t look_at_resident(struct instance *instance, uint64_t now)
{
        struct residency_instance *mine = &instance->residency;
        struct stay stay;

        look_at_asks(instance, now);
        residency_look_at_work(instance, now);
        stay = residency_get_stay(instance);
        if (stay.is_held && (mine->is_stopped || now - mine->last_work_ns >= mine->after_ns))
                note_hold(instance);
        else if (mine->last_work_ns == now && !mine->waiting_ns)
                residency_note_reason(instance, "");
        if (stay_get_end(&stay) <= now)
                residency_leave(instance, false, "it had no work for the time that its owner set");
        return now +
               (residency_get_asks(instance) ? ROOM_LOOK_NS / 4 : residency_get_interval(instance));
}

static void forget_extras(struct instance *instance)
{
        instance->residency.lacked_room = false;
        for (size_t i = 0; i < instance->n_parts; i++)
                instance->part[i].residency.extra = 0;
}

static void begin_waiting(struct instance *instance, uint64_t now)
{
        struct residency_instance *mine = &instance->residency;

        if (mine->wanted_ns > 0)
                return;
        mine->wanted_ns = now;
        mine->not_before_ns = mine->pause_ns = 0;
        forget_extras(instance);
        for (size_t i = 0; i < instance->n_parts; i++)
                residency_note_no_reason(instance, i);
        mine->sums.n_waits++;
}

static void stop_waiting(struct instance *instance)
{
        instance->residency.wanted_ns = 0;
        residency_forget_promises(instance);
}

/* Who is stopped could not come: others would leave for it in vain. Looked at again until it runs. */
static bool are_all_stopped(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest_wants_device(guest) && !process_is_stopped(guest->pid))
                        return false;
        return true;
}

static uint64_t look_at_away(struct instance *instance, uint64_t now)
{
        struct residency_instance *mine = &instance->residency;

        if (!residency_is_wanted(instance)) {
                stop_waiting(instance);
                return STAY_NEVER;
        }
        if (are_all_stopped(instance)) {
                stop_waiting(instance);
                return now + STOPPED_LOOK_NS;
        }
        begin_waiting(instance, now);
        if (mine->not_before_ns > now)
                return mine->not_before_ns;
        return now + ROOM_LOOK_NS / 4;
}

/* Looking. */

static bool has_programs(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest))
                        return true;
        return false;
}

/* Summed up here, so that what is shown never gets less. */
static void note_presence(struct instance *instance)
{
        struct residency_instance *mine = &instance->residency;
        uint64_t now = now_ns();

        if (mine->present_ns)
                mine->sums.resident_ns += now - mine->present_ns;
        mine->present_ns = has_programs(instance) && !instance_is_off(instance) ? now : 0;
}

static void note_move(struct instance *instance)
{
        const struct operation *operation = instance->operation;
        struct residency_instance *mine = &instance->residency;

        mine->moved_percent = operation && operation->measured.bytes > 0
                                      ? (uint32_t)(100 * operation->measured.bytes_done /
                                                   operation->measured.bytes)
                                      : 0;
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
        return one < other ? one : other;
}

/* One that was suspended by hand has programs that ask; they wait for its resume, and no room brings it back. */
static bool is_waiting(const struct instance *instance)
{
        if (instance_is_off(instance) && !instance_is_away(instance))
                return false;
        return instance->residency.wanted_ns > 0 || residency_get_asks(instance) > 0;
}

static void tell_long_wait(struct instance *instance, uint64_t waited_ns)
{
        struct residency_view view;
        char quoted[LOG_QUOTED_MAX];

        residency_view_get(instance, &view);
        instance->residency.told_ns = waited_ns;
        log_event_of(instance->owner, LOG_LEVEL_NOTICE, "has waited for memory for long",
                     "vgpu=%s device=%u waited=%.0f reason=%s", instance->name,
                     instance_home(instance)->index, (double)waited_ns / NS_PER_S,
                     log_quote(quoted, view.reason));
}

/* Whatever for: to come in, for the driver's memory, below the ceiling. */
static void note_wait(struct instance *instance, uint64_t now)
{
        struct residency_instance *mine = &instance->residency;
        bool waits = is_waiting(instance) || mine->waits_for_room ||
                     (!instance_is_off(instance) && residency_find_wanting(instance));

        if (instance->operation && !mine->waits_for_room) /* on its way */
                return;
        if (!waits) {
                mine->waiting_ns = mine->told_ns = 0;
                return;
        }
        mine->waiting_ns = mine->waiting_ns ? mine->waiting_ns : now;
        if (now - mine->waiting_ns >= LONG_WAIT_NS && now - mine->waiting_ns >= 2 * mine->told_ns)
                tell_long_wait(instance, now - mine->waiting_ns);
}

static uint64_t look_at_way_back(struct instance *instance, uint64_t now)
{
        begin_waiting(instance, now);
        if (instance->residency.not_before_ns > now)
                return instance->residency.not_before_ns;
        return now + ROOM_LOOK_NS / 4;
}

static uint64_t look_at(struct instance *instance, uint64_t now)
{
        tell_gates(instance);
        note_presence(instance);
        note_wait(instance, now);
        note_move(instance);
        residency_look_whether_it_runs(instance);
        if (residency_awaits_turn(instance))
                begin_waiting(instance, now);
        if (way_back_lacks_room(instance) && promise_is_any_overcommitted(instance))
                return look_at_way_back(instance, now);
        if (instance->operation && is_ours(instance))
                return now + ROOM_LOOK_NS / 4;
        if (residency_may_leave(instance))
                return earlier(look_at_resident(instance, now),
                               residency_look_at_refresh(instance, now));
        if (residency_may_refresh(instance))
                return residency_look_at_refresh(instance, now);
        return instance_is_away(instance) ? look_at_away(instance, now) : STAY_NEVER;
}

static void give_room(struct residency *residency, uint64_t now)
{
        const struct instance *instance;
        uint64_t devices = 0;

        list_for_each(instance, &residency->manager->instances, link)
                if (is_waiting(instance))
                        devices |= residency_get_devices(instance);
        residency->is_waited = devices != 0;
        residency_give_room(residency, devices, now);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct residency *residency = userdata;
        uint64_t now = now_ns(), next = STAY_NEVER;
        struct instance *instance, *after;

        (void)usec;
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        residency->next_ns = 0;
        if (!residency->manager->is_ready) {
                residency_look_in(residency, ROOM_LOOK_NS);
                return 0;
        }
        list_for_each_safe(instance, after, &residency->manager->instances, link) {
                next = earlier(next, look_at(instance, now));
        }
        give_room(residency, now);
        if (next != STAY_NEVER)
                residency_look_in(residency, next > now ? next - now : 0);
        return 0;
}

/* Events. */

static void begin_stay(struct instance *instance)
{
        instance->residency.since_ns = instance->residency.last_work_ns = now_ns();
        instance->residency.wanted_ns = 0;
        forget_extras(instance);
}

/* Perhaps: who waits for some is not kept waiting by an earlier failure. */
static void room_came(struct residency *residency)
{
        struct instance *instance;

        if (!residency->is_waited)
                return;
        list_for_each(instance, &residency->manager->instances, link)
                if (instance->residency.wanted_ns)
                        instance->residency.not_before_ns = 0;
        residency_look_in(residency, 0);
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        if (event == INSTANCE_LOADED || event == INSTANCE_ADDED)
                begin_stay(instance);
        if (event == INSTANCE_MAKES_WAY)
                residency_ask_again(userdata, instance);
        if (event == INSTANCE_REMOVED || event == INSTANCE_RESIZED)
                room_came(userdata);
        else if (event != INSTANCE_UNLOADED)
                look_soon(userdata, instance);
        note_presence(instance);
}

/* Nobody waits, or stays, any more. */
static void forget_asks(struct instance *instance)
{
        residency_note_reason(instance, "");
        for (size_t i = 0; i < instance->n_parts; i++)
                instance->part[i].residency.asks_ns = 0;
        stop_waiting(instance);
}

static bool is_only_one(const struct guest *guest)
{
        const struct guest *other;

        list_for_each(other, &guest->instance->guests, link)
                if (other != guest && residency_takes_part(other))
                        return false;
        return true;
}

/* Who comes to a vGPU that was empty has not been there for as long as that. */
static void note_joined(const struct guest *guest)
{
        struct instance *instance = guest->instance;

        instance->residency.last_work_ns = now_ns();
        if (is_only_one(guest))
                instance->residency.since_ns = instance->residency.last_work_ns;
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        struct instance *instance = guest->instance;
        struct residency *residency = userdata;

        if (event == GUEST_UNLOADED)
                return;
        note_presence(instance);
        residency->n_ends += event == GUEST_LEFT;
        if (event == GUEST_LEFT)
                guest->residency.is_wanting = false;
        if (event == GUEST_LEFT && !has_programs(instance))
                forget_asks(instance);
        if (event == GUEST_JOINED)
                note_joined(guest);
        if (event == GUEST_JOINED || event == GUEST_RETURNED)
                let_wait(instance);
        if (event == GUEST_RETURNED && guest->state == GATE_STATE_OPEN)
                guest->residency.is_wanting = false;
        if (event == GUEST_WANTS && guest->presence != GUEST_JOINING)
                guest->residency.is_wanting = true;
        look_soon(residency, instance);
}

static void forget_demand(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                guest->residency.is_wanting = false;
}

static void note_success(const struct operation *operation, uint64_t took_ns)
{
        struct instance *instance = operation->instance;
        struct residency_instance *mine = &instance->residency;

        residency_succeed(instance);
        if (operation->request.is_by_itself) {
                mine->sums.n_swaps++;
                mine->sums.swapped_bytes += operation->measured.bytes_done;
        }
        if (operation->kind->number == OPERATION_SUSPEND) {
                mine->leave_ns = took_ns;
                mine->since_ns = now_ns();
                return;
        }
        if (operation->kind->number == OPERATION_RESUME)
                mine->cost_ns = mine->leave_ns + took_ns;
        if (mine->wanted_ns)
                mine->sums.waited_ns += now_ns() - mine->wanted_ns;
        begin_stay(instance);
        forget_demand(instance);
}

/* Who was leaving for it stays after all: that is no failure of its own, and others may leave for it. */
static void note_stayed(struct instance *instance)
{
        residency_come_later(instance);
        log_event_of(instance->owner, LOG_LEVEL_INFO, "waits again: who was leaving for it stays",
                     "vgpu=%s", instance->name);
}

/*
 * Between the decision and its promise others were promised the room: it needs no more than it did, and tries again soon. If
 * that happens again and again, the decision may not see what is promised: then it is a failure like others.
 */
static bool note_passed(const struct operation *operation)
{
        struct residency_instance *mine = &operation->instance->residency;

        if (!operation->request.is_by_itself || !operation->admission.was_passed ||
            mine->n_passed >= PASSED_MAX)
                return false;
        mine->n_passed++;
        residency_come_later(operation->instance);
        log_event_of(operation->instance->owner, LOG_LEVEL_INFO,
                     "waits again: others were promised its room", "vgpu=%s",
                     operation->instance->name);
        return true;
}

static void note_failure(const struct operation *operation)
{
        struct instance *instance = operation->instance;
        bool is_leaving = operation->kind->number == OPERATION_SUSPEND;

        if (!is_leaving && note_passed(operation))
                return;
        if (operation->request.is_early && operation->standing.fate == GROUP_BROKEN)
                note_stayed(instance);
        else if (operation->request.is_by_itself)
                residency_fail(instance, is_leaving, operation->failure.message);
        if (!is_leaving && operation->failure.name &&
            strcmp(operation->failure.name, "NoRoom") == 0)
                residency_note_lack(instance, operation->admission.part);
        if (!operation->request.is_by_itself && !is_leaving)
                stop_waiting(instance); /* whoever resumed it by hand; its programs may wait */
        if (is_leaving)
                forget_demand(instance); /* its gates are open again */
        if (is_leaving && operation->request.is_by_itself)
                (void)residency_look_at_stopped(instance);
}

/* Where it could not go back before; @was_let: others had left for that. */
static void note_way_back(struct instance *instance, bool was_let)
{
        if (!instance->residency.wanted_ns || instance_is_off(instance))
                return;
        if (instance->state != STATE_FAILED) {
                stop_waiting(instance);
                residency_succeed(instance);
                begin_stay(instance);       /* its programs stood still until now */
        } else if (!instance->lack.timer) { /* it lacks something else */
                stop_waiting(instance);
        } else if (was_let) {
                residency_pause(instance, false);
                for (size_t i = 0; i < instance->n_parts; i++)
                        residency_note_lack(instance, i);
        }
}

static void on_operation(const struct operation *operation, bool has_succeeded, void *userdata)
{
        struct instance *instance = operation->instance;
        struct residency *residency = userdata;

        bool was_coming = instance->residency.is_coming;

        residency->n_ends++;
        if (has_succeeded && instance->residency.is_leaving)
                residency_note_left(residency, instance);
        instance->residency.is_coming = instance->residency.is_leaving = false;
        for (size_t i = 0; i < instance->n_parts; i++)
                instance->part[i].residency.leaving_bytes = 0;
        if (has_succeeded)
                note_success(operation, stay_get_cost(now_ns() - operation->measured.started_ns,
                                                      operation->measured.pool_ns +
                                                              operation->measured.room_ns));
        else
                note_failure(operation);
        note_way_back(instance, was_coming);
        if (!has_programs(instance))
                residency_note_reason(instance,
                                      ""); /* they ended meanwhile: that is no reason to wait */
        note_presence(instance);
        if (has_succeeded && operation->kind->number != OPERATION_RESUME)
                room_came(residency);
        look_soon(residency, instance);
}

static struct observer observer = { .of_instance = on_instance,
                                    .of_guest = on_guest,
                                    .of_operation = on_operation };

/* Settings. */

int residency_keep_off(struct instance *instance, struct failure *failure)
{
        struct residency_instance *mine = &instance->residency;
        int r = residency_record_put_left(mine, instance->manager->store, instance->id, false);

        if (r < 0)
                return failure_set(failure, r, "Failed", OPERATION_STORE_HINT,
                                   "the state database takes no writes (%s)", strerror(-r));
        mine->has_left = false;
        stop_waiting(instance);
        residency_succeed(instance);
        log_event_of(instance->owner, LOG_LEVEL_INFO, "stays off its device", "vgpu=%s",
                     instance->name);
        observer_tell_changed(&instance->manager->observers);
        return 0;
}

int residency_set(struct instance *instance, uint64_t after_ms, bool keeps_context,
                  struct failure *failure)
{
        int r = residency_record_set(&instance->residency, instance->manager->store, instance->id,
                                     after_ms, keeps_context, failure);

        if (r == 0 && after_ms == 0 && instance_is_away(instance) && !instance->operation)
                r = residency_keep_off(instance, failure);
        if (r < 0)
                return r;
        residency_succeed(instance);
        residency_look_in(instance->manager->residency,
                          0); /* also to tell gates that nobody asks any more */
        observer_tell_changed(&instance->manager->observers);
        return 0;
}

/* Birth and death. */

int residency_new(struct residency **ret_residency, struct manager *manager)
{
        struct residency *residency = calloc(1, sizeof(*residency));

        if (!residency)
                return -ENOMEM;
        residency->manager = manager;
        residency->on_time = on_time;
        observer_add(&manager->observers, &observer, residency);
        *ret_residency = residency;
        return 0;
}

struct residency *residency_free(struct residency *residency)
{
        if (!residency)
                return NULL;
        observer_remove(&residency->manager->observers, &observer);
        sd_event_source_disable_unref(residency->timer);
        free(residency);
        return NULL;
}
