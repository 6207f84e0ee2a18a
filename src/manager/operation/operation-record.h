/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OPERATION_RECORD_H
#define MANAGER_OPERATION_RECORD_H

/* What an operation keeps for each of the files that work on it; their headers say what it means. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "daemon/failure.h"
#include "manager/model/ceiling-record.h"
#include "wire/gate.h"

struct operation;

/* admission.h */
enum admission_state {
        ADMISSION_IDLE = 0, /* it asks for nothing, or is refused or admitted just now */
        ADMISSION_QUEUED,   /* in the list of a device, behind others or until it has room */
        ADMISSION_LOOKING, /* the driver is being asked; in that list or, if it cannot wait, in none */
        ADMISSION_AWAITS_TURN, /* not in that list: others are to leave for it first */
};

enum admission_patience {
        ADMISSION_PATIENT = 0,
        ADMISSION_LATE,      /* it waits no longer, */
        ADMISSION_TIMED_OUT, /* because its time is over */
};

enum admission_outcome {
        ADMISSION_FITS = 0,
        ADMISSION_FAILED, /* it cannot be known */
        ADMISSION_FULL,   /* the mover could not take as much as the driver says is free */
};

struct admission {
        enum admission_state state;
        enum admission_patience patience;
        enum admission_outcome outcome; /* of the look */
        struct list link; /* in a device's admissions, while it waits for its promises */
        sd_event_source *timer;
        sd_event_source *again; /* it lacks only what others ask for: to look again */
        bool can_wait;
        bool lacks_pending;
        bool was_passed; /* refused, as others were promised the room that there is */
        size_t part;     /* of the target, for which it asks */
        bool is_asked[GATE_DEVICES_MAX]; /* or it lacks nothing there */
        uint64_t waiting_since_ns;       /* CLOCK_MONOTONIC; 0: it does not */
        struct ceiling_look look;
        uint64_t held, needed;
        uint64_t free, owed; /* to others; both as of the same look */
        size_t n_holds;      /* under way */
};

/* ahead.h */
struct ahead {
        size_t n_guests;   /* that are copied now */
        uint32_t n_rounds; /* of the one that had most */
        uint64_t bytes, began_ns, ns;
        bool must_stop;
        sd_event_source *timer;
};

/* make-room.h, while memory of others goes to the spill for it. */
struct making {
        struct list link;
        uint64_t bytes;
        void (*then)(struct operation *operation);
        sd_event_source *timer;
        uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

/* shared.h, while gates have not told whose memory they have. */
struct shared_wait {
        sd_event_source *timer;
        uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

/* group.h. Who is recorded is not broken any more, and who is broken is not recorded. */
struct group_standing {
        enum group_fate { GROUP_TOGETHER = 0, GROUP_BROKEN, GROUP_RECORDED } fate;
        struct failure
                broken_by; /* BROKEN: another of its group has failed, or who it comes early for; why */
};

/* Of the step that it is at. */
enum operation_phase {
        OPERATION_BETWEEN = 0, /* that, and the one before */
        OPERATION_RUNS,
        OPERATION_UNDONE, /* it was the first, and there is none before */
};

/* What it tells of itself; times of CLOCK_MONOTONIC. */
struct operation_measures {
        uint64_t started_ns, drained_ns, progress_ns;
        uint64_t
                closing_ns; /* when its gates began to close, for a resume of its suspend; 0: they have not, or unknown */
        uint64_t copy_ns, context_ns; /* the slowest process */
        uint64_t room_ns;             /* that it waited for others to leave its target */
        uint64_t pool_ns; /* that copies waited for the pool: slabs not zeroed or not pinned yet */
        uint64_t pool_since_ns; /* while one waits */
        uint64_t pin_ns; /* of @pool_ns, what the copy that waited longest in its mover did */
        size_t n_pool_waits;
        uint64_t fetch_ns; /* that memory took to come from the spill: the slowest process */
        uint64_t bytes, bytes_done;
        uint64_t bytes_unchanged; /* of @bytes, what a suspend did not have to copy */
};

#endif
