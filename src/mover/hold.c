/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/hold.h"

#include <errno.h>
#include <stdlib.h>

#include "base/size.h"
#include "mover/driver.h"
#include "mover/mapping.h"

/* All real granularities divide it. */
#define HOLD_UNIT (2 * MIB)

struct hold {
        struct hold *next;
        int pid;
        uint32_t request; /* the last that has asked for it */
        uint64_t bytes;
        struct mapping memory; /* mapped nowhere */
};

static uint64_t sum_locked(const struct holds *holds, int pid)
{
        uint64_t sum = 0;

        for (const struct hold *hold = holds->first; hold; hold = hold->next)
                if (hold->pid == pid)
                        sum += hold->bytes;
        return sum;
}

static int add_locked(struct holds *holds, const struct room_taking *taking,
                      const struct device *device, int pid, uint64_t bytes, uint32_t request,
                      struct mover_done *done)
{
        struct hold *hold = calloc(1, sizeof(*hold));
        int r;

        if (!hold)
                return -ENOMEM;
        *hold = (struct hold){
                .next = holds->first, .pid = pid, .request = request, .bytes = bytes
        };
        r = mapping_create(&hold->memory, taking, device->id, bytes, done);
        if (r < 0) {
                mapping_deinit(&hold->memory);
                free(hold);
                return r;
        }
        holds->first = hold;
        return 0;
}

/* Numbers of requests begin anew after the last. */
static bool is_after(uint32_t request, uint32_t other)
{
        return (int32_t)(request - other) > 0;
}

static void renew_locked(struct holds *holds, int pid, uint32_t request)
{
        for (struct hold *hold = holds->first; hold; hold = hold->next)
                if (hold->pid == pid && is_after(request, hold->request))
                        hold->request = request;
}

/* The part of @wanted bytes that is not held yet; memory that is held is @request's. */
static uint64_t find_lack_locked(struct holds *holds, int pid, uint64_t wanted, uint32_t request)
{
        uint64_t held = sum_locked(holds, pid);

        renew_locked(holds, pid, request);
        return held < wanted ? wanted - held : 0;
}

static uint64_t find_lack(struct holds *holds, int pid, uint64_t wanted, uint32_t request)
{
        uint64_t lack;

        pthread_mutex_lock(&holds->lock);
        lack = find_lack_locked(holds, pid, wanted, request);
        pthread_mutex_unlock(&holds->lock);
        return lack;
}

static uint64_t round_up(uint64_t bytes)
{
        return (bytes + HOLD_UNIT - 1) / HOLD_UNIT * HOLD_UNIT;
}

/* A part of @wanted bytes; another thread may have taken some since it was found to be lacking. */
static int take(struct holds *holds, const struct room_taking *taking, const struct device *device,
                int pid, uint64_t wanted, uint32_t request, struct mover_done *done)
{
        uint64_t lack;
        int r;

        pthread_mutex_lock(&holds->lock);
        lack = find_lack_locked(holds, pid, wanted, request);
        r = lack > 0 ? add_locked(holds, taking, device, pid, lack, request, done) : 0;
        pthread_mutex_unlock(&holds->lock);
        return r;
}

int hold_take(struct holds *holds, struct device *device, int pid, uint64_t bytes, uint32_t request,
              uint32_t wait_ms, struct mover_done *done)
{
        struct room_taking taking;
        int r;

        if (bytes > UINT64_MAX - HOLD_UNIT)
                return -EINVAL;
        if (find_lack(holds, pid, round_up(bytes), request) == 0) /* which waits for no window */
                return 0;
        if (!device_try_taking(device, wait_ms, &taking))
                return -ENOMEM;
        r = take(holds, &taking, device, pid, round_up(bytes), request, done);
        device_end_taking(device, &taking);
        return r;
}

static int take_claimed(struct holds *holds, const struct room_taking *taking,
                        struct device *device, int pid, uint64_t bytes, uint32_t request,
                        struct mover_done *done)
{
        uint64_t lack = find_lack(holds, pid, bytes, request);
        struct margin_claim claim;
        int r;

        if (lack == 0)
                return 0;
        if (device_claim(device, MARGIN_HOLD, lack, &claim) < 0)
                return -ENOMEM;
        r = take(holds, taking, device, pid, bytes, request, done);
        device_unclaim(device, &claim);
        return r;
}

int hold_take_within(struct holds *holds, struct device *device, int pid, uint64_t bytes,
                     uint32_t request, uint32_t wait_ms, struct mover_done *done)
{
        struct room_taking taking;
        int r;

        if (bytes > UINT64_MAX - HOLD_UNIT)
                return -EINVAL;
        if (!room_try_within(&device->room, wait_ms, &taking))
                return -ENOMEM;
        r = take_claimed(holds, &taking, device, pid, round_up(bytes), request, done);
        room_end(&taking);
        return r;
}

uint64_t hold_get(struct holds *holds, int pid)
{
        uint64_t bytes;

        pthread_mutex_lock(&holds->lock);
        bytes = sum_locked(holds, pid);
        pthread_mutex_unlock(&holds->lock);
        return bytes;
}

int hold_drop(struct holds *holds, int pid, uint32_t request, struct mover_done *done)
{
        struct hold **place = &holds->first, *hold;
        int r = 0;

        pthread_mutex_lock(&holds->lock);
        while (r == 0 && (hold = *place)) {
                if (hold->pid != pid || is_after(hold->request, request)) {
                        place = &hold->next;
                        continue;
                }
                r = mapping_release(&hold->memory, done);
                if (r < 0)
                        continue;
                *place = hold->next;
                mapping_deinit(&hold->memory);
                free(hold);
        }
        pthread_mutex_unlock(&holds->lock);
        return r;
}

bool holds_are_empty(struct holds *holds)
{
        bool are_empty;

        pthread_mutex_lock(&holds->lock);
        are_empty = holds->first == NULL;
        pthread_mutex_unlock(&holds->lock);
        return are_empty;
}
