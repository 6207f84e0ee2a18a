/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write-ahead logging with synchronous=NORMAL, as in the store: what was committed survives a kill of
 * the manager at any point, and a crash of the machine costs the last seconds at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/paths.h"
#include "database/schema.h"
#include "ledger/ledger-internal.h"

#define LEDGER_APPLICATION_ID 0x56475542 /* "VGUB", in the header of the file */

static const char first[] =
        "CREATE TABLE device (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE,"
        "  name TEXT NOT NULL);"
        "CREATE TABLE vgpu (serial INTEGER PRIMARY KEY, uuid TEXT NOT NULL, name TEXT NOT NULL,"
        "  owner INTEGER NOT NULL);"
        "CREATE TABLE process (serial INTEGER PRIMARY KEY, vgpu INTEGER NOT NULL,"
        "  pid INTEGER NOT NULL, start_time INTEGER NOT NULL, name TEXT NOT NULL,"
        "  started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, listed INTEGER NOT NULL,"
        "  life_ns INTEGER NOT NULL, max_memory INTEGER NOT NULL, sm_ns INTEGER NOT NULL,"
        "  memory_ns INTEGER NOT NULL, encoder_ns INTEGER NOT NULL, decoder_ns INTEGER NOT NULL,"
        "  jpeg_ns INTEGER NOT NULL, ofa_ns INTEGER NOT NULL, seen_sm_ns INTEGER NOT NULL,"
        "  seen_memory_ns INTEGER NOT NULL, seen_encoder_ns INTEGER NOT NULL,"
        "  seen_decoder_ns INTEGER NOT NULL, seen_jpeg_ns INTEGER NOT NULL,"
        "  seen_ofa_ns INTEGER NOT NULL);"
        "CREATE INDEX process_of ON process (vgpu, ended_ms);"
        "CREATE TABLE usage (minute INTEGER NOT NULL, vgpu INTEGER NOT NULL,"
        "  process INTEGER NOT NULL, device INTEGER NOT NULL, sm_ns INTEGER NOT NULL,"
        "  memory_ns INTEGER NOT NULL, encoder_ns INTEGER NOT NULL, decoder_ns INTEGER NOT NULL,"
        "  jpeg_ns INTEGER NOT NULL, ofa_ns INTEGER NOT NULL, quota_mib_ms INTEGER NOT NULL,"
        "  used_mib_ms INTEGER NOT NULL, PRIMARY KEY (minute, vgpu, process, device))"
        "  WITHOUT ROWID;"
        "CREATE TABLE wall (id INTEGER PRIMARY KEY, boot TEXT NOT NULL,"
        "  steady_ms INTEGER NOT NULL, wall_ms INTEGER NOT NULL);";

static const char *const changes[] = {
        /* In version 1 a process' life was what had been written of it last. */
        "ALTER TABLE process ADD COLUMN joined_ms INTEGER NOT NULL DEFAULT 0;"
        "CREATE INDEX process_running ON process (serial) WHERE ended_ms = 0;",
        "ALTER TABLE process ADD COLUMN container TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE process ADD COLUMN container_name TEXT NOT NULL DEFAULT '';",
        /* Of processes that have several devices. */
        "CREATE TABLE process_device (process INTEGER NOT NULL, device INTEGER NOT NULL,"
        "  max_memory INTEGER NOT NULL, sm_ns INTEGER NOT NULL, memory_ns INTEGER NOT NULL,"
        "  encoder_ns INTEGER NOT NULL, decoder_ns INTEGER NOT NULL, jpeg_ns INTEGER NOT NULL,"
        "  ofa_ns INTEGER NOT NULL, seen_sm_ns INTEGER NOT NULL, seen_memory_ns INTEGER NOT NULL,"
        "  seen_encoder_ns INTEGER NOT NULL, seen_decoder_ns INTEGER NOT NULL,"
        "  seen_jpeg_ns INTEGER NOT NULL, seen_ofa_ns INTEGER NOT NULL,"
        "  PRIMARY KEY (process, device)) WITHOUT ROWID;"
        "CREATE TRIGGER process_dropped AFTER DELETE ON process BEGIN"
        "  DELETE FROM process_device WHERE process = OLD.serial; END;",
};

