/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/fault.h"
#include "daemon/log.h"
#include "store/store-internal.h"

static int store_error(struct store *store, int code)
{
        char quoted[LOG_QUOTED_MAX];

        log_event(LOG_LEVEL_ERROR, "the state database failed", "error=%s code=%d",
                  log_quote(quoted, sqlite3_errmsg(store->database)), code);
        switch (code & 0xff) {
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_NOMEM:
                return -ENOMEM;
        default:
                return -EIO;
        }
}

static int find_statement(struct store *store, sqlite3_stmt **ret_statement, const char *text)
{
        sqlite3_stmt *prepared;
        int code;

        for (size_t i = 0; i < store->n_statements; i++)
                if (store->statement[i].text == text) {
                        *ret_statement = store->statement[i].prepared;
                        return 0;
                }
        if (store->n_statements == STORE_STATEMENTS_MAX)
                return -EIO;

        code = sqlite3_prepare_v3(store->database, text, -1, SQLITE_PREPARE_PERSISTENT, &prepared,
                                  NULL);
        if (code != SQLITE_OK)
                return store_error(store, code);
        store->statement[store->n_statements].text = text;
        store->statement[store->n_statements++].prepared = prepared;
        *ret_statement = prepared;
        return 0;
}

static void bind(sqlite3_stmt *statement, const char *format, va_list args)
{
        for (int i = 0; format[i]; i++)
                if (format[i] == 'i')
                        sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
                else
                        sqlite3_bind_text(statement, i + 1, va_arg(args, const char *), -1,
                                          SQLITE_STATIC);
}

int store_start(struct store *store, sqlite3_stmt **ret_statement, const char *text,
                const char *format, ...)
{
        va_list args;
        int r = find_statement(store, ret_statement, text);

        if (r < 0)
                return r;
        va_start(args, format);
        bind(*ret_statement, format, args);
        va_end(args);
        return 0;
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
        int code, r;

        if (!sqlite3_stmt_readonly(statement) && store_write_fails()) {
                r = -ENOSPC;
        } else {
                code = sqlite3_step(statement);
                r = code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : store_error(store, code);
        }
        if (r <= 0) {
                sqlite3_reset(statement);
                sqlite3_clear_bindings(statement);
        }
        return r;
}

void store_copy_text(char *to, size_t size, sqlite3_stmt *statement, int column)
{
        const unsigned char *text = sqlite3_column_text(statement, column);

        snprintf(to, size, "%s", text ? (const char *)text : "");
}
