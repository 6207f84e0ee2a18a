/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_ROOM_H
#define MOVER_ROOM_H

/*
 * Who takes memory of the mover's device, and when.
 *
 * A restore that runs out of memory loses its process for ever. So there are windows in which the mover takes
 * nothing:
 *
 *   - freeing: from before a checkpoint makes memory free until the mover has it as a hold;
 *   - restoring: from before a hold is let go until the driver has answered the restore.
 *
 * Each call of the driver that takes memory is a taking, and a taking waits until no window is open. A window waits
 * for the takings that have begun, and for nothing else: so no two ever wait for each other, whatever else they
 * have. The hold of a freeing window is taken within it; it waits for the restoring ones only.
 *
 * mapping_create() asks for the taking that it belongs to, so there is no other way to memory.
 *
 * Threads: any.
 */

#include <pthread.h>
#include <stdbool.h>

enum room_window { ROOM_FREEING, ROOM_RESTORING, ROOM_WINDOWS };

struct room {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned int n_open[ROOM_WINDOWS];
        unsigned int n_takings; /* under way */
        unsigned int n_within;  /* of those: of freeing windows */
};

/* A taking that is under way: the right to take memory. */
struct room_taking {
        struct room *room;
        bool is_within;
};

void room_init(struct room *room);
void room_deinit(struct room *room);

/* room_begin() - a taking; waits until no window is open. Then room_end(). */
struct room_taking room_begin(struct room *room);

/* room_try() - likewise, without waiting. False: a window is open. */
bool room_try(struct room *room, struct room_taking *ret_taking);

/* room_begin_within() - the hold of a freeing window that the caller has open; waits until no restoring one is. */
struct room_taking room_begin_within(struct room *room);

void room_end(struct room_taking *taking);

/* room_open() - a window; waits for the takings that have begun. Then room_close(). */
void room_open(struct room *room, enum room_window window);
void room_close(struct room *room, enum room_window window);

/* room_is_valid() - what is said above. With the lock, or where no other thread is. */
bool room_is_valid(const struct room *room);

#endif
