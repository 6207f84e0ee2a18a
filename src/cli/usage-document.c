/* SPDX-License-Identifier: Apache-2.0 */
/* Usage as JSON, in the names and shapes of docs/control-protocol.md. */

#include "cli/usage.h"
#include "record/records.h"

json_t *usage_document_snapshot(const struct vgpu_usage_snapshot *snapshot)
{
        return record_make(&record_snapshot, snapshot);
}

json_t *usage_document_accounts(const struct vgpu_usage_account_list *list)
{
        return record_make(&record_account_list, list);
}

/* The members that a row has only when it is summed up by one of the groups. */
#define BY(group_) (1u << VGPU_USAGE_BY_##group_)
static const struct {
        const char *name;
        unsigned int groups;
} group_members[] = {
        { "tenant", BY(TENANT) | BY(VGPU) | BY(PROCESS) },
        { "vgpu", BY(VGPU) | BY(PROCESS) },
        { "vgpu_uuid", BY(VGPU) | BY(PROCESS) },
        { "pid", BY(PROCESS) },
        { "name", BY(PROCESS) },
        { "started", BY(PROCESS) },
        { "ended", BY(PROCESS) },
        { "device_uuid", BY(DEVICE) },
        { "device_name", BY(DEVICE) },
};

json_t *usage_document_rows(const struct vgpu_usage_list *list, enum vgpu_usage_group group)
{
        json_t *document = record_make(&record_usage_list, list), *row;
        size_t i;

        json_array_foreach(json_object_get(document, "rows"), i,
                           row) for (size_t k = 0;
                                     k < sizeof(group_members) / sizeof(group_members[0]);
                                     k++) if (!(group_members[k].groups & 1u << group))
                json_object_del(row, group_members[k].name);
        return document;
}