static const struct database_schema schema = {
        .application_id = LEDGER_APPLICATION_ID,
        .first = first,
        .changes = changes,
        .n_changes = sizeof(changes) / sizeof(changes[0]),
};

/* Opening. */

static int put_device(struct ledger *ledger, size_t index)
{
        const struct ledger_device *device = &ledger->devices[index];
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, PUT_DEVICE, &statement);

        if (r < 0)
                return r;
        database_bind_text(statement, 1, device->uuid);
        database_bind_text(statement, 2, device->name);
        r = database_step(statement);
        if (r == 0)
                r = ledger_prepare(ledger, GET_DEVICE, &statement);
        if (r < 0)
                return r;
        database_bind_text(statement, 1, device->uuid);
        r = database_step(statement);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        ledger->device_ids[index] = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        return 0;
}

static int set_up(struct ledger *ledger)
{
        int r = database_log_ahead(&ledger->database, false);

        if (r == 0)
                r = schema_apply(&ledger->database, &schema);
        for (size_t i = 0; r == 0 && i < ledger->n_devices; i++)
                r = put_device(ledger, i);
        return r;
}

int ledger_open(struct ledger **ret_ledger, const char *path, const char *boot_id,
                const struct ledger_device *devices, size_t n_devices)
{
        CLEANUP(ledger_closep) struct ledger *ledger = calloc(1, sizeof(*ledger));
        int r;

        if (!ledger)
                return -ENOMEM;
        snprintf(ledger->boot_id, sizeof(ledger->boot_id), "%s", boot_id);
        ledger->devices = devices;
        ledger->n_devices = n_devices < STATE_DEVICES_MAX ? n_devices : STATE_DEVICES_MAX;
        r = database_open(&ledger->database, path, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE);
        if (r == 0)
                r = set_up(ledger);
        if (r < 0)
                return r;
        *ret_ledger = TAKE(ledger);
        return 0;
}

struct ledger *ledger_close(struct ledger *ledger)
{
        if (ledger)
                database_close(&ledger->database);
        free(ledger);
        return NULL;
}

const char *ledger_get_error(const struct ledger *ledger)
{
        return database_get_error(&ledger->database);
}

/* With its log: together they are what can be repaired. */
int ledger_set_aside(const char *path, uint64_t now_ms, char *ret_path)
{
        char from[PATHS_MAX], to[PATHS_MAX];

        if (snprintf(ret_path, PATHS_MAX, "%s.damaged-%" PRIu64, path, now_ms) >= PATHS_MAX - 8)
                return -ENAMETOOLONG;
        snprintf(from, sizeof(from), "%s-wal", path);
        snprintf(to, sizeof(to), "%.*s-wal", PATHS_MAX - 8, ret_path);
        (void)rename(from, to);
        snprintf(from, sizeof(from), "%s-shm", path);
        (void)unlink(from);
        return rename(path, ret_path) < 0 ? -errno : 0;
}

/* Writing. */

static int put_vgpu(struct ledger *ledger, const struct ledger_vgpu *vgpu)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, PUT_VGPU, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, &vgpu->serial, 1);
        database_bind_text(statement, 2, vgpu->uuid);
        database_bind_text(statement, 3, vgpu->name);
        sqlite3_bind_int64(statement, 4, vgpu->owner);
        return database_step(statement);
}

static int put_process(struct ledger *ledger, const struct ledger_process *process)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, PUT_PROCESS, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1,
                               (const uint64_t[]){ process->serial, process->vgpu,
                                                   (uint64_t)process->pid, process->start_time },
                               4);
        database_bind_text(statement, 5, process->name);
        database_bind_integers(statement, 6,
                               (const uint64_t[]){ process->started_ms, process->ended_ms,
                                                   process->is_listed, process->life_ns,
                                                   process->max_memory },
                               5);
        database_bind_integers(statement, 11, process->busy_ns, METER_ENGINES);
        database_bind_integers(statement, 11 + METER_ENGINES, process->seen_ns, METER_ENGINES);
        database_bind_integers(statement, 11 + 2 * METER_ENGINES, &process->joined_ms, 1);
        database_bind_text(statement, 12 + 2 * METER_ENGINES, process->container);
        database_bind_text(statement, 13 + 2 * METER_ENGINES, process->container_name);
        return database_step(statement);
}

