/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of guests, where their memory is, and movers. */
#include <errno.h>
#include <stdlib.h>

#include "base/fault.h"
#include "daemon/process.h"
#include "store/store-internal.h"

/* Processes and their memory. */

int store_put_process(struct store *store, const struct store_process *process)
{
        return STORE_RUN(
                store,
                "INSERT INTO process VALUES (?,?,?,?,?,?,?) ON CONFLICT (instance, pid) DO UPDATE"
                " SET start_time = excluded.start_time, slot = excluded.slot,"
                " context = excluded.context, context_device = excluded.context_device,"
                " context_target = excluded.context_target",
                "iiiiiss", (int64_t)process->instance, (int64_t)process->pid,
                (int64_t)process->start_time, (int64_t)process->slot, (int64_t)process->context,
                process->context_device, process->context_target);
}

int store_remove_process(struct store *store, uint32_t instance, pid_t pid)
{
        return STORE_RUN(store, "DELETE FROM process WHERE instance = ? AND pid = ?", "ii",
                         (int64_t)instance, (int64_t)pid);
}

int store_each_process(struct store *store, uint32_t instance, store_process_fn each,
                       void *userdata)
{
        sqlite3_stmt *row;
        int r = STORE_START(
                store, &row,
                "SELECT pid, start_time, slot, context, context_device, context_target FROM process"
                " WHERE instance = ?",
                "i", (int64_t)instance);

        if (r < 0)
                return r;
        while ((r = store_next_row(store, row)) > 0) {
                struct store_process process = {
                        .instance = instance,
                        .pid = (pid_t)sqlite3_column_int64(row, 0),
                        .start_time = (uint64_t)sqlite3_column_int64(row, 1),
                        .slot = (uint32_t)sqlite3_column_int64(row, 2),
                        .context = (uint32_t)sqlite3_column_int64(row, 3),
                };

                database_get_text(row, 4, process.context_device, sizeof(process.context_device));
                database_get_text(row, 5, process.context_target, sizeof(process.context_target));
                r = each(&process, userdata);
                if (r < 0) {
                        sqlite3_reset(row);
                        return r;
                }
        }
        return r;
}

/* One number of a process, under the name that its table and its column have. */
#define PROCESS_NUMBER(noun, table, column)                                                       \
        int store_put_##noun(struct store *store, uint32_t instance, pid_t pid, uint64_t value)   \
        {                                                                                         \
                return STORE_RUN(store, "INSERT OR REPLACE INTO " table " VALUES (?,?,?)", "iii", \
                                 (int64_t)instance, (int64_t)pid, (int64_t)value);                \
        }                                                                                         \
        int store_get_##noun(struct store *store, uint32_t instance, pid_t pid,                   \
                             uint64_t *ret_value)                                                 \
        {                                                                                         \
                sqlite3_stmt *row;                                                                \
                int r = STORE_START(store, &row,                                                  \
                                    "SELECT " column " FROM " table                               \
                                    " WHERE instance = ? AND pid = ?",                            \
                                    "ii", (int64_t)instance, (int64_t)pid);                       \
                                                                                                  \
                return r < 0 ? r : read_number(store, row, ret_value);                            \
        }

static int read_number(struct store *store, sqlite3_stmt *row, uint64_t *ret_value)
{
        int r = store_next_row(store, row);

        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        *ret_value = (uint64_t)sqlite3_column_int64(row, 0);
        sqlite3_reset(row);
        return 0;
}

PROCESS_NUMBER(footprint, "footprint", "context_bytes")
PROCESS_NUMBER(program, "program", "mark")

static int put_memory(struct store *store, uint32_t instance, pid_t pid,
                      const struct store_memory *memory)
{
        int r = STORE_RUN(store, "DELETE FROM memory WHERE instance = ? AND pid = ?", "ii",
                          (int64_t)instance, (int64_t)pid);

        if (r == 0)
                r = STORE_RUN(store, "DELETE FROM extent WHERE instance = ? AND pid = ?", "ii",
                              (int64_t)instance, (int64_t)pid);
        for (size_t i = 0; r == 0 && i < memory->n_allocations; i++)
                r = STORE_RUN(
                        store, "INSERT INTO memory VALUES (?,?,?,?,?)", "iiiii", (int64_t)instance,
                        (int64_t)pid, (int64_t)memory->allocations[i].address,
                        (int64_t)memory->allocations[i].size, (int64_t)memory->allocations[i].part);
        for (size_t i = 0; r == 0 && i < memory->n_extents; i++)
                r = STORE_RUN(store, "INSERT INTO extent VALUES (?,?,?,?,?,?)", "iiiiii",
                              (int64_t)instance, (int64_t)pid, (int64_t)memory->extents[i].slab,
                              (int64_t)memory->extents[i].offset,
                              (int64_t)memory->extents[i].length,
                              (int64_t)memory->extents[i].generation);
        return r;
}

