/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/residency/residency.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "manager/guests/guest-request.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/residency-view.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "scheduler/stay.h"

#define NS_PER_US     1000u
#define NS_PER_MS     1000000u
#define NS_PER_SECOND 1000000000u

/*
 * What a gate gets to drain. It had no work when it was asked: who has begun some since is let on soon, and
 * stays. Coming back may take as long as a resume by hand.
 */
#define LEAVE_TIMEOUT_MS 1000
#define COME_TIMEOUT_MS  10000

/* Between two looks for room. */
#define ROOM_LOOK_NS (100 * NS_PER_MS)

/* After a failure; twice as long each time. Somebody waits for those that come. */
#define LEAVE_PAUSE_NS     ((uint64_t)NS_PER_SECOND)
#define LEAVE_PAUSE_MAX_NS (300 * (uint64_t)NS_PER_SECOND)
#define COME_PAUSE_NS      (250 * NS_PER_MS)
#define COME_PAUSE_MAX_NS  (8 * (uint64_t)NS_PER_SECOND)

struct residency {
        struct manager *manager;
        sd_event_source *timer;
        bool is_waited; /* somebody waits for room, as of the last look */
};

static uint64_t now_ns(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

/* The timer, to the millisecond: a program waits. (0 would be the default of sd-event, a quarter of a second.) */

#define ACCURACY_US 1000

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static void look_in(struct residency *residency, uint64_t ns)
{
        uint64_t us = ns / NS_PER_US;

        if (!residency->timer) {
                (void)sd_event_add_time_relative(residency->manager->event, &residency->timer,
                                                 CLOCK_MONOTONIC, us, ACCURACY_US, on_time,
                                                 residency);
                return;
        }
        (void)sd_event_source_set_time_relative(residency->timer, us);
        (void)sd_event_source_set_enabled(residency->timer, SD_EVENT_ONESHOT);
}

static bool is_ours(const struct instance *instance)
{
        return instance->residency.after_ns > 0 || instance_is_away(instance);
}

/* Not from within what calls us: that may be in the middle of something. */
static void look_soon(struct residency *residency, const struct instance *instance)
{
        if (is_ours(instance))
                look_in(residency, 0);
}

/* Failures. */

static void note_reason(struct instance *instance, const char *reason)
{
        snprintf(instance->residency.reason, sizeof(instance->residency.reason), "%s", reason);
}

static void pause_for(struct instance *instance, uint64_t first_ns, uint64_t last_ns)
{
        struct residency_instance *mine = &instance->residency;

        mine->pause_ns = mine->pause_ns < first_ns ? first_ns : 2 * mine->pause_ns;
        if (mine->pause_ns > last_ns)
                mine->pause_ns = last_ns;
        mine->not_before_ns = now_ns() + mine->pause_ns;
}

static void fail(struct instance *instance, bool is_leaving, const char *reason)
{
        char quoted[LOG_QUOTED_MAX];

        if (is_leaving)
                pause_for(instance, LEAVE_PAUSE_NS, LEAVE_PAUSE_MAX_NS);
        else
                pause_for(instance, COME_PAUSE_NS, COME_PAUSE_MAX_NS);
        if (strncmp(instance->residency.reason, reason, sizeof(instance->residency.reason) - 1) !=
            0)
                log_event_of(instance->owner, LOG_LEVEL_NOTICE,
                             is_leaving ? "stays though idle; tried again later"
                                        : "could not come in by demand; tried again",
                             "vgpu=%s reason=%s", instance->name, log_quote(quoted, reason));
        note_reason(instance, reason);
}

static void succeed(struct instance *instance)
{
        instance->residency.pause_ns = instance->residency.not_before_ns = 0;
        note_reason(instance, "");
}

/* Who has work. */

static bool takes_part(const struct guest *guest)
{
        return !guest->is_dead && !guest->is_waiting && guest->slot != UINT32_MAX;
}

/*
 * Did it have any since the last look? What is not known counts as work: also of a gate that is older than
 * we are and counts nothing, for it would not tell who waits either.
 */
static bool had_work(struct guest *guest)
{
        const struct instance_page_slot *slot = &guest->instance->page.map->slot[guest->slot];
        uint32_t n_works = atomic_load(&slot->n_works);
        uint64_t n_launches = atomic_load(&slot->n_launches);
        bool is_new =
                n_works != guest->residency.n_works || n_launches != guest->residency.n_launches;

        guest->residency.n_works = n_works;
        guest->residency.n_launches = n_launches;
        return is_new || n_works == 0 || !guest->gate || guest->watch == GATE_WATCH_NOTHING ||
               atomic_load(&slot->work) != INSTANCE_PAGE_IDLE;
}

static void look_at_work(struct instance *instance, uint64_t now)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (takes_part(guest) && had_work(guest))
                        instance->residency.last_work_ns = now;
}

