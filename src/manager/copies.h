/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPIES_H
#define MANAGER_COPIES_H

/*
 * Copying a guest's memory, by jobs of a mover (wire/mover.h), mostly the target's: each
 * guest has at most one. A job lives in its mover; with the mover it is gone, and
 * the step that needs it begins another.
 *
 * All of these are parts of the operation; they fail it themselves.
 */

struct guest;
struct operation;

/* copies_out() - device memory to the guest's reservation, once that is prepared. */
void copies_out(struct operation *operation, struct guest *guest);

/*
 * copies_stage() - begin to bring the memory to the target ahead of the guest: from its reservation
 * or, without one, from what it exported. Ends when that is under way.
 */
void copies_stage(struct operation *operation, struct guest *guest);

/* copies_in() - all of it to the memory that the guest has created. */
void copies_in(struct operation *operation, struct guest *guest);

/*
 * copies_back() - as an undo: what it exported to memory that it has created on the same device, by
 * the source's mover
 */
void copies_back(struct operation *operation, struct guest *guest);

/* copies_end() - end the guest's job, if it has one. */
void copies_end(struct operation *operation, struct guest *guest);

#endif
