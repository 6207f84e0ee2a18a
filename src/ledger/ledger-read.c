/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "ledger/ledger-internal.h"

int ledger_get_wall(struct ledger *ledger, struct wall *ret_wall, bool *ret_is_this_boot)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, GET_WALL, &statement);

        if (r < 0)
                return r;
        database_bind_text(statement, 1, ledger->boot_id);
        r = database_step(statement);
        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        *ret_wall = (struct wall){ database_get_integer(statement, 0),
                                   database_get_integer(statement, 1) };
        *ret_is_this_boot = database_get_integer(statement, 2);
        sqlite3_reset(statement);
        return 0;
}

int ledger_has_vgpu(struct ledger *ledger, uint64_t serial)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, HAS_VGPU, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, &serial, 1);
        r = database_step(statement);
        sqlite3_reset(statement);
        return r;
}

static void decode_process(struct ledger_process *process, sqlite3_stmt *row)
{
        *process = (struct ledger_process){
                .serial = database_get_integer(row, 0),
                .vgpu = database_get_integer(row, 1),
                .pid = (pid_t)sqlite3_column_int64(row, 2),
                .start_time = database_get_integer(row, 3),
                .started_ms = database_get_integer(row, 5),
                .ended_ms = database_get_integer(row, 6),
                .is_listed = database_get_integer(row, 7),
                .life_ns = database_get_integer(row, 8),
                .max_memory = database_get_integer(row, 9),
        };
        database_get_text(row, 4, process->name, sizeof(process->name));
        for (int i = 0; i < METER_ENGINES; i++) {
                process->busy_ns[i] = database_get_integer(row, 10 + i);
                process->seen_ns[i] = database_get_integer(row, 10 + METER_ENGINES + i);
        }
        process->joined_ms = database_get_integer(row, 10 + 2 * METER_ENGINES);
        database_get_text(row, 11 + 2 * METER_ENGINES, process->container,
                          sizeof(process->container));
        database_get_text(row, 12 + 2 * METER_ENGINES, process->container_name,
                          sizeof(process->container_name));
}

static int each_process(sqlite3_stmt *statement, ledger_process_fn each, void *userdata)
{
        struct ledger_process process;
        int r;

        while ((r = database_step(statement)) > 0) {
                decode_process(&process, statement);
                r = each(&process, userdata);
                if (r < 0) {
                        sqlite3_reset(statement);
                        return r;
                }
        }
        return r;
}

int ledger_each_ended(struct ledger *ledger, uint64_t vgpu, size_t max, ledger_process_fn each,
                      void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, LIST_ENDED, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, (const uint64_t[]){ vgpu, max }, 2);
        return each_process(statement, each, userdata);
}

int ledger_each_running(struct ledger *ledger, ledger_process_fn each, void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, LIST_RUNNING, &statement);

        return r < 0 ? r : each_process(statement, each, userdata);
}

/* False: the device is not in this machine any more. */
static bool find_index(const struct ledger *ledger, int64_t id, uint32_t *ret_index)
{
        for (uint32_t i = 0; i < ledger->n_devices; i++)
                if (ledger->device_ids[i] == id)
                        return *ret_index = i, true;
        return false;
}

static int each_part(struct ledger *ledger, sqlite3_stmt *statement, ledger_process_fn each,
                     void *userdata)
{
        uint32_t index;
        int r;

        while ((r = database_step(statement)) > 0) {
                struct ledger_process part = {
                        .serial = database_get_integer(statement, 0),
                        .max_memory = database_get_integer(statement, 2),
                };

                if (!find_index(ledger, sqlite3_column_int64(statement, 1), &index))
                        continue;
                part.of_device = index + 1;
                for (int i = 0; i < METER_ENGINES; i++) {
                        part.busy_ns[i] = database_get_integer(statement, 3 + i);
                        part.seen_ns[i] = database_get_integer(statement, 3 + METER_ENGINES + i);
                }
                r = each(&part, userdata);
                if (r < 0) {
                        sqlite3_reset(statement);
                        return r;
                }
        }
        return r;
}

