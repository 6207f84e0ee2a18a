/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATABASE_DATABASE_H
#define DATABASE_DATABASE_H

/*
 * An SQLite database: statements that are prepared once, and errors as errno knows them.
 *
 * A statement is a string that lives as long as the database; it is found again by its address.
 * Parameters are bound from a short format: i for int64_t, s for const char *. What is bound must live
 * until the statement has been stepped.
 *
 * Errors of all functions: -EBUSY (locked by somebody else), -ENOSPC, -ENOMEM, -EUCLEAN (damaged),
 * -EACCES, -EIO; database_get_error() has SQLite's words. One thread at a time.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DATABASE_STATEMENTS_MAX 96

struct database {
        sqlite3 *handle;
        bool holds_room; /* database_log_ahead() */
        size_t n_statements;
        struct {
                const char *text;
                sqlite3_stmt *prepared;
        } statement[DATABASE_STATEMENTS_MAX];
};

/*
 * database_open() - open the file, or make it, for its owner alone; @flags: more of SQLITE_OPEN_*.
 * After an error it is to be closed as well.
 */
int database_open(struct database *database, const char *path, int flags);
void database_close(struct database *database);

/*
 * database_log_ahead() - write-ahead logging that a small or full disk can take
 *
 * SQLite lets its log grow to 4 MiB before it takes from there what belongs into the database. Where the disk has less
 * left, the log alone would fill it, and no change could ever be made again. There we take it out soon, so that the log is
 * written from its beginning again, in the blocks that it has. @holds_room: blocks of both files are held from now on, so
 * that small changes can be made on a disk that is full.
 */
int database_log_ahead(struct database *database, bool holds_room);

const char *database_get_error(const struct database *database);

/* database_execute() - one statement or several without parameters or answers, not kept. */
int database_execute(struct database *database, const char *text);

int database_prepare(struct database *database, sqlite3_stmt **ret_statement, const char *text);
int database_start(struct database *database, sqlite3_stmt **ret_statement, const char *text,
                   const char *format, ...);

/* database_step() - 1: a row; 0: the end, after which the statement can be used anew, as after an error. */
int database_step(sqlite3_stmt *statement);

/* DATABASE_RUN() - a statement of which at most one row is wanted. */
#define DATABASE_RUN(database, text, ...)                                          \
        __extension__({                                                            \
                sqlite3_stmt *statement_;                                          \
                int r_ = database_start(database, &statement_, text, __VA_ARGS__); \
                r_ < 0 ? r_ : database_step(statement_);                           \
        })

/* database_read_integer() - of the first column of the only row. Errors: also -EIO when there is none. */
int database_read_integer(struct database *database, const char *text, int64_t *ret_value);

void database_bind_integers(sqlite3_stmt *statement, int first, const uint64_t *values, int n);
void database_bind_text(sqlite3_stmt *statement, int at, const char *text);
uint64_t database_get_integer(sqlite3_stmt *statement, int column);
void database_get_text(sqlite3_stmt *statement, int column, char *to, size_t size);

#endif
