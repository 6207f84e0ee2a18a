/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_LEDGER_INTERNAL_H
#define LEDGER_LEDGER_INTERNAL_H

/* The statements of the ledger: each is prepared when it is first needed and kept. */

#include <sqlite3.h>

#include "board/board.h"
#include "ledger/ledger.h"

enum statement {
        BEGIN,
        COMMIT,
        PUT_DEVICE,
        GET_DEVICE,
        PUT_VGPU,
        HAS_VGPU,
        PUT_PROCESS,
        ADD_USAGE,
        CLEAR_LIST,
        PUT_WALL,
        GET_WALL,
        LIST_ENDED,
        LIST_RUNNING,
        PRUNE_USAGE,
        PRUNE_PROCESSES,
        PRUNE_VGPUS,
        SUM,
        STATEMENTS = SUM + LEDGER_BY_DEVICE + 1,
};

struct ledger {
        sqlite3 *database;
        sqlite3_stmt *prepared[STATEMENTS];
        char boot_id[64];
        int64_t device_ids[BOARD_DEVICES_MAX];
        const struct ledger_device *devices;
        size_t n_devices;
};

/* statement_from_code() - SQLite's code as one of our errors. */
int statement_from_code(int code);

int statement_prepare(struct ledger *ledger, enum statement which, sqlite3_stmt **ret_statement);

/* statement_step() - 1: a row; 0: the end, after which the statement can be used anew. */
int statement_step(sqlite3_stmt *statement);

/* statement_run() - one that has no parameters. */
int statement_run(struct ledger *ledger, enum statement which);

void statement_bind_integers(sqlite3_stmt *statement, int first, const uint64_t *values, int n);

/* statement_bind_text() - it must live until the statement has been stepped. */
void statement_bind_text(sqlite3_stmt *statement, int at, const char *text);

void statement_get_text(sqlite3_stmt *statement, int column, char *to, size_t size);
uint64_t statement_get_integer(sqlite3_stmt *statement, int column);

#endif
