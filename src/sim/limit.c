/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/limit.h"

#include "base/control-group.h"

uint32_t limit_count(const struct host *host)
{
        uint32_t n = host->n_limits;

        return n < HOST_LIMITS ? n : HOST_LIMITS;
}

/* We are within the limit: our own part counts. */
static uint64_t sum_used(const struct host_view *view, const struct host_slots_copy *others,
                         uint64_t ours, uint32_t number, int device)
{
        const struct host_limit *limit = &view->host->limit[number];
        uint64_t memory = view->host->device[device].memory, sum;

        host_view_read(view, &sum, sizeof(sum), HOST_SLOTS_AT(limit_shared[number][device]));
        if (sum > memory)
                sum = memory;
        sum += ours;
        for (uint32_t i = 0; i < others->n; i++)
                if (others->used[i] > 0 && control_group_has(limit->path, others->slot[i].pid))
                        sum += others->used[i];
        return sum;
}

bool limit_has_room(const struct host_view *view, const struct host_slots_copy *others,
                    uint64_t ours, int device, uint64_t size)
{
        for (uint32_t i = 0; i < limit_count(view->host); i++) {
                const struct host_limit *limit = &view->host->limit[i];
                uint64_t used;

                if (!limit->path[0] || !control_group_has(limit->path, 0))
                        continue;
                used = sum_used(view, others, ours, i, device);
                if (used > limit->bytes || size > limit->bytes - used)
                        return false;
        }
        return true;
}

uint32_t limit_of_us(const struct host *host)
{
        for (uint32_t i = 0; i < limit_count(host); i++) {
                const struct host_limit *limit = &host->limit[i];

                if (limit->path[0] && control_group_has(limit->path, 0))
                        return i + 1;
        }
        return 0;
}