static int put_part(struct ledger *ledger, const struct ledger_process *part)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, PUT_PART, &statement);

        if (r < 0)
                return r;
        database_bind_integers(
                statement, 1,
                (const uint64_t[]){ part->serial,
                                    (uint64_t)ledger->device_ids[ledger_process_get_device(part)],
                                    part->max_memory },
                3);
        database_bind_integers(statement, 4, part->busy_ns, METER_ENGINES);
        database_bind_integers(statement, 4 + METER_ENGINES, part->seen_ns, METER_ENGINES);
        return database_step(statement);
}

static int add_usage(struct ledger *ledger, const struct minutes_row *row)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, ADD_USAGE, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1,
                               (const uint64_t[]){ row->minute, row->key.vgpu, row->key.process,
                                                   (uint64_t)ledger->device_ids[row->key.device] },
                               4);
        database_bind_integers(statement, 5, row->amount.busy_ns, METER_ENGINES);
        database_bind_integers(
                statement, 5 + METER_ENGINES,
                (const uint64_t[]){ row->amount.quota_mib_ms, row->amount.used_mib_ms }, 2);
        return database_step(statement);
}

static int run_with(struct ledger *ledger, enum statement which, const uint64_t *values, int n)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, which, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, values, n);
        return database_step(statement);
}

/* Moves what was used from @start_ms to @end_ms, by who @values[2] and the following say, to @values[0]. */
static int fold_usage(struct ledger *ledger, enum statement fold, enum statement drop,
                      uint64_t *values, int n, uint64_t start_ms, uint64_t end_ms)
{
        uint64_t last = end_ms / MS_PER_MINUTE + 1;
        int r = 0;

        for (uint64_t minute = start_ms / MS_PER_MINUTE; r == 0 && minute <= last; minute++) {
                values[1] = minute;
                r = run_with(ledger, fold, values, n);
                if (r == 0 && sqlite3_changes(ledger->database.handle) > 0)
                        r = run_with(ledger, drop, values + 1, n - 1);
        }
        return r;
}

/* The row of all that were folded like this one. Those of one container of a vGPU have one. */
static int put_others(struct ledger *ledger, const struct ledger_process *process,
                      uint64_t *ret_serial)
{
        struct ledger_process others = { .vgpu = process->vgpu,
                                         .started_ms = process->started_ms,
                                         .ended_ms = process->ended_ms,
                                         .name = LEDGER_OTHERS_NAME };

        *ret_serial = LEDGER_OTHERS;
        if (!process->container[0])
                return 0;
        others.serial =
                (strtoull(process->container, NULL, 16) ^ process->vgpu) % LEDGER_OTHERS_IN |
                LEDGER_OTHERS_IN;
        *ret_serial = others.serial;
        memcpy(others.container, process->container, sizeof(others.container));
        memcpy(others.container_name, process->container_name, sizeof(others.container_name));
        return put_process(ledger, &others);
}

/* What was entered in other minutes, for the clock was set meanwhile, stays where it is. */
static int fold(struct ledger *ledger, const struct ledger_process *process)
{
        uint64_t values[] = { LEDGER_OTHERS, 0, process->vgpu, process->serial };
        int r = put_others(ledger, process, &values[0]);

        if (r == 0)
                r = run_with(ledger, DROP_PROCESS, &process->serial, 1);

        return r < 0 ? r
                     : fold_usage(ledger, FOLD_USAGE, DROP_USAGE, values, 4, process->started_ms,
                                  process->ended_ms);
}

/* Its clock was not set meanwhile, but for the seconds that no meter can tell. */
static int fold_vgpu(struct ledger *ledger, const struct ledger_vgpu *vgpu)
{
        const struct ledger_vgpu others = { .serial = LEDGER_OTHERS_OF(vgpu->owner),
                                            .name = LEDGER_OTHERS_NAME,
                                            .owner = vgpu->owner };
        uint64_t values[] = { others.serial, 0, vgpu->serial };
        int r = put_vgpu(ledger, &others);

        if (r == 0)
                r = run_with(ledger, DROP_VGPU_PROCESSES, &vgpu->serial, 1);
        if (r == 0)
                r = fold_usage(ledger, FOLD_VGPU_USAGE, DROP_VGPU_USAGE, values, 3,
                               vgpu->serial / NS_PER_MS - MS_PER_MINUTE, vgpu->gone_ms);
        return r < 0 ? r : run_with(ledger, DROP_VGPU, &vgpu->serial, 1);
}

