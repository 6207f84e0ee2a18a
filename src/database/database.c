/* SPDX-License-Identifier: Apache-2.0 */
#include "database/database.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

static int error_from_code(int code)
{
        switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_DONE:
        case SQLITE_ROW:
                return 0;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return -EUCLEAN;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_CANTOPEN:
        case SQLITE_READONLY:
        case SQLITE_PERM:
                return -EACCES;
        default:
                return -EIO;
        }
}

int database_open(struct database *database, const char *path, int flags)
{
        mode_t mask = umask(077);
        int code;

        *database = (struct database){ .n_statements = 0 };
        code = sqlite3_open_v2(path, &database->handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | flags, NULL);
        umask(mask);
        return error_from_code(code);
}

void database_close(struct database *database)
{
        for (size_t i = 0; i < database->n_statements; i++)
                sqlite3_finalize(database->statement[i].prepared);
        sqlite3_close(database->handle);
        *database = (struct database){ .n_statements = 0 };
}

const char *database_get_error(const struct database *database)
{
        return sqlite3_errmsg(database->handle);
}

int database_execute(struct database *database, const char *text)
{
        return error_from_code(sqlite3_exec(database->handle, text, NULL, NULL, NULL));
}

int database_prepare(struct database *database, sqlite3_stmt **ret_statement, const char *text)
{
        sqlite3_stmt *prepared;
        int code;

        for (size_t i = 0; i < database->n_statements; i++)
                if (database->statement[i].text == text) {
                        *ret_statement = database->statement[i].prepared;
                        return 0;
                }
        if (database->n_statements == DATABASE_STATEMENTS_MAX)
                return -EIO;

        code = sqlite3_prepare_v3(database->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &prepared,
                                  NULL);
        if (code != SQLITE_OK)
                return error_from_code(code);
        database->statement[database->n_statements].text = text;
        database->statement[database->n_statements++].prepared = prepared;
        *ret_statement = prepared;
        return 0;
}

static void bind(sqlite3_stmt *statement, const char *format, va_list args)
{
        for (int i = 0; format[i]; i++)
                if (format[i] == 'i')
                        sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
                else
                        database_bind_text(statement, i + 1, va_arg(args, const char *));
}

int database_start(struct database *database, sqlite3_stmt **ret_statement, const char *text,
                   const char *format, ...)
{
        va_list args;
        int r = database_prepare(database, ret_statement, text);

        if (r < 0)
                return r;
        va_start(args, format);
        bind(*ret_statement, format, args);
        va_end(args);
        return 0;
}

int database_step(sqlite3_stmt *statement)
{
        int code = sqlite3_step(statement);

        if (code == SQLITE_ROW)
                return 1;
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
        return error_from_code(code);
}

int database_read_integer(struct database *database, const char *text, int64_t *ret_value)
{
        sqlite3_stmt *statement;
        int r = database_start(database, &statement, text, "");

        if (r < 0)
                return r;
        r = database_step(statement);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        *ret_value = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        return 0;
}

void database_bind_integers(sqlite3_stmt *statement, int first, const uint64_t *values, int n)
{
        for (int i = 0; i < n; i++)
                sqlite3_bind_int64(statement, first + i, (sqlite3_int64)values[i]);
}

void database_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

uint64_t database_get_integer(sqlite3_stmt *statement, int column)
{
        return (uint64_t)sqlite3_column_int64(statement, column);
}

void database_get_text(sqlite3_stmt *statement, int column, char *to, size_t size)
{
        const unsigned char *text = sqlite3_column_text(statement, column);

        snprintf(to, size, "%s", text ? (const char *)text : "");
}
