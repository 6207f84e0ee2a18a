/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTEXT_H
#define MANAGER_CONTEXT_H

/*
 * What the driver's checkpoint has done to a process: where its context is, and what the store has of that.
 */

#include <stdbool.h>
#include <stdint.h>

#include "manager/model/place.h"

/* In the store by these numbers. */
enum guest_context {
        GUEST_CONTEXT_RUNNING = 0,
        GUEST_CONTEXT_SUSPENDING, /* was asked for; only the driver knows how far it is */
        GUEST_CONTEXT_SUSPENDED,
        GUEST_CONTEXT_RESUMING, /* likewise; LOCKED or RUNNING means that it was restored */
        GUEST_CONTEXT_LOST,     /* the driver gave it up */
};

/* What can be taken back, and what the store has. */
struct context_moment {
        enum guest_context state;
        struct place place;  /* that it runs on or ran on last */
        struct place target; /* RESUMING: that it is restored to */
};

struct context {
        enum guest_context state;
        struct place place, target; /* as above */
        struct context_moment stored;
        uint64_t bytes; /* that it takes of a device, as last seen; 0: not known */
        bool is_spoiled; /* the driver's checkpoint of it has failed for want of memory, and always will */
        uint64_t room_deadline_ns; /* CLOCK_MONOTONIC: an undoing looks for room for it; or 0 */
};

/*
 * What is done next for a process that is to be on @wanted, or suspended if that is nowhere. The mover's actions start
 * from any state of the process, so what was interrupted is simply done again: a resume first of all, for only its end
 * tells where the context is.
 */
enum context_action {
        CONTEXT_ACTION_NOTHING,
        CONTEXT_ACTION_SUSPEND,
        CONTEXT_ACTION_RESUME,
        CONTEXT_ACTION_GIVE_UP,
};

struct context_plan {
        enum context_action action;
        struct place from, to;
};

struct context_plan context_plan(enum guest_context state, const struct place *place,
                                 const struct place *target, const struct place *wanted);

/* context_may_become() - may a context that is in state @from be in state @to next? */
bool context_may_become(enum guest_context from, enum guest_context to);

/* context_become() - another state; one that it may not become is a defect. */
void context_become(struct context *context, enum guest_context state, const struct place *target);

/* context_is_valid() - is it in a state that there is, and has a target only if it is restored? */
bool context_is_valid(const struct context *context);

#endif