/* The gates say what they have to do only to those who ask. */
static void tell_gates(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (takes_part(guest) && guest->gate)
                        guest_watch_demand(guest, is_ours(instance));
}

/* What cannot leave, "" if there is nothing: the suspend would fail each time. */
static void find_hold(const struct instance *instance, char *text, size_t size)
{
        const struct guest *guest;
        struct page_use use;

        text[0] = '\0';
        list_for_each(guest, &instance->guests, link) {
                if (!takes_part(guest) || instance->residency.keeps_context)
                        continue;
                page_read(&instance->page, guest->slot, instance->frame_buffer, &use);
                if (use.holds)
                        snprintf(text, size, "process %d (%.40s) holds %s", (int)guest->pid,
                                 guest->name, broadcast_what_keeps(use.holds));
        }
}

/* In the terms of the policy. */

static struct stay get_stay(const struct instance *instance)
{
        const struct residency_instance *mine = &instance->residency;
        char hold[sizeof(mine->reason)];

        find_hold(instance, hold, sizeof(hold));
        return (struct stay){
                .after = mine->after_ns,
                .last_work = mine->last_work_ns,
                .since = mine->since_ns,
                .guaranteed = stay_get_guaranteed(mine->cost_ns,
                                                  instance->manager->options->swap_percent),
                .not_before = mine->not_before_ns,
                .bytes = instance->frame_buffer,
                .is_held = hold[0] != '\0',
        };
}

/* Leaving. */

static bool find_stopped(const struct instance *instance, char *text, size_t size)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (takes_part(guest) && process_is_stopped(guest->pid)) {
                        snprintf(text, size, "process %d (%.40s) is stopped", (int)guest->pid,
                                 guest->name);
                        return true;
                }
        return false;
}

static void leave(struct instance *instance, const char *why)
{
        const struct operation_request request = {
                .keep_context = instance->residency.keeps_context,
                .timeout_ms = LEAVE_TIMEOUT_MS,
                .is_by_itself = true,
        };
        char stopped[sizeof(instance->residency.reason)];
        struct failure failure = { 0 };
        int r;

        if (find_stopped(instance, stopped, sizeof(stopped))) {
                fail(instance, true, stopped);
                return;
        }
        log_event_of(instance->owner, LOG_LEVEL_INFO, "leaves by itself",
                     "vgpu=%s idle=%.3f reason=\"%s\"", instance->name,
                     (double)(now_ns() - instance->residency.last_work_ns) / NS_PER_SECOND, why);
        r = operation_start(instance, &operation_suspend, &request, &failure);
        instance->residency.is_leaving = r == 0;
        if (r == 0)
                return;
        (void)failure_from_errno(&failure, r, "leaving");
        fail(instance, true, failure.message);
}

/* What cannot leave is said, and not tried. */
static void note_hold(struct instance *instance)
{
        char hold[sizeof(instance->residency.reason)], quoted[LOG_QUOTED_MAX];

        find_hold(instance, hold, sizeof(hold));
        if (!hold[0] || strcmp(hold, instance->residency.reason) == 0)
                return;
        note_reason(instance, hold);
        log_event_of(instance->owner, LOG_LEVEL_NOTICE, "stays though idle", "vgpu=%s reason=%s",
                     instance->name, log_quote(quoted, hold));
}

