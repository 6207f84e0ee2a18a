/* SPDX-License-Identifier: Apache-2.0 */
/* Usage as JSON, in the names and shapes of docs/control-protocol.md. */

#include "cli/usage.h"
#include "record/records.h"
#include "record/usage-row.h"

json_t *usage_document_snapshot(const struct vgpu_usage_snapshot *snapshot)
{
        return record_make(&record_snapshot, snapshot);
}

json_t *usage_document_accounts(const struct vgpu_usage_account_list *list)
{
        return record_make(&record_account_list, list);
}

json_t *usage_document_rows(const struct vgpu_usage_list *list, enum vgpu_usage_group group)
{
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < list->n_rows; i++)
                if (json_array_append_new(array, usage_row_make(list->rows[i], group)) < 0)
                        return NULL;
        return json_pack("{sO}", "rows", array);
}
