/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static struct fd_table_entry *find(const struct fd_table *table, const char *label)
{
        for (size_t i = 0; i < table->n; i++)
                if (strcmp(table->entries[i].label, label) == 0)
                        return &table->entries[i];
        return NULL;
}

void fd_table_deinit(struct fd_table *table)
{
        for (size_t i = 0; i < table->n; i++)
                fd_close(table->entries[i].fd);
        free(table->entries);
        *table = (struct fd_table){ 0 };
}

int fd_table_reserve(struct fd_table *table)
{
        size_t capacity = table->capacity > 0 ? 2 * table->capacity : 16;
        struct fd_table_entry *entries;

        if (table->n < table->capacity)
                return 0;

        entries = reallocarray(table->entries, capacity, sizeof(*entries));
        if (!entries)
                return -ENOMEM;

        table->entries = entries;
        table->capacity = capacity;
        return 0;
}

int fd_table_put(struct fd_table *table, const char *label, int fd)
{
        struct fd_table_entry *entry = find(table, label);
        size_t length = strlen(label);
        int r;

        if (length >= FD_TABLE_LABEL_MAX)
                return -ENAMETOOLONG;

        if (entry) {
                fd_close(entry->fd);
                entry->fd = fd;
                return 0;
        }

        r = fd_table_reserve(table);
        if (r < 0)
                return r;

        entry = &table->entries[table->n++];
        memset(entry->label, 0, sizeof(entry->label)); /* it is sent as a whole */
        memcpy(entry->label, label, length);
        entry->fd = fd;
        return 0;
}

int fd_table_drop(struct fd_table *table, const char *label)
{
        struct fd_table_entry *entry = find(table, label);

        if (!entry)
                return -ENOENT;

        fd_close(entry->fd);
        *entry = table->entries[--table->n];
        return 0;
}

int fd_table_find(const struct fd_table *table, const char *label)
{
        const struct fd_table_entry *entry = find(table, label);

        return entry ? entry->fd : -1;
}