/* Returns when to look again. */
static uint64_t look_at_resident(struct instance *instance, uint64_t now)
{
        struct residency_instance *mine = &instance->residency;
        struct stay stay;

        look_at_work(instance, now);
        if (mine->last_work_ns == now)
                note_reason(instance, "");
        stay = get_stay(instance);
        if (stay.is_held && now - mine->last_work_ns >= mine->after_ns)
                note_hold(instance);
        if (stay_get_end(&stay) <= now)
                leave(instance, "it had no work for the time that its owner set");
        return now + residency_get_interval(instance);
}

/* Coming. */

static bool is_wanted(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest->is_dead && (guest->is_waiting || guest->residency.is_wanting))
                        return true;
        return false;
}

/*
 * What the device has promised beyond what it has if @instance comes as well. Those that leave by themselves
 * count as gone; a suspend by hand may take as long as who asked for it likes.
 */
static uint64_t get_lack(const struct instance *instance)
{
        uint64_t promised = device_get_promised(instance->device, instance);
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link)
                if (other != instance && other->device == instance->device && other->operation &&
                    other->state == STATE_SUSPENDING && other->operation->is_by_itself)
                        promised -= other->frame_buffer;
        promised += instance->frame_buffer;
        return promised > instance->device->memory_total ? promised - instance->device->memory_total
                                                         : 0;
}

struct candidate {
        struct stay stay;
        struct instance *instance;
};

static size_t find_candidates(const struct instance *coming, uint64_t now,
                              struct candidate *candidates, struct stay **stays)
{
        struct instance *instance;
        size_t n = 0;

        list_for_each(instance, &coming->manager->instances, link) {
                if (instance == coming || instance->device != coming->device ||
                    !residency_may_leave(instance))
                        continue;
                look_at_work(instance, now);
                candidates[n] = (struct candidate){ get_stay(instance), instance };
                stays[n] = &candidates[n].stay;
                n++;
        }
        return n;
}

/* False: those that may leave are not enough. */
static bool make_room(struct instance *coming, uint64_t bytes, uint64_t now)
{
        size_t n = list_count(&coming->manager->instances);
        CLEANUP(freep) struct candidate *candidates = calloc(n, sizeof(*candidates));
        CLEANUP(freep) struct stay **stays = calloc(n, sizeof(*stays));

        if (!candidates || !stays)
                return false;
        n = find_candidates(coming, now, candidates, stays);
        if (!stay_choose(stays, n, bytes, now))
                return false;
        for (size_t i = 0; i < n; i++)
                if (candidates[i].stay.is_chosen)
                        leave(candidates[i].instance, "another vGPU has work");
        return true;
}

static bool has_room(const struct instance *instance)
{
        return device_get_promised(instance->device, instance) + instance->frame_buffer <=
               instance->device->memory_total;
}

static void come(struct instance *instance)
{
        const struct operation_request request = { .timeout_ms = COME_TIMEOUT_MS,
                                                   .is_by_itself = true };
        struct failure failure = { 0 };
        int r;

        log_event_of(instance->owner, LOG_LEVEL_INFO, "comes in by demand", "vgpu=%s waited=%.3f",
                     instance->name,
                     (double)(now_ns() - instance->residency.wanted_ns) / NS_PER_SECOND);
        r = operation_start(instance, &operation_resume, &request, &failure);
        instance->residency.is_coming = r == 0;
        if (r == 0)
                return;
        (void)failure_from_errno(&failure, r, "coming in");
        fail(instance, false, failure.message);
}

/* It waits longer than @instance does, and needs no more room. One that needs more is passed. */
static bool is_before(const struct instance *other, const struct instance *instance, uint64_t now)
{
        return other != instance && other->device == instance->device && !other->operation &&
               instance_is_away(other) && other->residency.wanted_ns > 0 &&
               other->residency.wanted_ns < instance->residency.wanted_ns &&
               other->residency.not_before_ns <= now &&
               other->frame_buffer <= instance->frame_buffer;
}

static bool is_first(const struct instance *instance, uint64_t now)
{
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link)
                if (is_before(other, instance, now))
                        return false;
        return true;
}

