/* SPDX-License-Identifier: Apache-2.0 */
/* The manager's side of the turns: who is in the schedule, and by which settings. */
#include "manager/schedule/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/recovery.h"
#include "manager/schedule/schedule-internal.h"
#include "state/state-page.h"

/* What is about to be forgotten is tried to be let on so often. */
#define LET_ON_TRIES 10

/* Birth and death. */

int schedule_new(struct schedule **ret_schedule, struct device *device)
{
        struct manager *manager = device->manager;
        struct schedule *schedule = calloc(1, sizeof(*schedule));
        int r = 0;

        if (!schedule)
                return -ENOMEM;
        schedule->device = device;
        schedule->reason = "the run list of the device is used";
        list_init(&schedule->vgpus);
        scheduler_init(&schedule->scheduler);
        pthread_mutex_init(&schedule->lock, NULL);
        if (manager->options->has_gate_turns)
                schedule->reason = "vgpud was started with --turns gate";
        else
                r = channels_host_new(&schedule->owned_host, manager->simulation);
        schedule->host = schedule->owned_host;
        if (r < 0) {
                schedule_free(schedule);
                return r;
        }
        *ret_schedule = schedule;
        return 0;
}

static void free_vgpu(struct schedule *schedule, struct schedule_vgpu *vgpu)
{
        scheduler_remove(&schedule->scheduler, &vgpu->member);
        if (schedule->has_pending && schedule->pending.owner == &vgpu->member) {
                schedule->has_pending = false; /* the gates of others are closed for it */
                scheduler_void(&schedule->scheduler);
        }
        list_remove(&vgpu->link);
        list_remove(&vgpu->of_instance);
        free(vgpu);
}

/* Channels. */

/* The plan, and what the keeper's table has of both: not of the reserve that is for vgpud itself. */
#define CHANNELS_COST 3

static int charge_channels(struct guest *guest)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = CHANNELS_COST } };
        struct accounts *accounts = guest->instance->manager->accounts;

        if (account_get_room(accounts, geteuid(), ACCOUNT_DESCRIPTORS) < CHANNELS_COST)
                return -EMFILE;
        return account_force(accounts, &guest->charge, guest->payer, &cost);
}

static void close_channels(struct schedule_guest *guest)
{
        if (!guest->channels)
                return;
        guest->channels = channels_free(guest->channels);
        account_give(&guest->guest->charge, ACCOUNT_DESCRIPTORS, CHANNELS_COST);
}

static int open_channels(struct schedule *schedule, struct schedule_guest *guest)
{
        int r;

        if (!schedule->host)
                return 0;
        r = charge_channels(guest->guest);
        if (r < 0)
                return r;
        r = channels_new(&guest->channels, schedule->host, guest->guest->pid, guest->guest->pidfd,
                         &guest->vgpu->page->channels[guest->guest->slot]);
        if (r < 0) {
                account_give(&guest->guest->charge, ACCOUNT_DESCRIPTORS, CHANNELS_COST);
                return r;
        }
        return recovery_put_plan(guest->guest, channels_get_plan_fd(guest->channels),
                                 channels_get_process_fd(guest->channels));
}

/* Leaving. */

static void free_guest(struct schedule *schedule, struct schedule_vgpu *vgpu,
                       struct schedule_guest *guest)
{
        pthread_mutex_lock(&schedule->lock);
        list_remove(&guest->link);
        list_remove(&guest->of_guest);
        vgpu->n_guests--;
        schedule->n_guests--;
        pthread_mutex_unlock(&schedule->lock);
        close_channels(guest);
        free(guest);
}

static bool let_go(struct schedule *schedule, struct schedule_guest *guest)
{
        bool is_on;

        pthread_mutex_lock(&schedule->lock);
        guest->is_leaving = true;
        is_on = schedule_let_guest_on(guest);
        pthread_mutex_unlock(&schedule->lock);
        return is_on;
}

