/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ROOM_H
#define MANAGER_ROOM_H

/*
 * The account of one device's memory: who was promised how much of it.
 *
 * The driver says how much is free; of that, what others were promised and have
 * not taken yet is not to be had. A promise is owed until it is memory (a mover
 * holds it, a context was restored, a guest has created it), and it is over when
 * its operation is. What a checkpoint is about to make free was promised before: it is leaving, which is not free
 * yet, but the gates may not count on it. Promises are members of what they are made to, so that none
 * outlives it. Nothing here asks the driver or allocates.
 *
 * The driver's answer is older than what happens until it is here: what becomes
 * memory meanwhile may or may not be free in it, and counts as owed still. That
 * is what the mark is for, which is taken before the driver is asked.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct room {
        struct list promises;
        uint64_t turned; /* bytes that have become memory, ever */
};

enum room_state { ROOM_OWED, ROOM_LEAVING, ROOM_MEMORY };

struct room_promise {
        struct list link;  /* in room->promises */
        struct room *room; /* NULL: nothing is promised */
        uint64_t bytes;
        enum room_state state;
};

void room_init(struct room *room);

/* room_promise() - in place of what @promise was before, owed. */
void room_promise(struct room *room, struct room_promise *promise, uint64_t bytes);

/* room_turn() - it is memory now. room_return() - it is free memory again, and owed. */
void room_turn(struct room_promise *promise);
void room_return(struct room_promise *promise);

/* room_leave() - it is the memory of a process that is being checkpointed. Then room_turn(), when it is held. */
void room_leave(struct room_promise *promise);

/* room_turn_part() - @bytes of what is owed are memory now, and no part of the promise any more. */
void room_turn_part(struct room_promise *promise, uint64_t bytes);

/* room_forget() - it is over, if there was one. All zero is a promise that is over, too. */
void room_forget(struct room_promise *promise);

/* room_is_to() - is it of this device? */
bool room_is_to(const struct room_promise *promise, const struct room *room);

/* room_lose() - a mover died: what it held is free, and owed. */
void room_lose(struct room *room);

/* room_owed() - in all. */
uint64_t room_owed(const struct room *room);

/* room_leaving() - in all, what is leaving. */
uint64_t room_leaving(const struct room *room);

/* room_is_valid() - are all promises in it its own, of a state that there is, and no sum more than a word has? */
bool room_is_valid(const struct room *room);

static inline uint64_t room_mark(const struct room *room)
{
        return room->turned;
}

/*
 * room_balance() - what is left of @free bytes when all have what they are owed; negative: it is not
 * enough. @mark: from before the driver was asked.
 */
int64_t room_balance(const struct room *room, uint64_t free, uint64_t mark);

#endif
