/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUEST_H
#define MANAGER_GUEST_H

/*
 * A guest process of an instance, as the manager knows it, whether its gate is
 * connected just now or not: a gate comes back after the manager or a message
 * went wrong, and a suspended guest may be silent for days.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/container-id.h"
#include "base/list.h"
#include "container/name.h"
#include "daemon/process.h"
#include "manager/model/account.h"
#include "manager/model/context.h"
#include "manager/model/gate-record.h"
#include "manager/model/meter-record.h"
#include "manager/model/place.h"
#include "manager/model/refresh-record.h"
#include "manager/model/residency-record.h"
#include "manager/model/room.h"
#include "manager/model/share-record.h"
#include "manager/model/sharing-record.h"
#include "manager/model/silence-record.h"
#include "state/instance-page.h"
#include "wire/gate.h"

struct clean_copy;
struct comparison;
struct device;
struct gate_link;
struct guest;
struct instance;
struct instance_part;
struct manager;
struct page_use;
struct participant;
struct pool_reservation;
struct refresh;
struct spilled;
struct spilling;

/* With the others of its vGPU? One that hung when they were resumed comes after them. */
enum guest_presence {
        GUEST_PRESENT = 0,
        GUEST_JOINING,   /* waits for WELCOME, until the instance is usable; no slot yet */
        GUEST_ABSENT,    /* what we hold of it stays; its gate may come back */
        GUEST_RETURNING, /* operation_catch_up has it */
};

/* A dead one is kept for an operation or a refresh; the end of that buries it: nothing else may, and once. */
enum guest_life {
        GUEST_ALIVE = 0,
        GUEST_LEAVING, /* it counts as dead, and all are being told */
        GUEST_DEAD,    /* or let go; kept until the operation or the refresh of it is over */
        GUEST_BURIED, /* its slot and what was kept of it are given back, and it is about to be freed */
};

/* Who comes early may get what another one leaves, as its target: handover.h. */
enum guest_gift {
        GUEST_GIFT_NONE = 0,
        GUEST_GIFT_HELD,   /* by us; it is filled first, */
        GUEST_GIFT_FILLED, /* and then its gate maps it */
        GUEST_GIFT_MAPPING,
        GUEST_GIFT_MAPPED,
};

struct guest_memory {
        uint64_t address, size;
        uint32_t part; /* of its vGPU: which device has it */
        bool is_plain; /* as its gate says: memory of others would do as well (gate.h) */
        enum guest_gift gift;
        int source; /* exported at suspend or migrate; -1: none */
        int target; /* created at resume or migrate; -1: none */
        /*
         * Handed over (handover.h), or in the middle of an undo: its contents are in the guest's reservation,
         * and nowhere else. What is neither that nor exported any more has come back (undo-release.h).
         */
        bool is_parked;
};

/* What NVML's clients see of it that changes while it runs. */
struct guest_shown {
        uint64_t memory_used;
        uint64_t gpu_ns;
        uint32_t percent[METER_ENGINES];
};

/* On the state page, of each part of its vGPU. */
struct guest_record {
        uint32_t state_slot; /* UINT32_MAX: not published yet */
        struct guest_shown shown;
};

/* What it was promised, by the operation under way: for its context and its memory where it goes, and the way back. */
struct guest_room {
        struct room_promise coming, arriving, returning;
        struct room_promise handed; /* what its parked memory needs to come back: handover.h */
        struct room_promise
                kept; /* of a restore that no operation asks for any more: restore-room.h */
};

struct guest {
        struct list link; /* in instance->guests */
        struct instance *instance;
        pid_t pid;
        uid_t uid;
        uid_t payer; /* of what vgpud has for it: @uid, or the owner of a container's vGPU */
        uint64_t start_time;
        uint64_t program;   /* process_get_program(), as it joined; 0: not known */
        uint64_t joined_ns; /* CLOCK_REALTIME */
        char name[PROCESS_NAME_MAX];
        char container[CONTAINER_ID_SHORT + 1];  /* the beginning of its id; "": it is in none */
        char container_name[CONTAINER_NAME_MAX]; /* as an engine says that has it; "": none does */
        int pidfd;
        sd_event_source *pid_source;

        struct account_charge charge; /* of its user; so is that of its memory's descriptors */
        struct account_charge memory_charge;

        struct gate_link *gate; /* NULL: not connected */
        uint32_t n_connections; /* that there have been */
        uint16_t
                refused_version; /* that its gate spoke last, if it was refused for that; 0: it was not */
        enum gate_state state;
        bool is_unfilled; /* CLOSED with memory that it created and that nothing was copied to yet */
        bool must_stay;   /* RELEASE was sent and no OPEN since: it does not open by itself */
        enum guest_life life;
        bool takes_no_gifts;     /* its driver could not use the memory of others */
        bool has_gifts;          /* as it came last: of which NVIDIA's library does not tell */
        char let_go_reason[128]; /* "": it has ended by itself */
        enum guest_presence presence;
        uint32_t slot;
        struct guest_watch watch;
        uint32_t map_width; /* descriptors in a MAP; 0: as many as there may be */
        bool is_confined;   /* in a container: it shares memory within its vGPU only */
        /* Devices that its driver saw when it was initialised, as SEEN has them; none: the one of its vGPU. */
        uint32_t seen[GATE_SEEN_MAX];
        struct sharing_guest sharing;
        struct share_guest share;
        uint64_t n_refused_told; /* allocations over the quota, when that was told last */
        struct residency_guest residency;
        struct guest_record record[GATE_DEVICES_MAX]; /* by part */

