/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RESIDENCY_RECORD_H
#define MANAGER_RESIDENCY_RECORD_H

/* What the residency (residency.h) knows of a vGPU and of its processes, and what of it is in the store. */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"
#include "manager/model/room.h"
#include "store/store.h"

/* Of an instance. Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct residency_instance {
        uint64_t after_ns;  /* without work, then it leaves; 0: it never leaves by itself */
        bool keeps_context; /* only its memory leaves */
        bool has_left;      /* by itself: while it is off, demand brings it back */

        uint64_t last_work_ns, since_ns;
        uint64_t leave_ns, cost_ns; /* what its last leaving took, and its last swap */
        uint64_t
                present_ns; /* its programs were on the device when that was looked at last; 0: they were not */
        bool is_leaving, is_coming; /* by itself, by demand: just now */
        bool waits_for_room;        /* of it: the operation has begun, and the device is full */
        uint32_t moved_percent;     /* of its memory, by that operation */
        uint64_t wanted_ns;         /* since when a program waits for it; 0: none does */
        uint64_t
                waiting_ns; /* since when it, or any of its threads, waits for room, whatever it was promised since; 0 */
        uint64_t told_ns; /* how long it had waited when the log said so last */
        uint64_t not_before_ns, pause_ns,
                failed_ns; /* the last: when it was, if pause_ns is more than 0 */
        bool was_cut;      /* see scheduler/stay.h */
        bool is_stopped; /* a process of it was when it should leave, and has not been seen to run since */
        char stopped[96];         /* which */
        uint64_t stopped_seen_ns; /* CLOCK_MONOTONIC */
        bool lacked_room;
        uint32_t n_passed; /* times in turn that others were promised its room before it was */
        bool is_interactive;
        struct {
                uint64_t resident_ns; /* until present_ns */
                uint64_t swapped_bytes, n_swaps, n_waits, waited_ns;
        } sums;           /* since we started */
        char reason[192]; /* why it stayed, or has not come, when it should; "" */
};

/* Of what an instance has of one device. Times as above. */
struct residency_part {
        struct room_promise promise; /* what others leave or have left for it */
        uint64_t leaving_bytes;      /* that others will have when it has left for them */
        uint64_t reason;             /* why it waits, as of the last look: residency-reason.c */
        uint64_t stuck_ns;           /* since when nobody could leave for it; 0: that is not so */
        uint64_t
                asks_ns; /* since when a thread of it asks for room, and has no answer; 0: none does */
        uint64_t answered_ns; /* when one was answered last */
        uint64_t
                extra; /* bytes that it needs more than is known: what there was had not been enough */
};

/* Of a guest. */
struct residency_guest {
        bool is_wanting; /* a thread of it waits at the closed gate */
        uint32_t n_works;
        uint64_t n_launches;
};

/*
 * residency_record_set() - what the owner of vGPU @id wants, in the store and in @record; @after_ms 0: it never
 * leaves by itself. InvalidParameter.
 */
int residency_record_set(struct residency_instance *record, struct store *store, uint32_t id,
                         uint64_t after_ms, bool keeps_context, struct failure *failure);

/*
 * residency_record_set_class() - how it waits for room, and makes room, on an overcommitted device: "interactive" or
 * "batch". In the store and in @record. InvalidParameter. residency_record_get_class() - the word.
 */
int residency_record_set_class(struct residency_instance *record, struct store *store, uint32_t id,
                               const char *class, struct failure *failure);
const char *residency_record_get_class(bool is_interactive);

/* residency_record_put_left() - in the store only: does it leave by itself? */
int residency_record_put_left(const struct residency_instance *record, struct store *store,
                              uint32_t id, bool has_left);

/* residency_record_restore() - from the store's setting @name, if that is one of ours. */
void residency_record_restore(struct residency_instance *record, const char *name,
                              const char *value);

#endif
