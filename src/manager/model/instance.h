/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_INSTANCE_H
#define MANAGER_INSTANCE_H

/*
 * A vGPU instance: a quota on a device, or on each of several, the pages that say so to its
 * processes, and those processes.
 *
 * Its state is what state page.h calls it. IDLE and RUNNING follow from whether it has
 * processes; an operation sets the others. A suspended or evicted instance does
 * not count against the promises of its device: making room is what suspending is
 * for, and a resume asks again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "container/space.h"
#include "daemon/failure.h"
#include "manager/model/account.h"
#include "manager/model/meter-record.h"
#include "manager/model/pending-record.h"
#include "manager/model/place.h"
#include "manager/model/residency-record.h"
#include "state/page.h"
#include "state/state-page.h"
#include "store/store.h"
#include "wire/gate.h"

struct device;
struct gate_wait;
struct image_session;
struct manager;
struct operation;
struct reserve;

/* At most so many devices have a part of one vGPU: as many GPUs as a server has. */
#define INSTANCE_PARTS_MAX GATE_DEVICES_MAX

#define INSTANCE_POOL_GROUP_MAX 32

/* What a vGPU has of one device. */
struct instance_part {
        struct device *device;
        uint32_t id; /* NVML's; that of the first part is the vGPU's */
        struct page page;
        struct page_claim claim; /* at the last look: pending.h */
        struct pending pending;
        uint32_t placement; /* first slot on @placed_on; STATE_PLACEMENT_NONE */
        const struct device *placed_on;
        uint32_t state_slot;         /* UINT32_MAX: not published yet */
        struct state_instance shown; /* what the state page says of it */
        uint64_t shown_uses;
        struct meter_part meter;
        struct residency_part residency;
};

struct instance {
        struct list link; /* in manager->instances */
        struct manager *manager;
        uint32_t id;
        char name[STORE_NAME_MAX];
        char uuid[STORE_UUID_MAX];
        struct instance_part part[INSTANCE_PARTS_MAX]; /* as its programs count its devices */
        size_t n_parts;                                /* at least 1 */
        uint64_t frame_buffer;                         /* of each part */
        uint64_t created_ns;                           /* CLOCK_REALTIME */
        uid_t owner;
        char pool_group[INSTANCE_POOL_GROUP_MAX]; /* pool-group.h; "": its owner's */
        struct account_charge charge;             /* of its owner */
        enum state_instance_state state;
        uint64_t off_since_ns;   /* CLOCK_MONOTONIC; 0: since before this vgpud */
        uint64_t still_since_ns; /* when the gates of one that is off began to close; as above */
        struct list guests;
        struct list turns;           /* schedule_vgpu: of its device, and of one that it leaves */
        struct list launches;        /* programs that are no guests yet, see launch.h */
        struct operation *operation; /* under way, or NULL */
        struct gate_wait *gate_wait; /* a call that waits for gates to become one, or NULL */
        struct {                     /* of the operation under way; all 0: there is none */
                struct place target; /* where it is to be */
                uint32_t timeout_ms;
                bool is_undoing;
                bool gives_up_stopped; /* a process that is stopped is not waited for until a time-out */
                uint64_t group;        /* of vGPUs that go together: operation/group.h; 0: none */
        } course;
        sd_event_source *catch_up_timer; /* the last catch-up has failed: not again before */
        uint64_t catch_up_pause_us;
        bool is_unsettled; /* the store says something else of it, see backlog.h */
        struct {
                struct list link;
                sd_event_source *timer; /* NULL: it lacks none */
                uint64_t pause_us;
        } lack;                      /* of room, see backlog.h */
        struct image_session *image; /* a client's, or NULL */
        struct reserve *reserve;     /* what is held for it on the disk: reserve.h; NULL: nothing */
        bool keeps_gates_away;       /* that have released their memory: they may not connect now */
        struct meter_instance meter;
        struct residency_instance residency;
        uint32_t share;            /* percent of its device; 0: none */
        uint32_t encoder_capacity; /* percent */
        char outside[160];         /* a process of it that uses a device past the gate; "": none */
        char gone
                [STORE_UUID_MAX]; /* a device that it had when vgpud began, and there is none; "" */

        struct container_space space; /* of the container that it was made for; all 0: none */

        bool is_transient;
        pid_t creator; /* transient: goes when this process and all guests are gone */
        uint64_t creator_start;
        sd_event_source *creator_source;
        bool is_creator_gone;
};

/*
 * instance_home() - the device of its first part: where it is shown.
 * instance_find_part() - what it has of @device; NULL: nothing. instance_is_on() - has it anything?
 */
static inline struct device *instance_home(const struct instance *instance)
{
        return instance->part[0].device;
}

/* instance_has_id() - does NVML know it, or one of its parts, by @id? */
bool instance_has_id(const struct instance *instance, uint32_t id);

/* instance_place() - where its parts are. */
struct place instance_place(const struct instance *instance);

/* instance_get_quota() - of all of its parts together. */
static inline uint64_t instance_get_quota(const struct instance *instance)
{
        return instance->frame_buffer * instance->n_parts;
}

struct instance_part *instance_find_part(struct instance *instance, const struct device *device);
bool instance_is_on(const struct instance *instance, const struct device *device);

/* instance_check_idle() - does nothing go on with it? Errors: -EBUSY. */
int instance_check_idle(const struct instance *instance, struct failure *failure);

/* instance_check_no_image() - is none of its images being written or read? Errors: -EBUSY. */
int instance_check_no_image(const struct instance *instance, struct failure *failure);

/* instance_find() - by name or UUID; NULL with NoSuchVgpu. */
struct instance *instance_find(struct manager *manager, const char *name, struct failure *failure);

/* instance_find_own() - one that the user @uid may use and change; else also PermissionDenied. */
struct instance *instance_find_own(struct manager *manager, const char *name, uid_t uid,
                                   struct failure *failure);

/* instance_check_name() - InvalidParameter when @name cannot be one. */
int instance_check_name(const char *name, struct failure *failure);

/* instance_check_owner() - may the user @uid use and change it? PermissionDenied. */
int instance_check_owner(const struct instance *instance, uid_t uid, struct failure *failure);

/* instance_is_off() - is its memory off the device, so that it needs no promise? */
bool instance_is_off(const struct instance *instance);

/* instance_is_bound_for() - is it on its way to @device from another? */
bool instance_is_bound_for(const struct instance *instance, const struct device *device);

/* instance_is_away() - is it off because it left by itself, so that it comes back by demand (residency.h)? */
bool instance_is_away(const struct instance *instance);

/* instance_is_usable() - may processes join and run? */
bool instance_is_usable(const struct instance *instance);

const char *instance_state_name(enum state_instance_state state);

#endif
