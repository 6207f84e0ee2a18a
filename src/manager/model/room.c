/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/room.h"

#include <assert.h>

/* Sums of numbers that guests have a part in: far from the end of a word, and never over it. */
#define SUM_MAX ((uint64_t)INT64_MAX / 2)

static uint64_t add(uint64_t a, uint64_t b)
{
        return b < SUM_MAX - a ? a + b : SUM_MAX;
}

void room_init(struct room *room)
{
        list_init(&room->promises);
        room->turned = 0;
}

void room_promise(struct room *room, struct room_promise *promise, uint64_t bytes)
{
        room_forget(promise);
        list_append(&room->promises, &promise->link);
        promise->room = room;
        promise->bytes = bytes < SUM_MAX ? bytes : SUM_MAX;
        assert(room_is_valid(room));
}

void room_turn(struct room_promise *promise)
{
        if (!promise->room || promise->state == ROOM_MEMORY)
                return;
        promise->state = ROOM_MEMORY;
        promise->room->turned += promise->bytes;
}

void room_turn_part(struct room_promise *promise, uint64_t bytes)
{
        if (!promise->room || promise->state != ROOM_OWED)
                return;
        if (bytes > promise->bytes)
                bytes = promise->bytes;
        promise->bytes -= bytes;
        promise->room->turned += bytes;
}

void room_return(struct room_promise *promise)
{
        promise->state = ROOM_OWED;
}

void room_leave(struct room_promise *promise)
{
        if (promise->room)
                promise->state = ROOM_LEAVING;
}

void room_forget(struct room_promise *promise)
{
        if (promise->room)
                list_remove(&promise->link);
        *promise = (struct room_promise){ 0 };
}

bool room_is_to(const struct room_promise *promise, const struct room *room)
{
        return promise->room == room;
}

void room_lose(struct room *room)
{
        struct room_promise *promise;

        list_for_each(promise, &room->promises, link)
                room_return(promise);
}

static uint64_t sum_in(const struct room *room, enum room_state state)
{
        const struct room_promise *promise;
        uint64_t sum = 0;

        list_for_each(promise, &room->promises, link)
                if (promise->state == state)
                        sum = add(sum, promise->bytes);
        return sum;
}

uint64_t room_owed(const struct room *room)
{
        return sum_in(room, ROOM_OWED);
}

uint64_t room_leaving(const struct room *room)
{
        return sum_in(room, ROOM_LEAVING);
}

bool room_is_valid(const struct room *room)
{
        const struct room_promise *promise;

        list_for_each(promise, &room->promises, link)
                if (promise->room != room || promise->bytes > SUM_MAX ||
                    promise->state > ROOM_MEMORY)
                        return false;
        return true;
}

int64_t room_balance(const struct room *room, uint64_t free, uint64_t mark)
{
        uint64_t owed = add(room_owed(room), add(0, room->turned - mark));

        return (int64_t)add(0, free) - (int64_t)owed;
}
