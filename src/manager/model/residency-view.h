/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RESIDENCY_VIEW_H
#define MANAGER_RESIDENCY_VIEW_H

/* What is shown of a vGPU that leaves and comes back by itself. */

#include <stdbool.h>
#include <stdint.h>

struct instance;
struct instance_part;

struct residency_view {
        double idle;        /* seconds without work; negative: it has work, or is not looked at */
        const char *demand; /* "", "leaving", "away", "waiting for memory" or "coming in" */
        uint32_t percent;   /* of its memory that has moved, while it is leaving or coming in */
        const char *reason;
};

void residency_view_get(const struct instance *instance, struct residency_view *ret_view);

/* residency_get_asks() - since when a thread of it asks for room, on any of its devices; 0: none does. */
uint64_t residency_get_asks(const struct instance *instance);

/* residency_find_wanting() - the first part on which threads of it wait for room, below the ceiling too; NULL: none do. */
const struct instance_part *residency_find_wanting(const struct instance *instance);

/* residency_view_get_resident() - how long its programs were on a device since we started, in nanoseconds. */
uint64_t residency_view_get_resident(const struct instance *instance);

/* residency_may_leave() - does the residency look at it now, because it may leave by itself? */
bool residency_may_leave(const struct instance *instance);

/* residency_get_interval() - between two looks, in nanoseconds. */
uint64_t residency_get_interval(const struct instance *instance);

#endif
