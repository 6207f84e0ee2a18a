/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write-ahead logging with synchronous=NORMAL: a commit is a write() without
 * waiting for the disk, some tens of microseconds, so it may happen in the middle
 * of a suspend. What a user made or removed, and was told so, is waited for: it is
 * all that a machine without power keeps.
 */

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "database/schema.h"
#include "store/store-internal.h"

/* Less is no room for a page of the database, one of its log and the index of that. */
#define ROOM_MIN 65536

#define STORE_APPLICATION_ID 0x56475055 /* "VGPU", in the header of the file */

static const char first[] =
        "CREATE TABLE boot (id TEXT NOT NULL);"
        "INSERT INTO boot VALUES ('');"
        "CREATE TABLE instance (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
        "  uuid TEXT NOT NULL UNIQUE, device TEXT NOT NULL, frame_buffer INTEGER NOT NULL,"
        "  created_ns INTEGER NOT NULL, state INTEGER NOT NULL, owner INTEGER NOT NULL,"
        "  transient INTEGER NOT NULL, creator INTEGER NOT NULL, creator_start INTEGER NOT NULL);"
        "CREATE TABLE process (instance INTEGER NOT NULL REFERENCES instance ON DELETE CASCADE,"
        "  pid INTEGER NOT NULL, start_time INTEGER NOT NULL, slot INTEGER NOT NULL,"
        "  context INTEGER NOT NULL, context_device TEXT NOT NULL, context_target TEXT NOT NULL,"
        "  PRIMARY KEY (instance, pid));"
        "CREATE TABLE memory (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  address INTEGER NOT NULL, size INTEGER NOT NULL,"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);"
        "CREATE INDEX memory_of ON memory (instance, pid);"
        "CREATE TABLE extent (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  slab INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);"
        "CREATE INDEX extent_of ON extent (instance, pid);"
        "CREATE TABLE operation (instance INTEGER PRIMARY KEY REFERENCES instance ON DELETE CASCADE,"
        "  kind TEXT NOT NULL, step TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,"
        "  keep_context INTEGER NOT NULL);"
        "CREATE TABLE mover (pid INTEGER PRIMARY KEY, start_time INTEGER NOT NULL);";

static const char *const changes[] = {
        "ALTER TABLE extent ADD COLUMN generation INTEGER NOT NULL DEFAULT 0",
        /* An older vgpud would take a vGPU of several devices to be of its first one alone. */
        "CREATE TABLE part (id INTEGER PRIMARY KEY,"
        "  instance INTEGER NOT NULL REFERENCES instance ON DELETE CASCADE,"
        "  position INTEGER NOT NULL, device TEXT NOT NULL, UNIQUE (instance, position));",
        "ALTER TABLE memory ADD COLUMN part INTEGER NOT NULL DEFAULT 0",
};

static const struct database_schema schema = {
        .application_id = STORE_APPLICATION_ID,
        .first = first,
        .changes = changes,
        .n_changes = sizeof(changes) / sizeof(changes[0]),
};

/* An older vgpud reads a database with these as well: they need no new version. */
static const char later_tables[] =
        "CREATE TABLE IF NOT EXISTS setting (name TEXT NOT NULL,"
        "  instance INTEGER REFERENCES instance ON DELETE CASCADE, value TEXT NOT NULL);"
        "CREATE INDEX IF NOT EXISTS setting_of ON setting (instance, name);"
        "CREATE TABLE IF NOT EXISTS footprint (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  context_bytes INTEGER NOT NULL, PRIMARY KEY (instance, pid),"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);"
        "CREATE TABLE IF NOT EXISTS program (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  mark INTEGER NOT NULL, PRIMARY KEY (instance, pid),"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);"
        "CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  time_ms INTEGER NOT NULL, owner INTEGER NOT NULL, uuid TEXT NOT NULL,"
        "  name TEXT NOT NULL, word TEXT NOT NULL, device INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  bytes INTEGER NOT NULL, duration_ms INTEGER NOT NULL, text TEXT NOT NULL);"
        "CREATE TABLE IF NOT EXISTS event_part (event INTEGER PRIMARY KEY REFERENCES event"
        "  ON DELETE CASCADE, drain_ms INTEGER NOT NULL, copy_ms INTEGER NOT NULL,"
        "  context_ms INTEGER NOT NULL);"
        "CREATE TABLE IF NOT EXISTS event_place (event INTEGER PRIMARY KEY REFERENCES event"
        "  ON DELETE CASCADE, devices TEXT NOT NULL);"
        "CREATE INDEX IF NOT EXISTS event_by_owner ON event (owner);"
        "CREATE INDEX IF NOT EXISTS event_by_uuid ON event (uuid);"
        "CREATE INDEX IF NOT EXISTS event_by_name ON event (name);"
        "CREATE TABLE IF NOT EXISTS event_owner (owner INTEGER PRIMARY KEY, n INTEGER NOT NULL,"
        "  last INTEGER NOT NULL);";

/* Opening. */

/* SQLite has many errors for a disk without room: it tells what it was doing, not why it could not. */
static bool is_full(const char *path)
{
        CLEANUP(freep) char *copy = strdup(path);
        struct statvfs disk;

        return copy && statvfs(dirname(copy), &disk) == 0 &&
               ((uint64_t)disk.f_bavail * disk.f_frsize < ROOM_MIN ||
                (disk.f_files > 0 && disk.f_favail == 0));
}

