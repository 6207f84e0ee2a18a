/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/room.h"

#include <assert.h>

#include "base/clock.h"

void room_init(struct room *room)
{
        *room = (struct room){ .wait_ms = ROOM_WAIT_MS,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
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

/* That is open, or waits: else takings that overlap one another could keep it waiting for ever. */
static bool has_window(const struct room *room, enum room_window window)
{
        return room->n_open[window] > 0 || room->n_waiting[window] > 0;
}

static bool must_wait(const struct room *room, bool is_within)
{
        return has_window(room, ROOM_RESTORING) || (!is_within && has_window(room, ROOM_FREEING));
}

static bool begin(struct room *room, bool is_within, uint32_t ms, struct room_taking *ret_taking)
{
        const struct timespec deadline = clock_in(ms);
        bool may;
        int r = 0;

        (void)pthread_mutex_lock(&room->lock);
        while (must_wait(room, is_within) && r == 0)
                r = pthread_cond_clockwait(&room->changed, &room->lock, CLOCK_MONOTONIC, &deadline);
        may = !must_wait(room, is_within);
        if (may) {
                room->n_takings++;
                room->n_within += is_within;
                *ret_taking = (struct room_taking){ .room = room, .is_within = is_within };
        }
        end_change(room);
        return may;
}

bool room_begin(struct room *room, struct room_taking *ret_taking)
{
        return begin(room, false, room->wait_ms, ret_taking);
}

bool room_try(struct room *room, struct room_taking *ret_taking)
{
        return room_try_for(room, 0, ret_taking);
}

bool room_try_for(struct room *room, uint32_t ms, struct room_taking *ret_taking)
{
        return begin(room, false, ms, ret_taking);
}

bool room_try_within(struct room *room, uint32_t ms, struct room_taking *ret_taking)
{
        return begin(room, true, ms, ret_taking);
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
        room->n_waiting[window]++;
        while (has_takings(room, window))
                (void)pthread_cond_wait(&room->changed, &room->lock);
        room->n_waiting[window]--;
        room->n_open[window]++;
        end_change(room);
}

void room_close(struct room *room, enum room_window window)
{
        (void)pthread_mutex_lock(&room->lock);
        room->n_open[window]--;
        end_change(room);
}
