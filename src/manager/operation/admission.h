/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ADMISSION_H
#define MANAGER_ADMISSION_H

/*
 * How an operation gets the room on its target that it needs, before anything is touched.
 *
 * All of it is promised at once, or nothing: the memory that its guests will create,
 * and what the driver's restore of their contexts will take. The latter is also held:
 * the mover allocates it and frees it right before the driver's call, for a restore
 * that runs out of memory loses the process for ever.
 *
 * What does not fit waits for the other operations on that device to end, in the order
 * in which they came and for as long as its caller waits, and is refused when none is
 * left. Who waits holds nothing, so nobody waits for him. Who is resumed by hand on a device that is overcommitted
 * awaits its turn instead, as if by demand: ADMISSION_AWAITS_TURN, until admission_take_turn().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct guest;
struct manager;
struct operation;

/*
 * admission_begin() - a part of @operation; NoRoom. What it has already is not asked for again.
 * @can_wait: nothing of the vGPU has been touched yet.
 */
void admission_begin(struct operation *operation, bool can_wait);

/* admission_expect_back() - @guest leaves part @part of @operation's source, and may have to go back there. */
void admission_expect_back(struct operation *operation, struct guest *guest, size_t part);

/* admission_take_turn() - @operation may have what is free now. */
void admission_take_turn(struct operation *operation);

/*
 * admission_note_lack() - @operation awaits its turn, and of the device of @part it lacks some: that is free, of which
 * others have @owed.
 */
void admission_note_lack(struct operation *operation, size_t part, uint64_t free, uint64_t owed,
                         uint64_t needed);

/* admission_give_up() - @operation does not wait for room any longer. */
void admission_give_up(struct operation *operation);

/* admission_end() - the operation is over: so are its promises, and others may go on. */
void admission_end(struct operation *operation);

/* admission_look_again() - those that wait: what they wait for may have happened. */
void admission_look_again(struct manager *manager);

#endif
