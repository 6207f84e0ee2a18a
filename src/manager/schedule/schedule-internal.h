/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SCHEDULE_INTERNAL_H
#define MANAGER_SCHEDULE_INTERNAL_H

/* For schedule*.c. What the thread may touch it touches with the lock held. */

#include <linux/futex.h>
#include <pthread.h>

#include "base/list.h"
#include "channels/channels.h"
#include "scheduler/scheduler.h"
#include "state/instance-page.h"

struct schedule_guest {
        struct list link;
        struct list of_guest; /* in guest->turns; the manager's thread only, as the next two */
        struct schedule_vgpu *vgpu;
        struct guest *guest;
        struct instance_page_slot *slot;
        struct channels *channels; /* NULL: turns are taken at the gate */
        bool is_known;             /* whether it is on the device: not before the first switch */
        bool is_switching;         /* in the switch under way */
        uint32_t n_failed;         /* times in a row */
        uint32_t n_looks;          /* since it fails for good */
        int error;                 /* it is left alone because of this; 0: it is not */
        bool is_leaving;           /* takes no turns any more, and is let on the device */
        int stuck; /* it should be let on, which fails because of this, and is tried again; 0 */
        bool is_error_told, is_stuck_told;
};

struct schedule_vgpu {
        struct list link;
        struct list of_instance; /* in instance->turns; the manager's thread only */
        struct schedule *schedule;
        struct scheduler_member member;
        struct instance *instance; /* the manager's thread only */
        struct instance_page *page;
        struct list guests;
        bool is_held;   /* out of the turns */
        bool is_off;    /* it should be off the device */
        uint64_t given; /* ns of what it received, that the meter has */
        uint32_t n_guests;
};

struct schedule {
        struct device *device;
        struct channels_host *owned_host;
        struct channels_host *host; /* the same; NULL: turns are taken at the gates */
        const char *reason;

        pthread_mutex_t lock;
        _Atomic uint32_t n_wakes; /* futex: the thread looks again */
        pthread_t thread;
        bool has_thread, must_end;

        struct scheduler scheduler;
        struct list vgpus;
        uint32_t n_guests;
        int failure; /* the calls are not allowed: why */

        struct channels **on, **off; /* room for all guests */
        uint32_t room;

        bool has_pending; /* at the gate: this order waits until the last turn's work is done */
        struct scheduler_order pending;
        uint64_t pending_until;
        uint64_t
                pulse_ns; /* and then who has work left may submit for a moment, if it has several devices */
        bool is_pulsing;

        uint64_t n_published; /* of the log */
};

/* schedule_is_needed() - with the lock held: is there anything for the thread to do? */
bool schedule_is_needed(const struct schedule *schedule);

/* schedule_let_on() - with the lock held: the vGPU's guests on the device, at once. */
void schedule_let_on(struct schedule *schedule, struct schedule_vgpu *vgpu);

/* schedule_let_guest_on() - with the lock held: false, that has failed, and the thread tries again. */
bool schedule_let_guest_on(struct schedule_guest *guest);

/*
 * schedule_of() - where the turns of @device are taken: devices that vGPUs of several join, also by way of
 * others, have one schedule together, that of the first of them. NULL: it has none.
 */
struct schedule *schedule_of(const struct device *device);

/* schedule_get_devices() - those whose turns are taken in it, a bit each; 0: it is not the first of its devices. */
uint64_t schedule_get_devices(const struct schedule *schedule);

/* schedule_get_devices_of() - those of which @instance has a part, a bit each. */
uint64_t schedule_get_devices_of(const struct instance *instance);

/* schedule_find_vgpu() - NULL: it is not in @schedule. */
struct schedule_vgpu *schedule_find_vgpu(const struct schedule *schedule,
                                         const struct instance *instance);

/* schedule_find() - and the vGPU in it, wherever it is: it may have moved since. NULL: in none. */
struct schedule *schedule_find(const struct instance *instance, struct schedule_vgpu **ret_vgpu);

/*
 * The thread waits for a call of schedule_wake(), and for changes of the work of vGPUs of the class interactive. A change
 * since schedule_wait_begin() ends the wait at once: so it is begun before a look, and waited for after it.
 */
struct schedule_wait {
        struct futex_waitv on[FUTEX_WAITV_MAX];
        uint32_t n, n_eager;
};

/* schedule_wait_begin() - with the lock held. */
void schedule_wait_begin(struct schedule_wait *wait, struct schedule *schedule);

/* schedule_wait_until() - or to @ns; the lock is let go meanwhile. */
void schedule_wait_until(const struct schedule_wait *wait, struct schedule *schedule, uint64_t ns);

/* schedule_wake() - with the lock held: the thread looks again. */
void schedule_wake(struct schedule *schedule);

/* schedule_start_thread() - unless it runs. Returns 0 or a negative errno. */
int schedule_start_thread(struct schedule *schedule);
void schedule_end_thread(struct schedule *schedule);

/* schedule_give_to_meter() - with the lock held: what the vGPU has received since the last time. */
void schedule_give_to_meter(struct schedule *schedule, struct schedule_vgpu *vgpu, uint64_t now);

/* schedule_report() - with the lock held: to the meter, the state page, the gates and the log. */
void schedule_report(struct schedule *schedule);

#endif
