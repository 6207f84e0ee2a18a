/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"

#define CAPACITY_MIN 16

/* A prime; below it the label is a number of digits of 7 bytes, and its hash a polynomial of the key. */
#define MODULUS ((1ull << 61) - 1)

static uint64_t make_key(void)
{
        uint64_t key = 0;

        if (getrandom(&key, sizeof(key), GRND_NONBLOCK) < 0)
                key = 0; /* who knows the key can make the table slow, and no more */
        return key % (MODULUS - 1) + 1;
}

static uint32_t *get_chain(const struct fd_table *table, const char *label)
{
        size_t length = strlen(label);
        uint64_t value = 0;

        for (size_t i = 0; i < length; i += 7) {
                uint64_t digit = 0;

                memcpy(&digit, label + i, length - i < 7 ? length - i : 7);
                value = (uint64_t)((unsigned __int128)(value + digit) * table->key % MODULUS);
        }
        return &table->chains[value & (table->capacity - 1)];
}

/* Where the number of the entry is, or of the end of its chain. */
static uint32_t *find_link(const struct fd_table *table, const char *label)
{
        uint32_t *link = get_chain(table, label);

        while (*link && strcmp(table->entries[*link - 1].label, label) != 0)
                link = &table->entries[*link - 1].next;
        return link;
}

static struct fd_table_entry *find(const struct fd_table *table, const char *label)
{
        uint32_t number = table->n > 0 ? *find_link(table, label) : 0;

        return number ? &table->entries[number - 1] : NULL;
}

void fd_table_deinit(struct fd_table *table)
{
        for (size_t i = 0; i < table->n; i++)
                fd_close(table->entries[i].fd);
        free(table->entries);
        free(table->chains);
        *table = (struct fd_table){ 0 };
}

static void chain_all(struct fd_table *table)
{
        for (size_t i = 0; i < table->n; i++) {
                uint32_t *chain = get_chain(table, table->entries[i].label);

                table->entries[i].next = *chain;
                *chain = (uint32_t)i + 1;
        }
}

int fd_table_reserve(struct fd_table *table, size_t n)
{
        size_t capacity = table->capacity > 0 ? table->capacity : CAPACITY_MIN;
        struct fd_table_entry *entries;
        uint32_t *chains;

        if (n <= table->capacity - table->n)
                return 0;
        while (capacity < table->n + n)
                capacity *= 2;

        entries = reallocarray(table->entries, capacity, sizeof(*entries));
        if (!entries)
                return -ENOMEM;
        table->entries = entries;
        chains = calloc(capacity, sizeof(*chains));
        if (!chains)
                return -ENOMEM;

        if (table->capacity == 0)
                table->key = make_key();
        free(table->chains);
        table->chains = chains;
        table->capacity = capacity;
        chain_all(table);
        return 0;
}

int fd_table_put(struct fd_table *table, const char *label, int fd)
{
        struct fd_table_entry *entry = find(table, label);
        size_t length = strlen(label);
        uint32_t *chain;
        int r;

        if (length >= FD_TABLE_LABEL_MAX)
                return -ENAMETOOLONG;

        if (entry) {
                fd_close(entry->fd);
                entry->fd = fd;
                return 0;
        }

        r = fd_table_reserve(table, 1);
        if (r < 0)
                return r;

        entry = &table->entries[table->n++];
        memset(entry->label, 0, sizeof(entry->label)); /* it is sent as a whole */
        memcpy(entry->label, label, length);
        entry->fd = fd;
        chain = get_chain(table, label);
        entry->next = *chain;
        *chain = (uint32_t)table->n;
        return 0;
}

int fd_table_take(struct fd_table *table, const char *label, int *ret_fd)
{
        struct fd_table_entry *entry = find(table, label), *last;

        if (!entry)
                return -ENOENT;

        *find_link(table, label) = entry->next;
        *ret_fd = entry->fd;
        last = &table->entries[--table->n];
        if (entry != last) {
                *find_link(table, last->label) = (uint32_t)(entry - table->entries) + 1;
                *entry = *last;
        }
        return 0;
}

int fd_table_drop(struct fd_table *table, const char *label)
{
        int fd = -1, r = fd_table_take(table, label, &fd);

        fd_close(fd);
        return r;
}

int fd_table_find(const struct fd_table *table, const char *label)
{
        const struct fd_table_entry *entry = find(table, label);

        return entry ? entry->fd : -1;
}
