/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/fault.h"
#include "daemon/log.h"
#include "store/store-internal.h"

int store_error(struct store *store, int error)
{
        char quoted[LOG_QUOTED_MAX];

        if (error >= 0)
                return error;
        log_event(LOG_LEVEL_ERROR, "the state database failed", "error=%s code=%d",
                  log_quote(quoted, database_get_error(&store->database)),
                  sqlite3_errcode(store->database.handle));
        return error == -ENOSPC || error == -ENOMEM ? error : -EIO;
}

/* For tests: the disk is full. COMMIT is none for SQLite, so store_commit() passes the point itself. */
bool store_write_fails(void)
{
        if (!fault_point("store.write"))
                return false;
        log_event(LOG_LEVEL_ERROR, "the state database failed", "error=\"told to fail\"");
        return true;
}

int store_next_row(struct store *store, sqlite3_stmt *statement)
{
        if (!sqlite3_stmt_readonly(statement) && store_write_fails()) {
                sqlite3_reset(statement);
                sqlite3_clear_bindings(statement);
                return -ENOSPC;
        }
        return store_error(store, database_step(statement));
}
