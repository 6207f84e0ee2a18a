/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CEILING_RECORD_H
#define MANAGER_CEILING_RECORD_H

/* What a device has of its ceilings (ceiling.h), and what a look at it was begun with. */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* From before the driver is asked how much is free, for what comes of its answer. */
struct ceiling_look {
        uint64_t mark, pending;
        uint64_t generation;
};

struct ceiling {
        sd_event_source *timer; /* NULL: no gate is limited */
        bool is_looking;        /* the driver is being asked */
        struct ceiling_look look;
        uint64_t free;          /* as the driver has said last */
        uint64_t generation;    /* when it rises, what was seen before is of no use any more */
        unsigned int n_closed;  /* restores under way, during which no gate takes anything */
        uint64_t closed_ns;     /* CLOCK_MONOTONIC: since when there was always one */
        bool owes_turn;         /* that was long: the gates come first now */
        uint64_t turn_until_ns; /* CLOCK_MONOTONIC: and until then */
};

#endif
