/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

/* Statements of the store, for its own files. Errors: -EIO, -ENOSPC, -ENOMEM, logged. */

#include "database/database.h"
#include "store/store.h"

struct store {
        struct database database;
        bool waits_for_disk; /* this transaction */
};

/* store_error() - log an error of the database, and which of ours it is; what is none is given back. */
int store_error(struct store *store, int error);

/* STORE_START() - as database_start() */
#define STORE_START(store, ret_statement, text, ...) \
        store_error(store, database_start(&(store)->database, ret_statement, text, __VA_ARGS__))

/*
 * store_next_row() - one row after another: 1, then 0 at the end; the statement is ready for its
 * next use then.
 */
int store_next_row(struct store *store, sqlite3_stmt *statement);

/* store_write_fails() - the fault point store.write, which each write passes, and each end of a transaction. */
bool store_write_fails(void);

/* STORE_RUN() - a statement of which at most one row is wanted. */
#define STORE_RUN(store, text, ...)                                          \
        __extension__({                                                      \
                sqlite3_stmt *statement_;                                    \
                int r_ = STORE_START(store, &statement_, text, __VA_ARGS__); \
                r_ < 0 ? r_ : store_next_row(store, statement_);             \
        })

#endif
