/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_MAKE_ROOM_H
#define MANAGER_MAKE_ROOM_H

/*
 * Room in the pool for an operation. If there is too little, memory of suspended vGPUs goes to the spill: that of the
 * user who has most in the pool, and of his vGPUs of the one that was suspended first. So nobody makes the vGPUs of a
 * user slow who has less than others. Who has as much of the pool as one user may have makes room among his own.
 */

#include <stdbool.h>
#include <stdint.h>

struct instance;
struct manager;
struct operation;

/*
 * make_room() - call @then when the vGPU may have @bytes more of the pool, perhaps at once; or fail the step
 * It is a part of the step as long as it takes. @why: what the room is for.
 */
void make_room(struct operation *operation, uint64_t bytes,
               void (*then)(struct operation *operation));

/* make_room_can_go() - can what @instance has in the pool go to the spill? make_room_send() - all of it does. */
bool make_room_can_go(const struct instance *instance);
int make_room_send(struct instance *instance);

/* make_room_again() - there may be more of it than before: those that wait look. */
void make_room_again(struct manager *manager);

#endif