static uint64_t look_at_away(struct instance *instance, uint64_t now)
{
        struct residency_instance *mine = &instance->residency;
        uint64_t lack;

        if (!is_wanted(instance)) {
                mine->wanted_ns = 0;
                return STAY_NEVER;
        }
        if (mine->wanted_ns == 0) {
                mine->wanted_ns = now;
                mine->not_before_ns = mine->pause_ns = 0;
        }
        if (mine->not_before_ns > now)
                return mine->not_before_ns;
        if (!is_first(instance, now))
                return now + ROOM_LOOK_NS;
        lack = get_lack(instance);
        if (mine->pause_ns > 0 || instance->image) /* nobody leaves for one that could not come */
                lack = 0;
        if (lack > 0 && !make_room(instance, lack, now))
                note_reason(instance, "its device has promised its memory to vGPUs that have work "
                                      "or do not leave by themselves");
        else if (has_room(instance))
                come(instance);
        return now + ROOM_LOOK_NS;
}

/* Looking. */

static uint64_t look_at(struct instance *instance, uint64_t now)
{
        tell_gates(instance);
        if (instance->operation && is_ours(instance))
                return now + ROOM_LOOK_NS / 4;
        if (residency_may_leave(instance))
                return look_at_resident(instance, now);
        return instance_is_away(instance) ? look_at_away(instance, now) : STAY_NEVER;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct residency *residency = userdata;
        uint64_t now = now_ns(), next = STAY_NEVER;
        struct instance *instance, *after;

        (void)usec;
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (!residency->manager->is_ready) {
                look_in(residency, ROOM_LOOK_NS);
                return 0;
        }
        residency->is_waited = false;
        list_for_each_safe(instance, after, &residency->manager->instances, link) {
                uint64_t then = look_at(instance, now);

                next = then < next ? then : next;
                residency->is_waited |= instance->residency.wanted_ns > 0;
        }
        if (next != STAY_NEVER)
                look_in(residency, next > now ? next - now : 0);
        return 0;
}

/* Events. */

static void begin_stay(struct instance *instance)
{
        instance->residency.since_ns = instance->residency.last_work_ns = now_ns();
        instance->residency.wanted_ns = 0;
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
        look_in(residency, 0);
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        if (event == INSTANCE_LOADED || event == INSTANCE_ADDED)
                begin_stay(instance);
        if (event == INSTANCE_REMOVED || event == INSTANCE_RESIZED)
                room_came(userdata);
        else if (event != INSTANCE_UNLOADED)
                look_soon(userdata, instance);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        struct instance *instance = guest->instance;

        if (event == GUEST_UNLOADED)
                return;
        if (event == GUEST_LEFT)
                guest->residency.is_wanting = false;
        if (event == GUEST_JOINED)
                instance->residency.last_work_ns = now_ns();
        if (event == GUEST_RETURNED && guest->state == GATE_STATE_OPEN)
                guest->residency.is_wanting = false;
        if (event == GUEST_WANTS && !guest->is_waiting)
                guest->residency.is_wanting = true;
        look_soon(userdata, instance);
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

        succeed(instance);
        if (operation->kind == &operation_suspend) {
                mine->leave_ns = took_ns;
                return;
        }
        if (operation->kind == &operation_resume)
                mine->cost_ns = mine->leave_ns + took_ns;
        begin_stay(instance);
        forget_demand(instance);
}

static void on_operation(const struct operation *operation, bool has_succeeded, void *userdata)
{
        struct instance *instance = operation->instance;

        instance->residency.is_coming = instance->residency.is_leaving = false;
        if (has_succeeded)
                note_success(operation, now_ns() - operation->started_ns);
        else if (operation->is_by_itself)
                fail(instance, operation->kind == &operation_suspend, operation->failure.message);
        if (!has_succeeded && operation->kind == &operation_suspend)
                forget_demand(instance); /* its gates are open again */
        if (has_succeeded && operation->kind != &operation_resume)
                room_came(userdata);
        look_soon(userdata, instance);
}

static const struct observer observer = { .of_instance = on_instance,
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
        mine->wanted_ns = 0;
        succeed(instance);
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
        succeed(instance);
        look_in(instance->manager->residency, 0); /* also to tell gates that nobody asks any more */
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
