/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

/* Runs statements, for the files of the store. Errors: -EIO, -ENOSPC, -ENOMEM; all are logged. */

#include "database/database.h"
#include "store/store.h"

struct store {
        struct database database;
        bool waits_for_disk; /* this transaction */
};

/* store_error() - log an error of the database, and return which of ours it is; return any other value as it is. */
int store_error(struct store *store, int error);

/* STORE_START() - call database_start(), and log its error. */
#define STORE_START(store, ret_statement, text, ...) \
        store_error(store, database_start(&(store)->database, ret_statement, text, __VA_ARGS__))

/*
 * store_next_row() - go to the next row: 1, or 0 at the end; then the statement is ready for its next
 * use.
 */
int store_next_row(struct store *store, sqlite3_stmt *statement);

/* store_write_fails() - pass the fault point store.write, as each write and each end of a transaction does. */
bool store_write_fails(void);

/* STORE_RUN() - run a statement of which at most one row is wanted. */
#define STORE_RUN(store, text, ...)                                          \
        __extension__({                                                      \
                sqlite3_stmt *statement_;                                    \
                int r_ = STORE_START(store, &statement_, text, __VA_ARGS__); \
                r_ < 0 ? r_ : store_next_row(store, statement_);             \
        })

#endif
