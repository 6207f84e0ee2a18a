/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual-limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "manager/publish/virtual-internal.h"

/* That of the control group, else one that is free: never used, or of a control group that has gone. */
static uint32_t find_slot(const struct state_page *state_page, uint32_t device, const char *path)
{
        struct state_memory_limit record;
        uint32_t slot_free = STATE_NONE;

        for (uint32_t slot = 0; slot < STATE_MEMORY_LIMITS_MAX; slot++) {
                bool is_used = state_read_memory_limit(state_page, slot, &record);

                if (is_used && record.device == device && strcmp(record.path, path) == 0)
                        return slot;
                if (slot_free == STATE_NONE && (!is_used || access(record.path, F_OK) < 0))
                        slot_free = slot;
        }
        return slot_free;
}

int virtual_set_memory_limit(struct virtual_stage *stage, uint32_t device, const char *path,
                             uint64_t soft, uint64_t hard, struct failure *failure)
{
        struct state_memory_limit record = { .device = device,
                                             .soft = soft,
                                             .hard = hard ? hard : UINT64_MAX };
        uint32_t slot;

        if (!stage)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                                   "try it in a scenario (docs/scenarios.md)",
                                   "no kernel here would hold anybody to a memory limit");
        if (path[0] != '/' || strlen(path) >= sizeof(record.path))
                return failure_parameter(failure, "path", "",
                                         "must begin with / and be shorter than %zu bytes",
                                         sizeof(record.path));
        if (record.soft > record.hard)
                return failure_parameter(failure, "soft", "", "must not be above the hard limit");
        slot = find_slot(stage->state_page, device, path);
        if (slot == STATE_NONE)
                return failure_set(failure, -ENOSPC, "NoRoom", "take others away first",
                                   "there are %d memory limits already", STATE_MEMORY_LIMITS_MAX);
        snprintf(record.path, sizeof(record.path), "%s", path);
        state_write_memory_limit(stage->state_page, slot, soft || hard ? &record : NULL);
        return 0;
}
