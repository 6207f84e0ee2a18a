/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTEXTS_H
#define MANAGER_CONTEXTS_H

/*
 * Moving the driver's part of a guest, its context, off a device and onto one, by
 * the driver's own checkpoint of the process.
 *
 * One function brings a context from wherever it is to where it is wanted, over
 * as many checkpoint calls as that takes. Each call is written to the store before
 * it is made, for the driver tells what state a process is in but not on which
 * device it is.
 */

struct guest;
struct operation;
struct place;

/* contexts_move() - to @wanted, or off all devices (nowhere). A part of @operation. */
void contexts_move(struct operation *operation, struct guest *guest, const struct place *wanted);

#endif
