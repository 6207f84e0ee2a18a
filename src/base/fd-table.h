/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FD_TABLE_H
#define BASE_FD_TABLE_H

/*
 * File descriptors under labels, owned by the table.
 *
 * The table is an array, which can be walked, with a hash over it: a guest may have tens of
 * thousands of pieces of memory, each with a label. The hash has a random key, because guests
 * influence the labels. The table does not keep the order.
 */

#include <stddef.h>
#include <stdint.h>

/* With its NUL. */
#define FD_TABLE_LABEL_MAX 120

struct fd_table_entry {
        char label[FD_TABLE_LABEL_MAX];
        int fd;
        uint32_t next; /* of its chain: an index + 1 */
};

struct fd_table {
        struct fd_table_entry *entries;
        size_t n;
        size_t capacity;  /* a power of two, or 0 */
        uint32_t *chains; /* as many; each the index + 1 of its first entry */
        uint64_t key;
};

/* fd_table_deinit() - close everything; the table is then empty and may be used again. */
void fd_table_deinit(struct fd_table *table);

/*
 * fd_table_reserve() - make room, so that the next @n fd_table_put() do not lack memory
 * Errors: -ENOMEM.
 */
int fd_table_reserve(struct fd_table *table, size_t n);

/*
 * fd_table_put() - @fd, which is taken, as @label; what had the label is closed
 * Errors: -ENAMETOOLONG, -ENOMEM; @fd is then the caller's still.
 */
int fd_table_put(struct fd_table *table, const char *label, int fd);

/* fd_table_drop() - close what @label names; the last entry takes its place. Errors: -ENOENT. */
int fd_table_drop(struct fd_table *table, const char *label);

/* fd_table_take() - as fd_table_drop(), but @ret_fd, which is not closed, is the caller's. */
int fd_table_take(struct fd_table *table, const char *label, int *ret_fd);

/* fd_table_find() - borrowed; -1 for none. */
int fd_table_find(const struct fd_table *table, const char *label);

#endif