static int refuse(struct store *store, const char *path, int error, struct failure *failure)
{
        const char *words = database_get_error(&store->database);

        if (error == -EPROTO)
                return failure_set(failure, error, "Failed",
                                   "move the file away or choose another --state-dir",
                                   "%s is the database of another program", path);
        if (error == -EPROTONOSUPPORT)
                return failure_set(failure, error, "Failed",
                                   "install that version again, or a newer one",
                                   "the state database %s was written by a newer vgpud", path);
        if (error == -EBUSY)
                return failure_set(failure, error, "Failed",
                                   "find out who has it open (fuser) and end that process",
                                   "the state database %s is locked by another process", path);
        if (error == -ENOSPC || (error != -EUCLEAN && is_full(path)))
                return failure_set(failure, -ENOSPC, "Failed",
                                   "free some room there, and start again",
                                   "the disk of the state database %s is full", path);
        if (error == -EACCES)
                return failure_set(failure, error, "Failed",
                                   "make the state directory writable for the user of vgpud",
                                   "the state database %s cannot be opened for writing", path);
        if (error == -EUCLEAN)
                return failure_set(
                        failure, -EIO, "Failed",
                        "restore it from a backup; or move it away, and create the vGPUs anew",
                        "the state database %s is damaged (%s)", path, words);
        return failure_set(failure, -EIO, "Failed",
                           "leave it where it is, and see what is wrong with that disk (dmesg)",
                           "the state database %s cannot be read or written (%s)", path, words);
}

/* Errors: -EUCLEAN, the check itself says so, and those of the database. */
static int check(struct store *store)
{
        sqlite3_stmt *statement;
        bool is_sound;
        int r = database_start(&store->database, &statement, "PRAGMA quick_check(1)", "");

        if (r < 0)
                return r;
        r = database_step(statement);
        if (r <= 0)
                return r < 0 ? r : -EUCLEAN;
        is_sound = strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
        sqlite3_reset(statement);
        return is_sound ? 0 : -EUCLEAN;
}

static const char former_boot[] = "DELETE FROM process; DELETE FROM operation; DELETE FROM mover;"
                                  "DELETE FROM instance WHERE transient;"
                                  "DELETE FROM setting WHERE instance IS NULL;"
                                  "UPDATE instance SET state = 0";

static int forget_former_boot(struct store *store, const char *boot_id)
{
        sqlite3_stmt *statement;
        bool is_same;
        int r = STORE_START(store, &statement, "SELECT id FROM boot", "");

        if (r < 0)
                return r;
        r = store_next_row(store, statement);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        is_same = strcmp((const char *)sqlite3_column_text(statement, 0), boot_id) == 0;
        sqlite3_reset(statement);
        if (is_same)
                return 0;

        r = store_begin(store);
        if (r == 0)
                r = store_error(store, database_execute(&store->database, former_boot));
        if (r == 0)
                r = STORE_RUN(store, "UPDATE boot SET id = ?", "s", boot_id);
        if (r == 0)
                r = store_commit(store);
        return r;
}

/* Up to where it is known to be ours and whole. Errors: those of refuse(). */
static int set_up(struct store *store, const char *path)
{
        int r = database_open(&store->database, path, SQLITE_OPEN_NOFOLLOW);

        if (r == 0)
                r = database_execute(&store->database, "PRAGMA locking_mode=EXCLUSIVE;"
                                                       "PRAGMA foreign_keys=ON");
        if (r == 0)
                r = database_log_ahead(&store->database, true);
        if (r == 0)
                r = check(store);
        return r < 0 ? r : schema_apply(&store->database, &schema);
}

int store_open(struct store **ret_store, const char *path, const char *boot_id,
               struct failure *failure)
{
        CLEANUP(store_closep) struct store *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return -ENOMEM;
        r = set_up(store, path);
        if (r < 0)
                return refuse(store, path, r, failure);

        r = store_error(store, database_execute(&store->database, later_tables));
        if (r == 0)
                r = forget_former_boot(store, boot_id);
        if (r < 0)
                return failure_from_errno(failure, r, "opening the state database");
        *ret_store = TAKE(store);
        return 0;
}

struct store *store_close(struct store *store)
{
        if (store)
                database_close(&store->database);
        free(store);
        return NULL;
}

int store_begin(struct store *store)
{
        return STORE_RUN(store, "BEGIN IMMEDIATE", "");
}

/* It can only be changed between transactions. */
static int wait_for_disk(struct store *store, bool wanted)
{
        int r = 0;

        if (wanted != store->waits_for_disk)
                r = store_error(store, database_execute(&store->database,
                                                        wanted ? "PRAGMA synchronous=FULL"
                                                               : "PRAGMA synchronous=NORMAL"));
        if (r == 0)
                store->waits_for_disk = wanted;
        return r;
}

int store_begin_durable(struct store *store)
{
        int r = wait_for_disk(store, true);

        return r < 0 ? r : store_begin(store);
}

int store_commit(struct store *store)
{
        int r = store_write_fails() ? -ENOSPC : STORE_RUN(store, "COMMIT", "");

        if (r < 0)
                store_rollback(store);
        else
                (void)wait_for_disk(store, false);
        return r;
}

void store_rollback(struct store *store)
{
        if (!sqlite3_get_autocommit(store->database.handle))
                (void)STORE_RUN(store, "ROLLBACK", "");
        (void)wait_for_disk(store, false);
}

bool store_is_writable(struct store *store)
{
        int r = store_begin(store);

        if (r == 0)
                r = STORE_RUN(store, "UPDATE boot SET id = id", "");
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r == 0;
}
