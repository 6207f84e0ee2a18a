/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/room.h"

#include <assert.h>

void room_init(struct room *room)
{
        *room = (struct room){ .lock = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER };
}

void room_deinit(struct room *room)
{
        (void)pthread_cond_destroy(&room->changed);
        (void)pthread_mutex_destroy(&room->lock);
}

bool room_is_valid(const struct room *room)
{
        bool is_freeing = room->n_open[ROOM_FREEING] > 0;
        bool is_restoring = room->n_open[ROOM_RESTORING] > 0;

        return room->n_within <= room->n_takings && !(is_restoring && room->n_takings > 0) &&
               !(is_freeing && room->n_takings > room->n_within) &&
               !(room->n_within > 0 && !is_freeing);
}

static void end_change(struct room *room)
{
        assert(room_is_valid(room));
        (void)pthread_cond_broadcast(&room->changed);
        (void)pthread_mutex_unlock(&room->lock);
}

static bool has_window(const struct room *room, bool is_within)
{
        return room->n_open[ROOM_RESTORING] > 0 || (!is_within && room->n_open[ROOM_FREEING] > 0);
}

static struct room_taking begin_locked(struct room *room, bool is_within)
{
        room->n_takings++;
        room->n_within += is_within;
        return (struct room_taking){ .room = room, .is_within = is_within };
}

static struct room_taking begin(struct room *room, bool is_within)
{
        struct room_taking taking;

        (void)pthread_mutex_lock(&room->lock);
        while (has_window(room, is_within))
                (void)pthread_cond_wait(&room->changed, &room->lock);
        taking = begin_locked(room, is_within);
        end_change(room);
        return taking;
}

struct room_taking room_begin(struct room *room)
{
        return begin(room, false);
}

struct room_taking room_begin_within(struct room *room)
{
        return begin(room, true);
}

bool room_try(struct room *room, struct room_taking *ret_taking)
{
        bool may;

        (void)pthread_mutex_lock(&room->lock);
        may = !has_window(room, false);
        if (may)
                *ret_taking = begin_locked(room, false);
        end_change(room);
        return may;
}

void room_end(struct room_taking *taking)
{
        struct room *room = taking->room;

        (void)pthread_mutex_lock(&room->lock);
        room->n_takings--;
        room->n_within -= taking->is_within;
        taking->room = NULL;
        end_change(room);
}

/* Takings of freeing windows go on beside one another, and beside a checkpoint; not beside a restore. */
static bool has_takings(const struct room *room, enum room_window window)
{
        return window == ROOM_RESTORING ? room->n_takings > 0 : room->n_takings > room->n_within;
}

void room_open(struct room *room, enum room_window window)
{
        (void)pthread_mutex_lock(&room->lock);
        while (has_takings(room, window))
                (void)pthread_cond_wait(&room->changed, &room->lock);
        room->n_open[window]++;
        end_change(room);
}

void room_close(struct room *room, enum room_window window)
{
        (void)pthread_mutex_lock(&room->lock);
        room->n_open[window]--;
        end_change(room);
}
