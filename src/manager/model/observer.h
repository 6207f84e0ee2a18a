/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OBSERVER_H
#define MANAGER_OBSERVER_H

/*
 * Events: what happens to vGPUs, to their processes and to devices, told to those who have subscribed.
 *
 * Devices, vGPUs and guests know none of the subscribers: they include this header only. Subscribers
 * are called at once, in the order in which they subscribed. One that frees what the event is about
 * is the last one to be interested in it.
 */

#include <stdbool.h>

struct device;
struct guest;
struct instance;
struct operation;

enum instance_event {
        INSTANCE_ADDED,     /* it was created */
        INSTANCE_LOADED,    /* a former manager had it; its processes follow */
        INSTANCE_SETTLED,   /* nothing goes on with it, and processes may join */
        INSTANCE_LET_GO,    /* its operation is over: what came back meanwhile may go on */
        INSTANCE_FREE,      /* likewise, and the call that waited for that has been made */
        INSTANCE_RETRY,     /* what kept a failed one from being undone may have ended */
        INSTANCE_RENAMED,   /* it has another name */
        INSTANCE_RESIZED,   /* its quota is another one */
        INSTANCE_LAUNCHES,  /* `vgpu run` becomes a program in it: one more of instance->launches */
        INSTANCE_SHARE_SET, /* its share of its device's time is another one */
        INSTANCE_MAKES_WAY, /* it leaves for another one, and stands still */
        INSTANCE_AWAITS_TURN, /* it is resumed by hand, and others are to leave for it */
        INSTANCE_OUTSIDE,     /* a process of it uses a device past the gate: instance->outside */
        INSTANCE_REMOVED,     /* it is not in the store any more; INSTANCE_UNLOADED follows */
        INSTANCE_UNLOADED,    /* it is about to be freed: it was removed, or the manager ends */
};

enum guest_event {
        GUEST_JOINED,     /* it has a slot of the page */
        GUEST_LOADED,     /* a former manager had it */
        GUEST_RETURNED,   /* its gate has connected again */
        GUEST_ANSWERS,    /* the driver does, for it, again: silence.h */
        GUEST_WANTS,      /* it waits for its vGPU: to join, or a thread of it at its closed gate */
        GUEST_REFUSED,    /* memory of another process: guest->refusal */
        GUEST_OVER_QUOTA, /* allocations, so far guest->n_refused_told of them */
        GUEST_LEFT,       /* it counts as dead from now on */
        GUEST_UNLOADED,   /* it is about to be freed */
};

enum device_event {
        DEVICE_MOVER_LOST,      /* its mover has ended */
        DEVICE_SWITCHES_SOURCE, /* from now on its GPU time is measured otherwise: turns, or not */
};

/* A function that is NULL is not called. The rest is observer_add()'s: a list of them has no limit and needs no memory. */
struct observer {
        void (*changed)(void *userdata); /* anything that is shown */
        void (*of_instance)(struct instance *instance, enum instance_event event, void *userdata);
        void (*of_guest)(struct guest *guest, enum guest_event event, void *userdata);
        void (*of_device)(struct device *device, enum device_event event, void *userdata);
        /* What its caller asked for has been done, or it has been undone; it may have to tidy up still. */
        void (*of_operation)(const struct operation *operation, bool has_succeeded, void *userdata);

        struct observer *next;
        void *userdata;
};

/* Those of a manager; all zero: there are none. */
struct observers {
        struct observer *first;
};

/* observer_add() - @observer must stay where it is, and is one manager's at a time. */
void observer_add(struct observers *observers, struct observer *observer, void *userdata);

/* observer_remove() - fine if it was never added. Not while an event is told. */
void observer_remove(struct observers *observers, struct observer *observer);

void observer_tell_changed(const struct observers *observers);
void observer_tell_instance(const struct observers *observers, struct instance *instance,
                            enum instance_event event);
void observer_tell_guest(const struct observers *observers, struct guest *guest,
                         enum guest_event event);
void observer_tell_device(const struct observers *observers, struct device *device,
                          enum device_event event);
void observer_tell_operation(const struct observers *observers, const struct operation *operation,
                             bool has_succeeded);

#endif
