/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

/*
 * The manager: everything that vgpud knows, in one struct, in one thread.
 *
 * Who owns what: the manager owns the devices, the instances and the listening
 * sockets; an instance its guests, its page and its operation. Nothing here waits:
 * what takes time is done by movers and gates and comes back as an event. Only
 * start-up, and the short calls to the keeper and the database, are synchronous.
 */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "daemon/failure.h"
#include "daemon/options.h"
#include "helper/keeper.h"
#include "manager/model/observer.h"
#include "manager/model/tally.h"
#include "pool/pool.h"
#include "state/state-page.h"
#include "store/store.h"

struct accounts;
struct backlog;
struct burial;
struct container_maker;
struct control;
struct device;
struct fair_queue;
struct pinning;
struct guest_socket;
struct history;
struct instance;
struct meter;
struct publisher;
struct residency;
struct scenario;
struct spill;
struct unread;
struct virtual_stage;

struct manager {
        const struct options *options;
        sd_event *event;
        int lock;          /* of the run directory */
        uint64_t began_ns; /* CLOCK_MONOTONIC */
        char boot_id[64];
        char gate_path[PATHS_MAX], mover_path[PATHS_MAX], nvml_path[PATHS_MAX];
        char driver_path[PATHS_MAX];
        char driver_version[STATE_NAME_MAX];
        char real_nvml[PATHS_MAX];
        char simulation[PATHS_MAX]; /* the simulated host's directory, or "" */
        bool is_unused;             /* at its end: there is no vGPU */

        struct device *device; /* STATE_DEVICES_MAX, of which there are */
        size_t n_devices;
        struct list instances;
        struct list comparisons; /* of guests, by keep-once.h, in the order in which they came */
        struct observers observers;
        struct accounts *accounts;     /* what each user has of vgpud */
        struct fair_queue *fair_queue; /* whose request is next */
        struct pinning *pinning;       /* what movers pin for each user */
        struct unread *unread;         /* what was sent and not received */

        struct store *store;
        struct backlog *backlog; /* what the store has not accepted */
        struct burial *burial;   /* of processes that have ended */
        struct keeper *keeper;
        struct pool *pool;
        struct held *held;     /* what clients have kept of it */
        struct spill *spill;   /* the disk below the pool */
        struct list spillings; /* what is on its way there: spilling.h */
        uint64_t spill_tried;  /* bytes of the vGPU that is on its way, */
        uint64_t
                spill_too_much; /* and of one that the disk had no room for, for those that wait; 0: none */
        char spill_failure[80]; /* why nothing more is promised on that disk; "": it works */
        void (*after_spill)(struct manager *manager); /* or NULL: something has gone to the spill */
        sd_event_source *write_ahead; /* when to look what may go there: operation/write-ahead.h */
        sd_event_source *read_ahead;  /* when to look what may come back: operation/read-ahead.h */
        struct reading *reading;      /* it does: reading.h; NULL: nothing */
        struct list room_makers;      /* operations that wait for that: operation/make-room.h */
        int hash_key;                 /* clean-copy.h */
        struct publisher *publisher;
        struct state_page *state_page; /* the publisher's; NULL: there is none yet */
        struct scenario *scenario;     /* that is played, or NULL */
        struct virtual_stage *stage;   /* where; NULL without a scenario */
        struct meter *meter;
        struct guest_socket *guest_socket;
        const struct container_maker *container_maker; /* guests/container-order.h */
        struct history *history;                       /* what happened to vGPUs */
        struct residency *residency;                   /* who leaves and comes by itself */
        struct control *control;
        struct tally tally; /* of operations */
        bool is_ready; /* clients are served: what a former manager left is in order, or takes long */
        sd_event_source *patience; /* with that: it ends then */
};

#endif
