/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_LEDGER_INTERNAL_H
#define LEDGER_LEDGER_INTERNAL_H

/* The statements of the ledger. */

#include "database/database.h"
#include "ledger/ledger.h"
#include "state/state-page.h"

enum statement {
        BEGIN,
        COMMIT,
        PUT_DEVICE,
        GET_DEVICE,
        PUT_VGPU,
        HAS_VGPU,
        PUT_PROCESS,
        PUT_PART,
        DROP_PROCESS,
        ADD_USAGE,
        FOLD_USAGE,
        DROP_USAGE,
        FOLD_VGPU_USAGE,
        DROP_VGPU_USAGE,
        DROP_VGPU_PROCESSES,
        DROP_VGPU,
        CLEAR_LIST,
        PUT_WALL,
        GET_WALL,
        LIST_ENDED,
        LIST_RUNNING,
        LIST_PARTS,
        LIST_RUNNING_PARTS,
        PRUNE_USAGE,
        PRUNE_PROCESSES,
        PRUNE_VGPUS,
        SUM,
        STATEMENTS = SUM + LEDGER_GROUPS,
};

struct ledger {
        struct database database;
        char boot_id[64];
        int64_t device_ids[STATE_DEVICES_MAX];
        const struct ledger_device *devices;
        size_t n_devices;
};

int ledger_prepare(struct ledger *ledger, enum statement which, sqlite3_stmt **ret_statement);

/* ledger_run() - run a statement that has no parameters. */
int ledger_run(struct ledger *ledger, enum statement which);

#endif
