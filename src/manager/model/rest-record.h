/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_REST_RECORD_H
#define MANAGER_REST_RECORD_H

/* What is known of guests on their way to rest: operation/rest.h. */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Of an operation, or of several that come to rest together. */
struct rest {
        struct manager *manager;
        size_t n_members;       /* operations, of which the last to leave frees it */
        sd_event_source *timer; /* the next step; NULL: none is due */
        uint64_t deadline_ns;   /* CLOCK_MONOTONIC */
        sd_event_source
                *deadline_timer; /* NULL: it is behind, and the callers have been answered */
        uint64_t pause_us;       /* before a step */
        uint32_t n_steps;        /* so far */
        bool has_changed;   /* since the last step a guest came to rest that had been missing */
        bool has_timed_out; /* a guest: it is over */
};

/* Of a guest. */
struct rest_guest {
        bool is_asked;       /* to close its gate, or to take a step: it is not at rest */
        bool can_step;       /* its gate knows steps */
        bool was_at_rest;    /* since the operation began to close its gate */
        bool has_timed_out;  /* it has not come to rest */
        bool was_opened;     /* or tried to: it has failed, and the others may wait for this one */
        uint32_t n_launches; /* that it may make in its next step */
        uint32_t n_made;     /* that it made in its last one */
        uint32_t n_missed;   /* steps that others took while it was asked */
        uint32_t number,
                met; /* while it is looked for pairs (operation/rest-pairs.h): its own, and the last that it met */
        char call[64]; /* of one that has timed out: the driver call that it is in */
};

#endif
