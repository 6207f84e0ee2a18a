/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a device's turns. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "manager/schedule/schedule-internal.h"

/* How often to look whether who has the turn still has work, and whether somebody has new work. */
#define LOOK_IN_TURN_NS 2000000
#define LOOK_NS         10000000

/* Where there is nothing to enforce. */
#define LOOK_IDLE_NS 3600000000000ull

/* Switches in a row of a process that fail before it is left alone. */
#define FAILURES_MAX 500

/* And then, while it cannot be let on: every so many looks. */
#define LOOKS_BETWEEN_TRIES 50

/* At the gate: how often to look whether the last turn's work is done, and when to go on without. */
#define DRAIN_LOOK_NS 500000
#define DRAIN_MAX_NS  2000000000ull

/* And until a vGPU of several devices may submit for a moment. */
#define PULSE_NS 10000000

bool schedule_is_needed(const struct schedule *schedule)
{
        return schedule->n_guests > 0 && scheduler_is_enforcing(&schedule->scheduler);
}

/* Who has work. */

static bool guest_has_work(const struct schedule_guest *guest)
{
        return !guest->is_leaving &&
               atomic_load_explicit(&guest->slot->work, memory_order_relaxed) != INSTANCE_PAGE_IDLE;
}

static bool vgpu_has_work(const struct schedule_vgpu *vgpu)
{
        const struct schedule_guest *guest;

        if (vgpu->is_held)
                return false;
        list_for_each(guest, &vgpu->guests, link)
                if (guest_has_work(guest))
                        return true;
        return false;
}

static void see_who_has_work(struct schedule *schedule)
{
        struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link)
                scheduler_set_work(&schedule->scheduler, &vgpu->member, vgpu_has_work(vgpu));
}

/* In hardware. */

static bool must_be_off(const struct schedule *schedule, const struct schedule_vgpu *vgpu,
                        const struct schedule_guest *guest)
{
        return schedule->host && vgpu->is_off && !guest->is_leaving && guest->error == 0;
}

/* Where it fails again and again, not at each look: that is time of the turns of others. */
static bool is_due(struct schedule_guest *guest)
{
        return guest->n_failed <= FAILURES_MAX || ++guest->n_looks % LOOKS_BETWEEN_TRIES == 0;
}

static bool must_switch(const struct schedule *schedule, struct schedule_guest *guest, bool is_off)
{
        if (!guest->channels)
                return false;
        if (channels_are_off(guest->channels) != is_off)
                return is_due(guest);
        if (is_off)
                return channels_have_changed(guest->channels);
        return !guest->is_known && guest->error == 0 && schedule->host;
}

static void collect(struct schedule *schedule, uint32_t *ret_n_on, uint32_t *ret_n_off)
{
        struct schedule_vgpu *vgpu;
        struct schedule_guest *guest;

        *ret_n_on = *ret_n_off = 0;
        list_for_each(vgpu, &schedule->vgpus, link)
                list_for_each(guest, &vgpu->guests, link) {
                        bool is_off = must_be_off(schedule, vgpu, guest);

                        if (!must_switch(schedule, guest, is_off))
                                continue;
                        guest->is_known = guest->is_switching = true;
                        if (is_off)
                                schedule->off[(*ret_n_off)++] = guest->channels;
                        else
                                schedule->on[(*ret_n_on)++] = guest->channels;
                }
}

/*
 * That a process is gone is no failure. While it makes or frees channels the driver has something
 * against it again and again; so much patience lasts for seconds.
 */
static bool is_failure(struct schedule_guest *guest, int error)
{
        if (error == 0 || error == -ESRCH) {
                guest->n_failed = 0;
                return false;
        }
        guest->n_failed++;
        if (error == -EPERM || error == -ENOSYS || error == -E2BIG || error == -EPROTO)
                return true;
        return guest->n_failed > FAILURES_MAX;
}

static void let_guest_on(struct schedule_guest *guest)
{
        channels_switch(&guest->channels, 1, NULL, 0);
        guest->stuck = channels_are_off(guest->channels) ? channels_get_error(guest->channels) : 0;
}

bool schedule_let_guest_on(struct schedule_guest *guest)
{
        if (guest->channels && channels_are_off(guest->channels))
                let_guest_on(guest);
        return guest->stuck == 0;
}

