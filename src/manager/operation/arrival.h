/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ARRIVAL_H
#define MANAGER_ARRIVAL_H

/*
 * A vGPU comes to its device in parts, as those that leave for it make room (handover.h).
 *
 * One guest after another has a few allocations created at a time, as many as the driver says there is room for,
 * beside what others were promised. They are filled from the pool (filling.h) while the next ones are created.
 */

#include <stdbool.h>

struct guest;
struct guest_memory;
struct operation;

/* arrival_begin() - no allocation of any guest is there yet. */
void arrival_begin(struct operation *operation);

/* arrival_run() - a part of @operation: all memory is created and filled; what is there already stays. */
void arrival_run(struct operation *operation);

/*
 * arrival_take() - @memory, which @giver leaves, becomes that of an allocation of @operation's guests (handover.h)
 * False: they have none that it fits. arrival_go_on() - that was all for now.
 */
bool arrival_take(struct operation *operation, struct guest *giver, struct guest_memory *memory);
void arrival_go_on(struct operation *operation);

#endif
