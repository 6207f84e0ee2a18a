/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/limit.h"

#include "base/control-group.h"

static uint32_t count(const struct host *host)
{
        return host->n_limits < HOST_LIMITS ? host->n_limits : HOST_LIMITS;
}

static uint64_t sum_used(const struct host *host, const struct host_slot *ours,
                         const struct host_limit *limit, int device)
{
        uint64_t sum = limit->shared[device];

        for (uint32_t i = 0; i < host->n_slots; i++) {
                const struct host_slot *slot = &host->slot[i];

                if (slot->pid && slot->used[device] > 0 &&
                    (slot == ours || control_group_has(limit->path, slot->pid)))
                        sum += slot->used[device];
        }
        return sum;
}

bool limit_has_room(const struct host *host, const struct host_slot *ours, int device,
                    uint64_t size)
{
        for (uint32_t i = 0; i < count(host); i++) {
                const struct host_limit *limit = &host->limit[i];
                uint64_t used;

                if (!limit->path[0] || !control_group_has(limit->path, 0))
                        continue;
                used = sum_used(host, ours, limit, device);
                if (used > limit->bytes || size > limit->bytes - used)
                        return false;
        }
        return true;
}

uint32_t limit_of_us(const struct host *host)
{
        for (uint32_t i = 0; i < count(host); i++) {
                const struct host_limit *limit = &host->limit[i];

                if (limit->path[0] && control_group_has(limit->path, 0))
                        return i + 1;
        }
        return 0;
}
