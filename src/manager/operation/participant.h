/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PARTICIPANT_H
#define MANAGER_PARTICIPANT_H

/*
 * What an operation needs of a process. It is born when the operation takes the process, and freed with the operation:
 * nothing in it outlives that (guest_is_valid()). What does, is the guest's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "manager/model/guest.h"
#include "manager/model/place.h"
#include "manager/model/rest-record.h"
#include "wire/mover.h"

struct copy_way;
struct device;
struct hash_value;
struct instance;

typedef void (*guest_copied_fn)(struct guest *guest, bool is_done);

/* A copy of its memory, by the mover of one device: copies.h. */
struct guest_job {
        struct guest *guest;
        size_t part;     /* of its vGPU */
        size_t first, n; /* allocations of the guest, of which it has those of its part */
        bool is_in_use;  /* by the copy under way */
        bool has_run;    /* all of it is there, and it has not ended yet */
        struct device
                *lent; /* whose mover has lent it for the call of the driver under way; or NULL */
        uint32_t id;
        enum mover_job_kind kind;
        struct hash_value *hashes; /* what its mover is told, and tells, of its blocks */
        size_t n_hashes;           /* 0: all of them are copied */
        struct device *device;     /* whose mover it is for */
        uint32_t generation;       /* of the mover that has it; 0: no job */
        uint64_t bytes_done;       /* of its progress, as counted so far */
};

/* A part of its memory is filled while it comes early: filling.h. */
enum guest_fill_state {
        GUEST_FILL_FREE = 0,
        GUEST_FILL_PREPARING, /* the pool is made ready */
        GUEST_FILL_RUNNING,
        GUEST_FILL_ENDING, /* it is filled, or has failed, and the mover lets go of it */
};

struct guest_fill {
        struct guest_job job;
        enum guest_fill_state state;
        bool has_failed; /* what it was to fill is not there */
        bool is_awaited; /* a part of the operation ends with it */
        void (*then)(struct guest *guest);
};

/* One is copied while the next is made ready. */
#define GUEST_FILLS 2

struct participant {
        struct {                     /* contexts.h */
                struct place wanted; /* where the operation wants it; nowhere: suspended */
                struct {
                        enum guest_context context;
                        struct place target;
                } before;               /* the call that is under way, should it come to nothing */
                sd_event_source *timer; /* then it is looked at again: */
                void (*again)(struct guest *guest);
                uint64_t asking_deadline_ns; /* for others to be through with asking for memory */
                uint64_t halted_deadline_ns; /* for its process to run again */
                struct place
                        closed; /* devices on which no gate takes anything: it is being restored */
                sd_event_source *closed_timer; /* then the gates are let on */
        } context;

        bool is_stuck; /* undoing has failed for it */
        struct rest_guest rest;

        struct guest_job job[GATE_DEVICES_MAX]; /* by part */
        struct {
                size_t first, n;            /* of its memory */
                const struct copy_way *way; /* copy-way.h */
                size_t step;                /* of it, the one that is taken */
                size_t n_pending;           /* jobs that take it still */
                guest_copied_fn then;       /* NULL: it is a part of the operation */
                bool has_failed, is_done;
                struct hash_value
                        *hashes; /* of all its blocks, in its clean copy; NULL: it has none */
                size_t n_hashes;
                bool is_compared;      /* some of it, with the hashes of what the pool has */
                bool has_no_hashes;    /* of some of it, the device could not tell */
                bool has_moved;        /* its extents are others than before it */
                size_t n_passed;       /* of its memory, what the mover holds no more: handover.h */
                bool is_kept;          /* what comes now is not handed over */
                uint64_t n_live_bytes; /* that were copied while it runs */
        } copy;
        struct { /* ahead.h */
                uint32_t n_rounds;
                uint64_t memory_bytes; /* in this round */
                uint64_t copied;       /* in the last one */
                bool is_exported, is_copying;
                bool is_cut; /* this round ends where it is */
        } ahead;

        struct {                           /* arrival.c */
                size_t n_created, n_begun; /* allocations, from the first on; to be filled */
                size_t n_creating;         /* the next ones; 0: none are being created */
                struct guest_fill fill[GUEST_FILLS];
                bool is_looking, is_mapping, is_over;
                uint64_t
                        lack_ns; /* CLOCK_MONOTONIC: since when it lacks room that nobody makes; or 0 */
                uint64_t
                        waits_since_ns; /* CLOCK_MONOTONIC: for room, and nothing of it is copied; or 0 */
                sd_event_source *timer; /* until it looks for room again */
        } arrival;

        size_t return_width; /* so many allocations at once come back (undo-release.c) */
};

/* participants_new() - of all processes of @instance that have joined. Errors: -ENOMEM. */
int participants_new(struct instance *instance);

/* participants_free() - of those that have one. No mover may have a job of them any more. */
void participants_free(struct instance *instance);

#endif
