/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FD_TABLE_H
#define BASE_FD_TABLE_H

/*
 * File descriptors under labels, owned by the table.
 *
 * An array that is searched from end to end: some thousand labels at most, a few
 * looked up a second. The order is not kept.
 */

#include <stddef.h>

/* With its NUL. */
#define FD_TABLE_LABEL_MAX 120

struct fd_table_entry {
        char label[FD_TABLE_LABEL_MAX];
        int fd;
};

struct fd_table {
        struct fd_table_entry *entries;
        size_t n;
        size_t capacity;
};

/* fd_table_deinit() - close everything; the table is then empty and may be used again. */
void fd_table_deinit(struct fd_table *table);

/* fd_table_reserve() - make room, so that the next fd_table_put() cannot fail. Errors: -ENOMEM. */
int fd_table_reserve(struct fd_table *table);

/*
 * fd_table_put() - @fd, which is taken, as @label; what had the label is closed
 * Errors: -ENAMETOOLONG, -ENOMEM; @fd is then the caller's still.
 */
int fd_table_put(struct fd_table *table, const char *label, int fd);

/* fd_table_drop() - close what @label names; the last entry takes its place. Errors: -ENOENT. */
int fd_table_drop(struct fd_table *table, const char *label);

/* fd_table_find() - borrowed; -1 for none. */
int fd_table_find(const struct fd_table *table, const char *label);

#endif
