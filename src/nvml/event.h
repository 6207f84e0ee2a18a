/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_EVENT_H
#define NVML_EVENT_H

/*
 * Sets of events. A set remembers which events of which device it waits for, and up to which place of the
 * device's ring they were told: once for those that are bits of NVML, and once for operational events (R615), so that
 * a wait that can tell only bits takes no other event away.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvml-event.h"
#include "state/state-page.h"

enum event_form {
        EVENT_BIT,
        EVENT_OPERATIONAL,
        EVENT_FORMS,
};

#define EVENT_FILTERS_MAX 8

/* What a set waits for of one device. */
struct event_interest {
        unsigned long long mask; /* bits */
        struct event_filter {    /* operational: these and above */
                uint32_t log_level, severity;
        } filters[EVENT_FILTERS_MAX];
        uint32_t n_filters;
        const struct state_page *state_page;
        uint64_t next; /* number in the ring of that state page */
};

struct event_set {
        bool is_there;
        bool has_last;
        struct state_event last; /* that nvmlEventSetWait_v3() told */
        struct event_interest of[STATE_DEVICES_MAX][EVENT_FORMS];
};

struct event_told {
        uint32_t device;
        uint64_t number; /* in the device's ring */
        struct state_event event;
};

/* event_lock() - NULL: there is no such set. Then event_unlock(), in both cases. */
struct event_set *event_lock(nvmlEventSet_t handle);
void event_unlock(void);

/* event_begin() - before the first interest in a device: only what happens from now on is told. */
void event_begin(struct event_interest *interest, uint32_t device);

/* event_wait() - for an event of the forms up to @last. */
nvmlReturn_t event_wait(nvmlEventSet_t handle, enum event_form last, unsigned int timeout_ms,
                        struct event_told *ret_told);

/* event_forget() - all sets of events, at the last nvmlShutdown(). */
void event_forget(void);

#endif