/* It lives, and must not stay off the device: while it does, it stays here and the thread goes on trying. */
static void remove_guest(struct schedule *schedule, struct schedule_vgpu *vgpu,
                         struct schedule_guest *guest)
{
        if (!let_go(schedule, guest))
                return;
        if (guest->channels)
                recovery_drop_plan(guest->guest);
        free_guest(schedule, vgpu, guest);
}

/* Nothing of it may be left here; what cannot be done now, the keeper does when we end. */
static void forget_guest(struct schedule *schedule, struct schedule_vgpu *vgpu,
                         struct schedule_guest *guest)
{
        bool is_on = let_go(schedule, guest);

        for (int i = 1; i < LET_ON_TRIES && !is_on; i++)
                is_on = let_go(schedule, guest);
        if (!is_on)
                log_event_of(guest->guest->payer, LOG_LEVEL_ERROR,
                             "a process stays off its device; it is let on when vgpud ends",
                             "pid=%d error=\"%s\"", (int)guest->guest->pid,
                             strerror(-guest->stuck));
        else if (guest->channels)
                recovery_drop_plan(guest->guest);
        free_guest(schedule, vgpu, guest);
}

static void hold_vgpu(struct schedule *schedule, struct schedule_vgpu *vgpu)
{
        struct schedule_guest *guest, *after;

        pthread_mutex_lock(&schedule->lock);
        vgpu->is_held = true;
        schedule_let_on(schedule, vgpu);
        scheduler_set_work(&schedule->scheduler, &vgpu->member, false);
        schedule_wake(schedule);
        pthread_mutex_unlock(&schedule->lock);
        list_for_each_safe(guest, after, &vgpu->guests, link)
                remove_guest(schedule, vgpu, guest);
}

static void forget_vgpu(struct schedule *schedule, struct schedule_vgpu *vgpu)
{
        struct schedule_guest *guest, *after;

        list_for_each_safe(guest, after, &vgpu->guests, link)
                forget_guest(schedule, vgpu, guest);
        pthread_mutex_lock(&schedule->lock);
        schedule_give_to_meter(schedule, vgpu, clock_now(CLOCK_MONOTONIC));
        free_vgpu(schedule, vgpu);
        pthread_mutex_unlock(&schedule->lock);
}

static void leave(struct schedule_vgpu *vgpu)
{
        hold_vgpu(vgpu->schedule, vgpu);
        forget_vgpu(vgpu->schedule, vgpu);
}

void schedule_hold(struct instance *instance)
{
        struct schedule_vgpu *vgpu;
        struct schedule *schedule = schedule_find(instance, &vgpu);

        if (schedule)
                hold_vgpu(schedule, vgpu);
}

static void forget(struct guest *guest)
{
        struct schedule_guest *found, *after;

        list_for_each_safe(found, after, &guest->turns, of_guest)
                forget_guest(found->vgpu->schedule, found->vgpu, found);
}

static void forget_instance(struct instance *instance)
{
        struct schedule_vgpu *vgpu, *after;

        list_for_each_safe(vgpu, after, &instance->turns, of_instance)
                leave(vgpu);
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        (void)userdata;
        if (event == INSTANCE_UNLOADED)
                forget_instance(instance);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        (void)userdata;
        if (event == GUEST_LEFT || event == GUEST_UNLOADED)
                forget(guest);
}

static struct observer observer = { .of_instance = on_instance, .of_guest = on_guest };

void schedule_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, NULL);
}

struct schedule *schedule_free(struct schedule *schedule)
{
        struct schedule_vgpu *vgpu, *after;

        if (!schedule)
                return NULL;
        schedule_end_thread(schedule);
        list_for_each_safe(vgpu, after, &schedule->vgpus, link)
                leave(vgpu);
        channels_host_free(schedule->owned_host);
        pthread_mutex_destroy(&schedule->lock);
        free(schedule->on);
        free(schedule->off);
        free(schedule);
        return NULL;
}

/* Coming. */

static int make_room(struct schedule *schedule)
{
        uint32_t room = schedule->room ? 2 * schedule->room : 16;
        struct channels **on, **off;

        if (schedule->n_guests < schedule->room)
                return 0;
        on = reallocarray(schedule->on, room, sizeof(*on));
        if (on)
                schedule->on = on;
        off = reallocarray(schedule->off, room, sizeof(*off));
        if (off)
                schedule->off = off;
        if (!on || !off)
                return -ENOMEM;
        schedule->room = room;
        return 0;
}

