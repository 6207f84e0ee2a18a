/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

/*
 * Statements of the store, for its own files.
 *
 * Every statement is a string literal that is prepared once and found again by
 * its address. Parameters are bound from a short format: i for int64_t, s for
 * const char *. SQLite keeps no pointer longer than the step.
 */

#include <sqlite3.h>

#include "store/store.h"

#define STORE_STATEMENTS_MAX 48

struct store {
        sqlite3 *database;
        bool waits_for_disk; /* this transaction */
        size_t n_statements;
        struct {
                const char *text;
                sqlite3_stmt *prepared;
        } statement[STORE_STATEMENTS_MAX];
};

int store_start(struct store *store, sqlite3_stmt **ret_statement, const char *text,
                const char *format, ...);

/*
 * store_next_row() - one row after another: 1, then 0 at the end; the statement is ready for its
 * next use then. Errors: -EIO, -ENOSPC, -ENOMEM, logged.
 */
int store_next_row(struct store *store, sqlite3_stmt *statement);

/* store_write_fails() - the fault point store.write, which each write passes, and each end of a transaction. */
bool store_write_fails(void);

/* STORE_RUN() - a statement of which at most one row is wanted. */
#define STORE_RUN(store, text, ...)                                          \
        __extension__({                                                      \
                sqlite3_stmt *statement_;                                    \
                int r_ = store_start(store, &statement_, text, __VA_ARGS__); \
                r_ < 0 ? r_ : store_next_row(store, statement_);             \
        })

void store_copy_text(char *to, size_t size, sqlite3_stmt *statement, int column);

#endif