int ledger_each_part(struct ledger *ledger, uint64_t serial, ledger_process_fn each, void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, LIST_PARTS, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, &serial, 1);
        return each_part(ledger, statement, each, userdata);
}

int ledger_each_running_part(struct ledger *ledger, ledger_process_fn each, void *userdata)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, LIST_RUNNING_PARTS, &statement);

        return r < 0 ? r : each_part(ledger, statement, each, userdata);
}

static void decode_vgpu(struct ledger_row *row, sqlite3_stmt *statement, int column)
{
        row->vgpu.owner = row->tenant;
        row->vgpu.serial = database_get_integer(statement, column);
        database_get_text(statement, column + 1, row->vgpu.uuid, sizeof(row->vgpu.uuid));
        database_get_text(statement, column + 2, row->vgpu.name, sizeof(row->vgpu.name));
}

static void decode_device(struct ledger_row *row, sqlite3_stmt *statement, int column)
{
        database_get_text(statement, column, row->device.uuid, sizeof(row->device.uuid));
        database_get_text(statement, column + 1, row->device.name, sizeof(row->device.name));
}

static void decode_row(struct ledger_row *row, sqlite3_stmt *statement, enum ledger_group group)
{
        int column = METER_ENGINES + 2;

        *row = (struct ledger_row){ 0 };
        for (int i = 0; i < METER_ENGINES; i++)
                row->amount.busy_ns[i] = database_get_integer(statement, i);
        row->amount.quota_mib_ms = database_get_integer(statement, METER_ENGINES);
        row->amount.used_mib_ms = database_get_integer(statement, METER_ENGINES + 1);
        row->tenant = (uid_t)database_get_integer(statement, column++);
        if (group == LEDGER_BY_VGPU || group == LEDGER_BY_PROCESS || group == LEDGER_BY_PART)
                decode_vgpu(row, statement, column);
        if (group == LEDGER_BY_PROCESS) {
                row->process = database_get_integer(statement, column + 3);
                row->pid = (pid_t)database_get_integer(statement, column + 4);
                database_get_text(statement, column + 5, row->process_name,
                                  sizeof(row->process_name));
                if (row->process == LEDGER_OTHERS)
                        snprintf(row->process_name, sizeof(row->process_name), LEDGER_OTHERS_NAME);
                row->started_ms = database_get_integer(statement, column + 6);
                row->ended_ms = database_get_integer(statement, column + 7);
        }
        if (group == LEDGER_BY_JOB) {
                database_get_text(statement, column, row->job, sizeof(row->job));
                row->memory_peak = database_get_integer(statement, column + 1);
        }
        if (group == LEDGER_BY_CONTAINER) {
                database_get_text(statement, column, row->container, sizeof(row->container));
                database_get_text(statement, column + 1, row->container_name,
                                  sizeof(row->container_name));
                row->memory_peak = database_get_integer(statement, column + 2);
        }
        if (group == LEDGER_BY_DEVICE)
                decode_device(row, statement, column);
        if (group == LEDGER_BY_PART)
                decode_device(row, statement, column + 3);
}

int ledger_sum(struct ledger *ledger, const struct ledger_query *query, ledger_row_fn each,
               void *userdata)
{
        enum statement which = (enum statement)(SUM + (int)query->group);
        sqlite3_stmt *statement;
        struct ledger_row row;
        int r = ledger_prepare(ledger, which, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1,
                               (const uint64_t[]){ query->since, query->until,
                                                   (uint64_t)query->tenant, (uint64_t)query->tenant,
                                                   query->limit, query->offset },
                               6);
        while ((r = database_step(statement)) > 0) {
                decode_row(&row, statement, query->group);
                r = each(&row, userdata);
                if (r < 0) {
                        sqlite3_reset(statement);
                        return r;
                }
        }
        return r;
}