static int clear_list(struct ledger *ledger, const struct ledger_clearing *clearing)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, CLEAR_LIST, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, (const uint64_t[]){ clearing->vgpu, clearing->at_ms },
                               2);
        return database_step(statement);
}

static int put_wall(struct ledger *ledger, const struct wall *wall)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, PUT_WALL, &statement);

        if (r < 0)
                return r;
        database_bind_text(statement, 1, ledger->boot_id);
        database_bind_integers(statement, 2, (const uint64_t[]){ wall->steady_ms, wall->wall_ms },
                               2);
        return database_step(statement);
}

static int write_all(struct ledger *ledger, const struct ledger_batch *batch)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < batch->n_vgpus; i++)
                r = put_vgpu(ledger, &batch->vgpus[i]);
        for (size_t i = 0; r == 0 && i < batch->n_processes; i++)
                if (!batch->processes[i].is_folded)
                        r = batch->processes[i].of_device
                                    ? put_part(ledger, &batch->processes[i])
                                    : put_process(ledger, &batch->processes[i]);
        for (size_t i = 0; r == 0 && i < batch->n_clearings; i++)
                r = clear_list(ledger, &batch->clearings[i]);
        for (size_t i = 0; r == 0 && i < batch->minutes.n; i++)
                r = add_usage(ledger, &batch->minutes.rows[i]);
        for (size_t i = 0; r == 0 && i < batch->n_processes; i++)
                if (batch->processes[i].is_folded && !batch->processes[i].of_device)
                        r = fold(ledger, &batch->processes[i]);
        for (size_t i = 0; r == 0 && i < batch->n_vgpus; i++)
                if (batch->vgpus[i].is_folded)
                        r = fold_vgpu(ledger, &batch->vgpus[i]);
        if (r == 0)
                r = put_wall(ledger, &batch->wall);
        if (r == 0 && fault_point("ledger.written"))
                r = -EIO;
        return r;
}

/* @r: what has come of it so far. */
static int end_transaction(struct ledger *ledger, int r)
{
        if (r == 0)
                r = ledger_run(ledger, COMMIT);
        if (r < 0 &&
            !sqlite3_get_autocommit(ledger->database.handle)) /* some errors have done it */
                (void)database_execute(&ledger->database, "ROLLBACK");
        return r;
}

int ledger_write(struct ledger *ledger, const struct ledger_batch *batch)
{
        int r = ledger_run(ledger, BEGIN);

        if (r < 0)
                return r;
        r = end_transaction(ledger, write_all(ledger, batch));
        if (r == 0)
                (void)fault_point("ledger.committed");
        return r;
}

static int prune(struct ledger *ledger, enum statement which, uint64_t before)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, which, &statement);

        if (r < 0)
                return r;
        database_bind_integers(statement, 1, &before, 1);
        return database_step(statement);
}

static int keep_vgpus(struct ledger *ledger, const struct ledger_vgpu *vgpus, size_t n)
{
        int r = ledger_run(ledger, PRUNE_VGPUS);

        for (size_t i = 0; r == 0 && i < n; i++)
                r = put_vgpu(ledger, &vgpus[i]);
        return r;
}

int ledger_prune_vgpus(struct ledger *ledger, const struct ledger_vgpu *vgpus, size_t n)
{
        int r = ledger_run(ledger, BEGIN);

        return r < 0 ? r : end_transaction(ledger, keep_vgpus(ledger, vgpus, n));
}

int ledger_prune(struct ledger *ledger, uint64_t minute)
{
        int r = prune(ledger, PRUNE_USAGE, minute);

        if (r < 0)
                return r;
        if (sqlite3_changes(ledger->database.handle) > 0)
                return 1;
        return prune(ledger, PRUNE_PROCESSES, minute * MS_PER_MINUTE);
}
