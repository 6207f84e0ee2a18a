/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_ROOM_H
#define MOVER_ROOM_H

/*
 * The order in which memory of the mover's device is taken.
 *
 * A restore that runs out of memory loses its process for ever. So there are windows in which the mover takes
 * nothing:
 *
 *   - freeing: from before a checkpoint makes memory free until the mover has it as a hold;
 *   - restoring: from before a hold is let go until the driver has answered the restore.
 *
 * Each call of the driver that takes memory is a taking, and a taking waits until no window is open or waits. A window
 * waits for the takings that have begun, and for nothing else: so on one device no two ever wait for each other. The
 * hold of a freeing window is taken within it; it waits for the restoring ones only.
 *
 * A process of several devices has a window in the mover of each. With one open anywhere, a taking in another mover
 * may wait for a window whose process waits for ours in turn: so it waits to a deadline (room_try_for()), and whoever
 * gave up first lets the other one go on.
 *
 * mapping_create() asks for the taking that it belongs to, so there is no other way to memory.
 *
 * Threads: any.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum room_window { ROOM_FREEING, ROOM_RESTORING, ROOM_WINDOWS };

#define ROOM_WAIT_MS 60000

struct room {
        uint32_t wait_ms; /* so long a taking waits for windows; tests shorten it */
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned int n_open[ROOM_WINDOWS];
        unsigned int n_waiting[ROOM_WINDOWS]; /* for takings, which end; no more begin */
        unsigned int n_takings;               /* under way */
        unsigned int n_within;                /* of those: of freeing windows */
};

/* A taking that is under way: the right to take memory. */
struct room_taking {
        struct room *room;
        bool is_within;
};

void room_init(struct room *room);
void room_deinit(struct room *room);

/*
 * room_begin() - a taking, of a thread that has no window open; waits until none is. Then room_end(). False: there was one
 * for longer than each of them is open: others follow one another, or the driver does not answer.
 */
bool room_begin(struct room *room, struct room_taking *ret_taking);

/* room_try() - the same without waiting. False: a window is open, or waits. */
bool room_try(struct room *room, struct room_taking *ret_taking);

/* room_try_for() - the same, waiting for @ms at most. */
bool room_try_for(struct room *room, uint32_t ms, struct room_taking *ret_taking);

/* room_try_within() - the same for the hold of a freeing window that the caller has open: in no restoring one. */
bool room_try_within(struct room *room, uint32_t ms, struct room_taking *ret_taking);

void room_end(struct room_taking *taking);

/* room_open() - a window; waits for the takings that have begun. Then room_close(). */
void room_open(struct room *room, enum room_window window);
void room_close(struct room *room, enum room_window window);

/* room_is_valid() - what is said above. With the lock, or where no other thread is. */
bool room_is_valid(const struct room *room);

#endif
