/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

/*
 * A table on standard output: columns as wide as their widest cell, two blanks between them. On a terminal that is
 * too narrow, lines are cut at its edge, but not what is left of the last number.
 *
 * Cells are cleaned of control characters, since some of them are chosen by guests.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

#define TABLE_CELL_MAX 128

struct column {
        const char *title; /* NULL ends a list */
        bool is_number;    /* aligned at the right */
};

struct table {
        const struct column *columns;
        size_t n_columns, n_cells, room;
        char (*cells)[TABLE_CELL_MAX];
        bool is_broken; /* a cell is lost: no memory */
};

/* table_init() - no rows yet; @columns are borrowed. table_deinit() may be called twice. */
void table_init(struct table *table, const struct column *columns);
void table_deinit(struct table *table);

/* table_add() - the next cell, row by row. */
__attribute__((format(printf, 2, 3))) void table_add(struct table *table, const char *format, ...);

/* table_print() - with the titles. Errors: -ENOMEM. */
int table_print(const struct table *table);

static inline void table_deinitp(struct table *table)
{
        table_deinit(table);
}

#endif
