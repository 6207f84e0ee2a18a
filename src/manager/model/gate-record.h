/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GATE_RECORD_H
#define MANAGER_GATE_RECORD_H

/* What a guest has of the requests to its gate, and of what its gate is to tell: guests/guest-request.h, guest-watch.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "wire/gate.h"

struct guest;

struct guest_answer {
        int error;       /* 0 or a negative errno */
        int driver_code; /* CUresult or 0 */
        uint64_t bytes;
        uint32_t holds;      /* CLOSE, STEP: GATE_HOLDS_* */
        uint16_t n_launches; /* STEP: that were made */
        bool can_step;       /* CLOSE, STEP: its gate knows STEP */
        enum gate_fate fate; /* with an error */
        char call[64];
};

typedef void (*guest_done_fn)(struct guest *guest, const struct guest_answer *answer,
                              void *userdata);

/* One at a time. All zero: none. */
struct guest_request {
        enum gate_message message; /* 0: none */
        bool is_sent;
        bool is_blocked;  /* but the socket was full: guest_flush() */
        uint32_t rest_ms; /* more, once the operation's time is over, unless it is stopped */
        uint32_t timeout_ms;
        bool is_question;               /* TAKE */
        bool is_of_gifts;               /* MAP */
        struct gate_range range;        /* RELEASE, CREATE */
        uint32_t n_launches, window_ms; /* STEP */
        size_t n_sent;                  /* MAP: entries */
        size_t n_received;              /* CREATE: entries */
        size_t n_refused;               /* entries that came after @refused */
        int refused;                    /* its user has no more descriptors: why it fails */
        guest_done_fn done;
        void *userdata;
        sd_event_source *timer;
        sd_event_source *look;  /* whether it is stopped, where that counts */
        unsigned int n_stopped; /* looks in turn that found it stopped */
};

/* Its gate shall tell of work and of who waits at it. */
struct guest_watch {
        uint32_t told;  /* enum gate_watch, as its gate was last told */
        uint32_t turns; /* likewise, as the turns want it */
        bool wants_demand, is_demand_told;
        uint32_t n_may_wait; /* times that it may send WAITING */
};

#endif
