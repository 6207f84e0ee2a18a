/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/simulated.h"

#include <string.h>

#include "abi/sim-table.h"
#include "gate/entry.h"

bool simulated_mend(enum instance_page_whole *ret_whole)
{
        const struct sim_table *table = NULL;
        enum sim_mend mend;
        CUuuid id;

        memcpy(&id, SIM_TABLE_ID, sizeof(id));
        if (DRIVER(cuGetExportTable)((const void **)&table, &id) != CUDA_SUCCESS || !table)
                return false;
        mend = table->mend_contexts();
        *ret_whole = mend == SIM_MEND_DONE ? INSTANCE_PAGE_MENDED : INSTANCE_PAGE_UNWHOLE_REFUSED;
        return mend != SIM_MEND_NOTHING;
}
