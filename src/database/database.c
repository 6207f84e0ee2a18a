/* SPDX-License-Identifier: Apache-2.0 */
#include "database/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"

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

/* As SQLite does by itself. */
#define PAGES_MOST 1000

/* On a disk that has less left than a log of that many pages may take. */
#define PAGES_TIGHT 16
#define TIGHT       ((uint64_t)8 << 20)

/*
 * Of the log: more than what is taken out of it at a time, with what the largest of our frequent changes adds. Of the
 * database: beyond what it has, for what is new.
 */
#define HELD_LOG  (256 << 10)
#define HELD_FILE (128 << 10)
#define CHUNK     (64 << 10)

static bool is_tight(sqlite3 *handle, const char *name)
{
        struct statvfs disk;

        return statvfs(sqlite3_db_filename(handle, name), &disk) == 0 &&
               (uint64_t)disk.f_bavail * disk.f_frsize < TIGHT;
}

/* Nothing is wrong where that is not possible: then it is as if it had not been wanted. */
static void hold_file(struct database *database)
{
        int64_t n_pages, page_size;
        sqlite3_int64 size;

        if (!database->holds_room ||
            database_read_integer(database, "PRAGMA page_count", &n_pages) < 0 ||
            database_read_integer(database, "PRAGMA page_size", &page_size) < 0)
                return;
        size = n_pages * page_size + HELD_FILE;
        (void)sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_SIZE_HINT, &size);
}

static void hold_log(struct database *database)
{
        const char *log = sqlite3_filename_wal(sqlite3_db_filename(database->handle, "main"));
        CLEANUP(fd_closep) int fd = open(log, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        int chunk = CHUNK;

        (void)sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
        if (fd >= 0)
                (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, HELD_LOG);
}

/* What cannot be taken out stays in the log. */
static void take_out(struct database *database)
{
        (void)sqlite3_wal_checkpoint_v2(database->handle, "main", SQLITE_CHECKPOINT_PASSIVE, NULL,
                                        NULL);
        hold_file(database);
}

/* After each commit, with the pages that the log has now. */
static int on_commit(void *userdata, sqlite3 *handle, const char *name, int n_pages)
{
        if (n_pages >= PAGES_MOST || (n_pages >= PAGES_TIGHT && is_tight(handle, name)))
                take_out(userdata);
        return SQLITE_OK;
}

int database_log_ahead(struct database *database, bool holds_room)
{
        /* The transaction makes the log, or reads the one that there is. */
        int r = database_execute(database, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                                           "BEGIN IMMEDIATE; COMMIT");

        if (r < 0)
                return r;
        (void)sqlite3_wal_hook(database->handle, on_commit, database);
        database->holds_room = holds_room;
        if (holds_room)
                hold_log(database);
        if (is_tight(database->handle, "main"))
                take_out(database);
        else
                hold_file(database);
        return 0;
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