static uint32_t portion_of(const struct instance *instance)
{
        uint64_t n = instance_home(instance)->memory_total / instance->frame_buffer;

        return n > 0 ? (uint32_t)(SCHEDULER_WHOLE / n) : SCHEDULER_WHOLE;
}

static struct schedule_vgpu *add_vgpu(struct schedule *schedule, struct instance *instance)
{
        struct schedule_vgpu *vgpu = calloc(1, sizeof(*vgpu));

        if (!vgpu)
                return NULL;
        vgpu->schedule = schedule;
        vgpu->instance = instance;
        vgpu->page = instance->part[0].page.map;
        list_init(&vgpu->guests);
        vgpu->member.id = instance->id;
        vgpu->member.devices = schedule_get_devices_of(instance);
        vgpu->member.share = instance->share;
        vgpu->member.portion = portion_of(instance);
        pthread_mutex_lock(&schedule->lock);
        list_append(&schedule->vgpus, &vgpu->link);
        list_append(&instance->turns, &vgpu->of_instance);
        scheduler_add(&schedule->scheduler, &vgpu->member);
        pthread_mutex_unlock(&schedule->lock);
        return vgpu;
}

static void say_without_turns(const struct guest *guest, int error)
{
        log_event_of(guest->payer, LOG_LEVEL_WARNING, "a process takes no turns",
                     "vgpu=%s pid=%d error=\"%s\"", guest->instance->name, (int)guest->pid,
                     strerror(-error));
}

static void add_guest(struct schedule *schedule, struct schedule_vgpu *vgpu, struct guest *guest)
{
        struct schedule_guest *added = calloc(1, sizeof(*added));
        int r = added ? 0 : -ENOMEM;

        if (r == 0) {
                list_init(&added->of_guest);
                added->vgpu = vgpu;
                added->guest = guest;
                added->slot = &vgpu->page->slot[guest->slot];
                r = open_channels(schedule, added);
        }
        if (r < 0) {
                say_without_turns(guest, r);
                if (added)
                        close_channels(added);
                free(added);
                return;
        }
        pthread_mutex_lock(&schedule->lock);
        r = make_room(schedule);
        list_append(&vgpu->guests, &added->link);
        list_append(&guest->turns, &added->of_guest);
        vgpu->n_guests++;
        schedule->n_guests++;
        schedule_wake(schedule);
        pthread_mutex_unlock(&schedule->lock);
        if (r < 0)
                forget_guest(schedule, vgpu, added);
}

static bool takes_turns(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->presence != GUEST_JOINING && guest->gate &&
               guest->slot != UINT32_MAX && guest->context.state == GUEST_CONTEXT_RUNNING;
}

static struct schedule_guest *find_guest(const struct schedule_vgpu *vgpu,
                                         const struct guest *guest)
{
        struct schedule_guest *found;

        list_for_each(found, &guest->turns, of_guest)
                if (found->vgpu == vgpu)
                        return found;
        return NULL;
}

/* A process costs descriptors: it is here only where there is something to enforce. */
static void settle_guests(struct schedule *schedule, struct schedule_vgpu *vgpu, bool is_enforcing)
{
        struct schedule_guest *old, *after;
        struct guest *guest;

        list_for_each_safe(old, after, &vgpu->guests, link)
                if (takes_turns(old->guest))
                        old->is_leaving = false;
                else
                        remove_guest(schedule, vgpu, old);
        if (!is_enforcing)
                return;
        list_for_each(guest, &vgpu->instance->guests, link)
                if (takes_turns(guest) && !find_guest(vgpu, guest))
                        add_guest(schedule, vgpu, guest);
}

