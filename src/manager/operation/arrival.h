/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ARRIVAL_H
#define MANAGER_ARRIVAL_H

/*
 * A vGPU comes to its device in parts, as those that leave for it make room (handover.h).
 *
 * One guest after another has a few allocations created at a time, as many as the driver says there is room for,
 * beside what others were promised. They are filled from the pool (filling.h) while the next ones are created.
 */

struct operation;

/* arrival_begin() - no allocation of any guest is there yet. */
void arrival_begin(struct operation *operation);

/* arrival_run() - a part of @operation: all memory is created and filled; what is there already stays. */
void arrival_run(struct operation *operation);

#endif
