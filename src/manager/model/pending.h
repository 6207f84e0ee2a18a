/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PENDING_H
#define MANAGER_PENDING_H

/*
 * What processes say that the driver is being asked for (state/instance-page.h) may be gone from what is free in a moment, so
 * nobody else is promised it. But they may say anything, and one that is stopped within such a call says it until it
 * goes on. So it is believed only
 *
 *   - of processes that are not stopped: those ask the driver for nothing;
 *   - for PENDING_TERM_NS. What was pending in each look for longer, the least of them, is nothing that the driver works at. The
 *     least and not how long something is pending, because who allocates in turn, or with many threads, has something pending
 *     in each look, and the driver works at it. It is of the vGPU, because its processes could take turns with a lie.
 *
 * It is not cut off at what the quota has left: what is pending is charged already, so it counts as used as well.
 */

#include <stdint.h>

#include "manager/model/pending-record.h"

struct instance;
struct instance_part;

#define PENDING_TERM_NS 3000000000u

/* Looks that are further apart tell nothing of the time between them. */
#define PENDING_GAP_NS 1500000000u

/* pending_note() - a look at @now_ns has seen @bytes. Returns how much of it is believed. */
uint64_t pending_note(struct pending *pending, uint64_t bytes, uint64_t now_ns);

/* pending_look() - reads what the page says into @part's claim; what is pending there is what is believed. */
void pending_look(const struct instance *instance, struct instance_part *part);

#endif
