/* SPDX-License-Identifier: Apache-2.0 */
#include "record/usage-row.h"

#include "record/records.h"

#define BY(group_) (1u << VGPU_USAGE_BY_##group_)

/* The members that only some groups have. */
static const struct {
        const char *name;
        unsigned int groups;
} members[] = {
        { "tenant", BY(TENANT) | BY(VGPU) | BY(PROCESS) | BY(JOB) | BY(CONTAINER) | BY(PART) },
        { "vgpu", BY(VGPU) | BY(PROCESS) | BY(PART) },
        { "vgpu_uuid", BY(VGPU) | BY(PROCESS) | BY(PART) },
        { "pid", BY(PROCESS) },
        { "name", BY(PROCESS) },
        { "started", BY(PROCESS) },
        { "ended", BY(PROCESS) },
        { "device_uuid", BY(DEVICE) | BY(PART) },
        { "device_name", BY(DEVICE) | BY(PART) },
        { "job", BY(JOB) },
        { "memory_peak", BY(JOB) | BY(CONTAINER) },
        { "container", BY(CONTAINER) },
        { "container_name", BY(CONTAINER) },
};

json_t *usage_row_make(const struct vgpu_usage_row *row, enum vgpu_usage_group group)
{
        json_t *json = record_make(&record_usage_row, row);

        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
                if (!(members[i].groups & 1u << group))
                        json_object_del(json, members[i].name);
        return json;
}