static void note_errors(struct schedule *schedule)
{
        struct schedule_vgpu *vgpu;
        struct schedule_guest *guest;

        list_for_each(vgpu, &schedule->vgpus, link)
                list_for_each(guest, &vgpu->guests, link) {
                        int error;

                        if (!guest->is_switching)
                                continue;
                        guest->is_switching = false;
                        error = channels_get_error(guest->channels);
                        if (error < 0 && error != -ESRCH)
                                guest->is_known = false; /* the next look tries again */
                        guest->stuck = channels_are_off(guest->channels) ? error : 0;
                        if (!is_failure(guest, error) || !schedule->host)
                                continue;
                        guest->error = error;
                        let_guest_on(guest);
                        if (error == -EPERM || error == -ENOSYS)
                                schedule->failure = error;
                }
}

/* From now on turns are taken at the gates. */
static void let_on_for_good(struct schedule *schedule)
{
        struct schedule_vgpu *vgpu;
        struct schedule_guest *guest;

        list_for_each(vgpu, &schedule->vgpus, link)
                list_for_each(guest, &vgpu->guests, link) {
                        guest->error = 0;
                        if (guest->channels)
                                let_guest_on(guest);
                }
        schedule->host = NULL;
}

static void switch_hardware(struct schedule *schedule)
{
        uint32_t n_on, n_off;

        collect(schedule, &n_on, &n_off);
        if (n_on + n_off == 0)
                return;
        channels_host_set_joint(schedule->owned_host, schedule->scheduler.is_joint);
        channels_switch(schedule->on, n_on, schedule->off, n_off);
        note_errors(schedule);
        if (schedule->failure < 0)
                let_on_for_good(schedule);
        if (schedule->failure == -ENOSYS)
                schedule->reason = "the kernel has no pidfd_getfd(2)";
        else if (schedule->failure < 0)
                schedule->reason = "vgpud may not use the run list of the device: it needs "
                                   "CAP_SYS_NICE and CAP_SYS_PTRACE";
}

/* At the gates. */

static void set_turn(const struct schedule_vgpu *vgpu, enum instance_page_turn turn)
{
        if (atomic_exchange(&vgpu->page->turn, turn) == INSTANCE_PAGE_CLOSED &&
            turn != INSTANCE_PAGE_CLOSED)
                syscall(SYS_futex, &vgpu->page->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void close_turns(const struct schedule *schedule)
{
        const struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link)
                if (vgpu->is_off)
                        set_turn(vgpu, INSTANCE_PAGE_CLOSED);
}

static void open_turns(const struct schedule *schedule, enum instance_page_turn turn)
{
        const struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link)
                if (!vgpu->is_off)
                        set_turn(vgpu, turn);
}

static bool is_drained_of(const struct schedule_vgpu *vgpu)
{
        const struct schedule_guest *guest;

        list_for_each(guest, &vgpu->guests, link)
                if (atomic_load(&guest->slot->work) == INSTANCE_PAGE_WORKING)
                        return false;
        return true;
}

/* Is there anybody's work left on the device who has no turn any more? */
static bool is_drained(const struct schedule *schedule)
{
        const struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link)
                if (vgpu->is_off && !is_drained_of(vgpu))
                        return false;
        return true;
}

static bool has_several(const struct scheduler_member *member)
{
        return (member->devices & (member->devices - 1)) != 0;
}

/* Both. */

static void set_off(struct schedule *schedule, const struct scheduler_order *order)
{
        struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link)
                vgpu->is_off = !scheduler_runs(order, &vgpu->member) && vgpu->member.has_work &&
                               !vgpu->is_held;
}

void schedule_let_on(struct schedule *schedule, struct schedule_vgpu *vgpu)
{
        vgpu->is_off = false;
        switch_hardware(schedule);
        set_turn(vgpu, INSTANCE_PAGE_FREE);
}

/* Returns when to look again. */
static uint64_t carry_out(struct schedule *schedule, struct scheduler_order *order, uint64_t now)
{
        set_off(schedule, order);
        if (schedule->host) {
                switch_hardware(schedule);
                scheduler_begin(&schedule->scheduler, order, clock_now(CLOCK_MONOTONIC));
                return now;
        }
        close_turns(schedule);
        schedule->has_pending = true;
        schedule->pending = *order;
        schedule->pending_until = now + DRAIN_MAX_NS;
        schedule->pulse_ns = now + PULSE_NS;
        return now;
}

/*
 * A kernel of a vGPU of several devices may wait for one that the vGPU was about to submit to another device
 * when its turn ended. Such a vGPU may submit for a moment, now and then, until its work is done.
 */
