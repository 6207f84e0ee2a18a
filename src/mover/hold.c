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

static int add_locked(struct holds *holds, const struct device *device, int pid, uint64_t bytes,
                      uint32_t request, struct mover_done *done)
{
        struct hold *hold = calloc(1, sizeof(*hold));
        int r;

        if (!hold)
                return -ENOMEM;
        *hold = (struct hold){
                .next = holds->first, .pid = pid, .request = request, .bytes = bytes
        };
        r = mapping_create(&hold->memory, device->id, bytes, done);
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

int hold_take(struct holds *holds, const struct device *device, int pid, uint64_t bytes,
              uint32_t request, struct mover_done *done)
{
        uint64_t wanted, held;
        int r = 0;

        if (bytes > UINT64_MAX - HOLD_UNIT)
                return -EINVAL;
        wanted = (bytes + HOLD_UNIT - 1) / HOLD_UNIT * HOLD_UNIT;
        pthread_mutex_lock(&holds->lock);
        held = sum_locked(holds, pid);
        if (held < wanted)
                r = add_locked(holds, device, pid, wanted - held, request, done);
        if (r == 0)
                renew_locked(holds, pid, request);
        pthread_mutex_unlock(&holds->lock);
        return r;
}

void hold_drop(struct holds *holds, int pid, uint32_t request)
{
        struct hold **place = &holds->first, *hold;

        pthread_mutex_lock(&holds->lock);
        while ((hold = *place)) {
                if (hold->pid != pid || is_after(hold->request, request)) {
                        place = &hold->next;
                        continue;
                }
                *place = hold->next;
                mapping_deinit(&hold->memory);
                free(hold);
        }
        pthread_mutex_unlock(&holds->lock);
}

bool holds_are_empty(struct holds *holds)
{
        bool are_empty;

        pthread_mutex_lock(&holds->lock);
        are_empty = holds->first == NULL;
        pthread_mutex_unlock(&holds->lock);
        return are_empty;
}
