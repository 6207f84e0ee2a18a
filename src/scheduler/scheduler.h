/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

/*
 * The scheduler of a device, or of some that belong together: decides which member has it when.
 *
 * The scheduler uses no hardware, no clock and no heap. Its caller says what time it is and which
 * members have work; the scheduler answers which has the turn, and until when. The caller then switches the
 * hardware and says when the switch was done, so that the time of a switch belongs to the turn
 * before it:
 *
 *     scheduler_set_work(..);
 *     if (scheduler_decide(scheduler, now, &order)) {
 *             ... let order.member run and no other that has work ...
 *             scheduler_begin(scheduler, &order, now);
 *     }
 *     ... wait until order.until_ns or until a member's work changes ...
 *
 * Members are vGPUs: a share belongs to the vGPU, whatever the number of its processes. A vGPU
 * without work needs no turn, and may be left alone.
 *
 * Where vGPUs have several devices, those are in one scheduler together (joint.h). scheduler_runs() then says
 * which members may run; there is no such thing as a fixed or an equal share there.
 *
 * Times are nanoseconds of one clock that should not go backward; when it does, or jumps, shares
 * are inexact for a moment and nothing worse. Not thread-safe.
 */

#include "scheduler/member.h"

/* scheduler_init() - best effort, no members. */
void scheduler_init(struct scheduler *scheduler);

/* scheduler_configure() - settings within the ranges of the device. */
void scheduler_configure(struct scheduler *scheduler, const struct scheduler_settings *settings);

/* scheduler_add() - @member, with its id, devices, share and portion set; it starts without work. */
void scheduler_add(struct scheduler *scheduler, struct scheduler_member *member);

/* scheduler_remove() - also in the middle of its turn, which is then neither charged nor logged. */
void scheduler_remove(struct scheduler *scheduler, struct scheduler_member *member);

/* scheduler_set_share() - @share percent, or none. */
void scheduler_set_share(struct scheduler *scheduler, struct scheduler_member *member,
                         uint32_t share);

/* scheduler_set_devices() - it has been moved. */
void scheduler_set_devices(struct scheduler *scheduler, struct scheduler_member *member,
                           uint64_t devices);

/* scheduler_set_class() - interactive: with work it need not wait for turns of others to end (credit.h). */
void scheduler_set_class(struct scheduler *scheduler, struct scheduler_member *member,
                         bool is_interactive);

void scheduler_set_work(struct scheduler *scheduler, struct scheduler_member *member,
                        bool has_work);

/*
 * scheduler_decide() - what shall be at @now; @ret_order is always set
 * Returns whether that is something new, which the caller must bring about and scheduler_begin().
 */
bool scheduler_decide(struct scheduler *scheduler, uint64_t now, struct scheduler_order *ret_order);

/*
 * scheduler_void() - what was decided last has not been brought about, and will not be: the next
 * scheduler_decide() says what shall be, whatever was in force.
 */
void scheduler_void(struct scheduler *scheduler);

/* scheduler_begin() - what was decided is so since @now; the turn before is charged and logged. */
void scheduler_begin(struct scheduler *scheduler, struct scheduler_order *order, uint64_t now);

/* scheduler_runs() - by @order, may @member run now? */
bool scheduler_runs(const struct scheduler_order *order, const struct scheduler_member *member);

/* scheduler_is_enforcing() - is there anything to enforce, whichever members have work? */
bool scheduler_is_enforcing(const struct scheduler *scheduler);

/* scheduler_get_received() - with what it has had of the turn under way. */
uint64_t scheduler_get_received(const struct scheduler *scheduler,
                                const struct scheduler_member *member, uint64_t now);

/* scheduler_get_entitled() - of @member when all have work, in parts of the device. */
uint32_t scheduler_get_entitled(const struct scheduler_member *member);

#endif