static void pulse(struct schedule *schedule, uint64_t now)
{
        const struct schedule_vgpu *vgpu;

        if (schedule->is_pulsing) {
                close_turns(schedule);
                schedule->is_pulsing = false;
                return;
        }
        if (!schedule->scheduler.is_joint || now < schedule->pulse_ns)
                return;
        list_for_each(vgpu, &schedule->vgpus, link)
                if (vgpu->is_off && has_several(&vgpu->member) && !is_drained_of(vgpu)) {
                        set_turn(vgpu, INSTANCE_PAGE_OPEN);
                        schedule->is_pulsing = true;
                }
        schedule->pulse_ns = now + PULSE_NS;
}

static uint64_t wait_for_drain(struct schedule *schedule, uint64_t now)
{
        if (!is_drained(schedule) && now < schedule->pending_until) {
                pulse(schedule, now);
                return now + DRAIN_LOOK_NS;
        }
        if (schedule->is_pulsing)
                close_turns(schedule);
        schedule->has_pending = schedule->is_pulsing = false;
        open_turns(schedule, schedule->pending.mode == SCHEDULER_FREE ? INSTANCE_PAGE_FREE
                                                                      : INSTANCE_PAGE_OPEN);
        scheduler_begin(&schedule->scheduler, &schedule->pending, now);
        return now + DRAIN_LOOK_NS;
}

static uint64_t step(struct schedule *schedule)
{
        struct scheduler_order order;
        uint64_t now = clock_now(CLOCK_MONOTONIC), look;

        if (!schedule->host)
                switch_hardware(schedule); /* who could not be let on when that ended */
        if (schedule->has_pending)
                return wait_for_drain(schedule, now);
        see_who_has_work(schedule);
        if (scheduler_decide(&schedule->scheduler, now, &order)) {
                now = carry_out(schedule, &order, now);
                if (schedule->has_pending)
                        return now + DRAIN_LOOK_NS;
                now = clock_now(CLOCK_MONOTONIC);
        } else if (schedule->host) {
                set_off(schedule, &order);
                switch_hardware(schedule); /* who woke up, new channels, and what failed */
        }
        look = now + (order.mode == SCHEDULER_FREE ? LOOK_NS : LOOK_IN_TURN_NS);
        return order.until_ns < look ? order.until_ns : look;
}

static void let_all_on(struct schedule *schedule)
{
        struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link)
                vgpu->is_off = false;
        schedule->has_pending = schedule->is_pulsing = false;
        switch_hardware(schedule);
        open_turns(schedule, INSTANCE_PAGE_FREE);
}

static bool is_anybody_stuck(const struct schedule *schedule)
{
        const struct schedule_vgpu *vgpu;
        const struct schedule_guest *guest;

        list_for_each(vgpu, &schedule->vgpus, link)
                list_for_each(guest, &vgpu->guests, link)
                        if (guest->stuck < 0)
                                return true;
        return false;
}

static void stop_turns(struct schedule *schedule)
{
        struct scheduler_order order = { .mode = SCHEDULER_FREE, .until_ns = SCHEDULER_UNLIMITED };

        let_all_on(schedule);
        scheduler_begin(&schedule->scheduler, &order, clock_now(CLOCK_MONOTONIC));
}

static void *run_schedule(void *argument)
{
        struct schedule *schedule = argument;
        struct schedule_wait wait;

        (void)pthread_setname_np(pthread_self(), "vgpud-turns");
        pthread_mutex_lock(&schedule->lock);
        while (!schedule->must_end) {
                schedule_wait_begin(&wait, schedule);
                if (schedule_is_needed(schedule)) {
                        schedule_wait_until(&wait, schedule, step(schedule));
                        continue;
                }
                stop_turns(schedule);
                schedule_wait_until(&wait, schedule,
                                    clock_now(CLOCK_MONOTONIC) +
                                            (is_anybody_stuck(schedule) ? LOOK_NS : LOOK_IDLE_NS));
        }
        stop_turns(schedule);
        pthread_mutex_unlock(&schedule->lock);
        return NULL;
}

/* Its life. */

int schedule_start_thread(struct schedule *schedule)
{
        sigset_t all, before;
        int r;

        if (schedule->has_thread)
                return 0;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        r = -pthread_create(&schedule->thread, NULL, run_schedule, schedule);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        schedule->has_thread = r == 0;
        return r;
}

void schedule_end_thread(struct schedule *schedule)
{
        if (!schedule->has_thread)
                return;
        pthread_mutex_lock(&schedule->lock);
        schedule->must_end = true;
        schedule_wake(schedule);
        pthread_mutex_unlock(&schedule->lock);
        pthread_join(schedule->thread, NULL);
        schedule->has_thread = false;
}
