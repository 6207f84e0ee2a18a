/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPIES_H
#define MANAGER_COPIES_H

/*
 * Copying a guest's memory, by jobs of movers (wire/mover.h, copy-job.h), mostly the target's: each guest has
 * at most one in each. A job lives in its mover; with the mover it is gone, and the step that needs it
 * begins another.
 *
 * Most of these are parts of the operation; all fail it themselves.
 */

#include "manager/operation/participant.h"

struct operation;

/* copies_out() - device memory to the guest's reservation, once that is prepared. */
void copies_out(struct operation *operation, struct guest *guest);

/*
 * copies_ahead() - the same, of what differs, while the guest runs: ahead.h. No part of the operation, which it
 * never fails: @then follows, once. copies_stop(): it ends where it is.
 */
void copies_ahead(struct guest *guest, guest_copied_fn then);
void copies_stop(struct guest *guest);

/*
 * copies_stage() - begin to bring the memory to the target ahead of the guest: from its reservation
 * or, without one, from what it exported. Ends when that is under way.
 */
void copies_stage(struct operation *operation, struct guest *guest);

/* copies_in() - all of it to the memory that the guest has created. */
void copies_in(struct operation *operation, struct guest *guest);

/*
 * Both as an undo, by the source's mover, for allocations @first to @first + @n - 1. These are no parts
 * of the operation: @then follows, once, and says whether it came about; else the operation has failed.
 *
 * copies_ready() - nothing but the mover's context: what is created must not take the room for it
 * copies_back() - what it exported, or what is parked, to memory that it has created on the same device
 * copies_park() - what it exported, to its reservation
 */
void copies_ready(struct guest *guest, guest_copied_fn then);
void copies_back(struct guest *guest, size_t first, size_t n, guest_copied_fn then);
void copies_park(struct guest *guest, size_t first, size_t n, guest_copied_fn then);

/* copies_drop() - no mover keeps a job of the guest, and nobody waits for the end of one. */
void copies_drop(struct guest *guest);

/* copies_end() - end the guest's job, if it has one. */
void copies_end(struct operation *operation, struct guest *guest);

#endif