        struct context context;
        struct silence silence; /* of the driver */

        struct guest_room room[GATE_DEVICES_MAX]; /* by part */

        struct meter_guest meter;
        struct list sessions; /* session.h */
        struct list turns;    /* schedule_guest: as of its vGPU */
        struct list burial;   /* it has ended, and waits for its turn: burial.h */

        bool is_remembered; /* the store lists its memory: what we hold of it stays until it does not */
        struct guest_memory *memory; /* in the order of addresses */
        size_t n_memory;
        uint64_t memory_bytes;                /* sum of the sizes */
        struct pool_reservation *reservation; /* where its memory is while it is off the device */
        struct clean_copy *clean_copy;        /* clean-copy.h; or NULL */
        struct refresh *refresh;              /* operation/refresh.h; NULL: there is none now */
        struct refreshed refreshed;           /* what the last one was of */
        struct spilled *spilled;          /* its memory is in a file: spilled.h; NULL: it is not */
        struct spilling *spilling;        /* it is being written to one: spilling.h */
        struct pool_reservation *fetched; /* it is being read from it to here */

        struct comparison *comparison; /* with equal blocks: keep-once.h; NULL: there is none */
        struct participant
                *participant; /* operation/participant.h; NULL: no operation has taken it */

        struct guest_request request; /* of its gate */
};

/* guests_count() - how many processes @instance has. */
size_t guests_count(const struct instance *instance);

/*
 * guest_get_use() - what it says that it holds, of all devices; nothing before it has a slot.
 * guest_get_use_of() - the same of one of its vGPU's parts.
 */
void guest_get_use(const struct guest *guest, struct page_use *ret_use);

/* guest_count_refusals() - allocations over the quota that its gate has refused, as it says. */
uint64_t guest_count_refusals(const struct guest *guest);

/*
 * guest_look_at_refusals() - tell GUEST_OVER_QUOTA if its gate has refused allocations since. Of a program
 * that tries again and again, only when there are twice as many: its owner's events have a limit.
 */
void guest_look_at_refusals(struct guest *guest);

void guest_get_use_of(const struct guest *guest, const struct instance_part *part,
                      struct page_use *ret_use);

/* guests_get_used() - what they say that they hold. guests_get_used_of() - of one part. */
uint64_t guests_get_used(const struct instance *instance);
uint64_t guests_get_used_of(const struct instance *instance, const struct instance_part *part);

/* guests_count_whole() - the processes with contexts as @whole says. */
uint32_t guests_count_whole(const struct instance *instance, enum instance_page_whole whole);

/* guests_find_container() - that all of them are in; "": some are in none, or in another one. */
const char *guests_find_container(const struct instance *instance);

/* guest_find() - by process; NULL for none. */
struct guest *guest_find(struct instance *instance, pid_t pid);

/* guest_is_any() - is the process @pid in one of the vGPUs of @manager? */
bool guest_is_any(struct manager *manager, pid_t pid);

/* guest_is_dead() - has it ended, or was it let go? */
static inline bool guest_is_dead(const struct guest *guest)
{
        return guest->life != GUEST_ALIVE;
}

/* guest_set_life(), guest_set_presence() - one that does not follow is a defect. */
void guest_set_life(struct guest *guest, enum guest_life life);
void guest_set_presence(struct guest *guest, enum guest_presence presence);

/* guest_is_away() - is it left behind, or on its way back? */
bool guest_is_away(const struct guest *guest);

/* guest_wants_device() - does it wait to join, or a thread of it at the closed gate? */
bool guest_wants_device(const struct guest *guest);

/*
 * guest_is_replaced() - has its process become another program by exec()? A new image is a new guest: nothing that the
 * driver or the gate had is in it.
 *
 * guest_has_ended() - has its process ended or become another program, whether the loop has seen it yet or not?
 */
bool guest_is_replaced(const struct guest *guest);
bool guest_has_ended(const struct guest *guest);

/*
 * guest_is_elsewhere() - is the process in another vGPU than @here? One that has ended and waits to be
 * buried is not: its number may be another's by now.
 */
bool guest_is_elsewhere(const struct instance *here, pid_t pid);

/* guest_sum_memory() - bytes of its memory that are on the device of part @part. */
uint64_t guest_sum_memory(const struct guest *guest, size_t part);

/* guest_find_memory() - the index of the first allocation at or behind @address, or n_memory. */
size_t guest_find_memory(const struct guest *guest, uint64_t address);

/*
 * guest_lacks_sources() - is some of its memory not exported any more? Then undoing has begun to bring
 * it back: undo-release.h.
 */
bool guest_lacks_sources(const struct guest *guest);

/* guest_charge_source() .. - charge for one more descriptor of its memory. Errors: -EDQUOT. */
int guest_charge_source(struct guest *guest, struct failure *failure);
int guest_charge_target(struct guest *guest, struct failure *failure);

/* guest_take_source() - the caller has it now; its charge is given back. */
int guest_take_source(struct guest *guest, struct guest_memory *memory);

/* guest_close_source() .. - close it and give its charge back; -1 is fine. */
void guest_close_source(struct guest *guest, struct guest_memory *memory);
void guest_close_target(struct guest *guest, struct guest_memory *memory);

/* guest_is_valid() - has it nothing of an operation, unless there is one, and is its context as one can be? */
bool guest_is_valid(const struct guest *guest);

/* guest_forget_memory() - close all descriptors and forget the list. */
void guest_forget_memory(struct guest *guest);

#endif