int store_put_memory(struct store *store, uint32_t instance, pid_t pid,
                     const struct store_memory *memory)
{
        int r;

        if (!sqlite3_get_autocommit(store->database.handle)) /* whoever began will end it */
                return put_memory(store, instance, pid, memory);
        r = store_begin(store);
        if (r == 0)
                r = put_memory(store, instance, pid, memory);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

static int count_of(struct store *store, const char *text, uint32_t instance, pid_t pid, size_t *n)
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row, text, "ii", (int64_t)instance, (int64_t)pid);

        if (r < 0)
                return r;
        r = store_next_row(store, row);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        *n = (size_t)sqlite3_column_int64(row, 0);
        sqlite3_reset(row);
        return 0;
}

static int get_allocations(struct store *store, uint32_t instance, pid_t pid,
                           struct store_allocation *allocations, size_t n)
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row,
                            "SELECT address, size, part FROM memory WHERE instance = ? AND pid = ?"
                            " ORDER BY rowid",
                            "ii", (int64_t)instance, (int64_t)pid);

        for (size_t i = 0; r == 0 && (r = store_next_row(store, row)) > 0; i++, r = 0)
                if (i < n)
                        allocations[i] = (struct store_allocation){
                                (uint64_t)sqlite3_column_int64(row, 0),
                                (uint64_t)sqlite3_column_int64(row, 1),
                                (uint32_t)sqlite3_column_int64(row, 2),
                        };
        return r;
}

static int get_extents(struct store *store, uint32_t instance, pid_t pid,
                       struct store_extent *extents, size_t n)
{
        sqlite3_stmt *row;
        int r = STORE_START(
                store, &row,
                "SELECT slab, offset, length, generation FROM extent WHERE instance = ? AND pid = ?"
                " ORDER BY rowid",
                "ii", (int64_t)instance, (int64_t)pid);

        for (size_t i = 0; r == 0 && (r = store_next_row(store, row)) > 0; i++, r = 0)
                if (i < n)
                        extents[i] = (struct store_extent){
                                (uint32_t)sqlite3_column_int64(row, 0),
                                (uint64_t)sqlite3_column_int64(row, 1),
                                (uint64_t)sqlite3_column_int64(row, 2),
                                (uint64_t)sqlite3_column_int64(row, 3),
                        };
        return r;
}

int store_get_memory(struct store *store, uint32_t instance, pid_t pid,
                     struct store_allocation **ret_allocations, size_t *ret_n_allocations,
                     struct store_extent **ret_extents, size_t *ret_n_extents)
{
        CLEANUP(freep) struct store_allocation *allocations = NULL;
        CLEANUP(freep) struct store_extent *extents = NULL;
        size_t n_allocations, n_extents;
        int r;

        r = count_of(store, "SELECT count(*) FROM memory WHERE instance = ? AND pid = ?", instance,
                     pid, &n_allocations);
        if (r == 0)
                r = count_of(store, "SELECT count(*) FROM extent WHERE instance = ? AND pid = ?",
                             instance, pid, &n_extents);
        if (r < 0)
                return r;

        allocations = calloc(n_allocations + 1, sizeof(*allocations));
        extents = calloc(n_extents + 1, sizeof(*extents));
        if (!allocations || !extents)
                return -ENOMEM;

        r = get_allocations(store, instance, pid, allocations, n_allocations);
        if (r == 0)
                r = get_extents(store, instance, pid, extents, n_extents);
        if (r < 0)
                return r;
        *ret_allocations = TAKE(allocations);
        *ret_n_allocations = n_allocations;
        *ret_extents = TAKE(extents);
        *ret_n_extents = n_extents;
        return 0;
}

/* Movers. */

int store_put_mover(struct store *store, pid_t pid)
{
        uint64_t start_time;

        if (process_get_start_time(pid, &start_time) < 0)
                return 0; /* dead already */
        if (fault_point("store.mover"))
                return -ENOSPC;
        return STORE_RUN(store, "INSERT OR REPLACE INTO mover VALUES (?,?)", "ii", (int64_t)pid,
                         (int64_t)start_time);
}

int store_remove_mover(struct store *store, pid_t pid)
{
        return STORE_RUN(store, "DELETE FROM mover WHERE pid = ?", "i", (int64_t)pid);
}

int store_take_movers(struct store *store, store_mover_fn each, void *userdata)
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row, "SELECT pid, start_time FROM mover", "");

        if (r < 0)
                return r;
        while ((r = store_next_row(store, row)) > 0)
                (void)each((pid_t)sqlite3_column_int64(row, 0),
                           (uint64_t)sqlite3_column_int64(row, 1), userdata);
        return r < 0 ? r : STORE_RUN(store, "DELETE FROM mover", "");
}