/* Where it was until devices were joined, or parted: two would have it on and off the device. */
static void leave_others(const struct schedule *schedule, struct instance *instance)
{
        struct schedule_vgpu *vgpu, *after;

        list_for_each_safe(vgpu, after, &instance->turns, of_instance) {
                if (vgpu->schedule == schedule)
                        continue;
                hold_vgpu(vgpu->schedule, vgpu);
                if (vgpu->n_guests == 0)
                        forget_vgpu(vgpu->schedule, vgpu);
        }
}

static void settle_vgpu(struct schedule *schedule, struct instance *instance)
{
        struct schedule_vgpu *vgpu = schedule_find_vgpu(schedule, instance);
        uint32_t portion = portion_of(instance);

        leave_others(schedule, instance);
        if (!vgpu)
                vgpu = add_vgpu(schedule, instance);
        if (!vgpu)
                return;
        pthread_mutex_lock(&schedule->lock);
        vgpu->is_held = false;
        scheduler_set_devices(&schedule->scheduler, &vgpu->member,
                              schedule_get_devices_of(instance));
        scheduler_set_class(&schedule->scheduler, &vgpu->member,
                            instance->residency.is_interactive);
        if (vgpu->member.share != instance->share || vgpu->member.portion != portion) {
                vgpu->member.portion = portion;
                scheduler_set_share(&schedule->scheduler, &vgpu->member, instance->share);
        }
        pthread_mutex_unlock(&schedule->lock);
}

/* Also while its last operation tidies up: its programs run again, beside the others. */
static bool is_member(const struct instance *instance)
{
        return instance_is_usable(instance) && !instance->course.is_undoing;
}

static void settle_vgpus(struct schedule *schedule)
{
        const uint64_t joined = schedule_get_devices(schedule);
        struct manager *manager = schedule->device->manager;
        struct schedule_vgpu *vgpu, *after;
        struct instance *instance;
        bool is_enforcing;

        list_for_each_safe(vgpu, after, &schedule->vgpus, link) {
                if ((schedule_get_devices_of(vgpu->instance) & joined) && is_member(vgpu->instance))
                        continue;
                hold_vgpu(schedule, vgpu);
                if (vgpu->n_guests == 0)
                        forget_vgpu(schedule, vgpu);
        }
        list_for_each(instance, &manager->instances, link)
                if ((schedule_get_devices_of(instance) & joined) && is_member(instance))
                        settle_vgpu(schedule, instance);
        pthread_mutex_lock(&schedule->lock);
        is_enforcing = scheduler_is_enforcing(&schedule->scheduler);
        pthread_mutex_unlock(&schedule->lock);
        list_for_each(vgpu, &schedule->vgpus, link) {
                atomic_store(&vgpu->page->is_eager, is_enforcing && vgpu->member.is_interactive);
                if (!vgpu->is_held)
                        settle_guests(schedule, vgpu, is_enforcing);
        }
}

static void settle(struct schedule *schedule)
{
        settle_vgpus(schedule);
        pthread_mutex_lock(&schedule->lock);
        if (schedule_is_needed(schedule) && schedule_start_thread(schedule) < 0)
                log_event(LOG_LEVEL_ERROR, "no thread for the turns of a device", "device=%u",
                          schedule->device->index);
        schedule_report(schedule);
        schedule_wake(schedule);
        pthread_mutex_unlock(&schedule->lock);
}

void schedule_settle(struct device *device)
{
        struct schedule *joined = device->schedule ? schedule_of(device) : NULL;

        if (!joined)
                return;
        if (joined != device->schedule)
                settle(device->schedule);
        settle(joined);
}

/* Settings. */

void schedule_configure(struct device *device, const struct state_scheduler *settings)
{
        struct schedule *schedule = device->schedule;
        struct scheduler_settings asked = {
                .policy = settings->policy,
                .is_adaptive = settings->arr == STATE_ARR_ENABLED,
                .frequency = settings->frequency,
                .averaging_factor = settings->averaging_factor,
                .time_slice = settings->time_slice,
        };

        if (!schedule)
                return;
        pthread_mutex_lock(&schedule->lock);
        scheduler_configure(&schedule->scheduler, &asked);
        schedule_wake(schedule);
        pthread_mutex_unlock(&schedule->lock);
        observer_tell_changed(&device->manager->observers);
}
