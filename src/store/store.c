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

#include "store/store-internal.h"

/* Less is no room for a page of the database, one of its log and the index of that. */
#define ROOM_MIN 65536

#define STORE_APPLICATION_ID 0x56475055 /* "VGPU", in the header of the file */

/* As version 1 had it. A database is made so and then brought up to date like one of that version. */
static const char schema[] =
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

/* What makes version N + 2 of a database of version N + 1; at the end only, for others have had these. */
static const char *const changes[] = {
        "ALTER TABLE extent ADD COLUMN generation INTEGER NOT NULL DEFAULT 0",
};

#define STORE_SCHEMA ((int64_t)(sizeof(changes) / sizeof(changes[0])) + 1)

/* An older vgpud reads a database with these as well: they need no new version. */
static const char later_tables[] =
        "CREATE TABLE IF NOT EXISTS setting (name TEXT NOT NULL,"
        "  instance INTEGER REFERENCES instance ON DELETE CASCADE, value TEXT NOT NULL);"
        "CREATE TABLE IF NOT EXISTS footprint (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  context_bytes INTEGER NOT NULL, PRIMARY KEY (instance, pid),"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);";

/* Opening. */

static int execute(struct store *store, const char *text)
{
        int code = sqlite3_exec(store->database, text, NULL, NULL, NULL);

        return code == SQLITE_OK ? 0 : code;
}

static int read_integer(struct store *store, const char *text, int64_t *ret_value)
{
        sqlite3_stmt *statement;
        int r = store_start(store, &statement, text, "");

        if (r < 0)
                return r;
        r = store_next_row(store, statement);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        *ret_value = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        return 0;
}

/* SQLite has many errors for a disk without room: it tells what it was doing, not why it could not. */
static bool is_full(const char *path)
{
        CLEANUP(freep) char *copy = strdup(path);
        struct statvfs disk;

        return copy && statvfs(dirname(copy), &disk) == 0 &&
               ((uint64_t)disk.f_bavail * disk.f_frsize < ROOM_MIN ||
                (disk.f_files > 0 && disk.f_favail == 0));
}

static int refuse(struct store *store, const char *path, int code, struct failure *failure)
{
        bool is_damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;

        if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
                return failure_set(failure, -EBUSY, "Failed",
                                   "find out who has it open (fuser) and end that process",
                                   "the state database %s is locked by another process", path);
        if (code == SQLITE_FULL || (!is_damaged && is_full(path)))
                return failure_set(failure, -ENOSPC, "Failed",
                                   "free some room there, and start again",
                                   "the disk of the state database %s is full", path);
        if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_PERM)
                return failure_set(failure, -EACCES, "Failed",
                                   "make the state directory writable for the user of vgpud",
                                   "the state database %s cannot be opened for writing", path);
        if (is_damaged)
                return failure_set(
                        failure, -EIO, "Failed",
                        "restore it from a backup; or move it away, and create the vGPUs anew",
                        "the state database %s is damaged (%s)", path,
                        sqlite3_errmsg(store->database));
        return failure_set(failure, -EIO, "Failed",
                           "leave it where it is, and see what is wrong with that disk (dmesg)",
                           "the state database %s cannot be read or written (%s)", path,
                           sqlite3_errmsg(store->database));
}

static bool is_sound(struct store *store)
{
        sqlite3_stmt *statement;
        bool sound;

        if (store_start(store, &statement, "PRAGMA quick_check(1)", "") < 0 ||
            store_next_row(store, statement) != 1)
                return false;
        sound = strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
        sqlite3_reset(statement);
        return sound;
}

static int make_schema(struct store *store)
{
        char text[128];
        int code = execute(store, "BEGIN IMMEDIATE");

        if (code == 0)
                code = execute(store, schema);
        snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=1; COMMIT",
                 STORE_APPLICATION_ID);
        return code ? code : execute(store, text);
}

/* One version after the other, each as a whole. */
static int bring_up_to_date(struct store *store, int64_t version)
{
        int code = 0;

        for (; version < STORE_SCHEMA && code == 0; version++) {
                char text[256];

                snprintf(text, sizeof(text), "BEGIN IMMEDIATE; %s; PRAGMA user_version=%d; COMMIT",
                         changes[version - 1], (int)version + 1);
                code = execute(store, text);
        }
        return code;
}

static int check_schema(struct store *store, const char *path, struct failure *failure)
{
        int64_t version, application;
        int code = 0;

        if (read_integer(store, "PRAGMA user_version", &version) < 0 ||
            read_integer(store, "PRAGMA application_id", &application) < 0 || !is_sound(store)) {
                code = sqlite3_errcode(store->database) & 0xff;
                if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
                        code = SQLITE_CORRUPT; /* the check itself says so */
                return refuse(store, path, code, failure);
        }

        if (version == 0 && application == 0) {
                code = make_schema(store);
                version = 1;
                application = STORE_APPLICATION_ID;
        }
        if (application != STORE_APPLICATION_ID)
                return failure_set(failure, -EPROTO, "Failed",
                                   "move the file away or choose another --state-dir",
                                   "%s is the database of another program", path);
        if (version > STORE_SCHEMA)
                return failure_set(failure, -EPROTONOSUPPORT, "Failed",
                                   "install that version again, or a newer one",
                                   "the state database %s was written by a newer vgpud", path);
        if (code == 0)
                code = bring_up_to_date(store, version);
        return code ? refuse(store, path, code & 0xff, failure) : 0;
}

static int forget_former_boot(struct store *store, const char *boot_id)
{
        sqlite3_stmt *statement;
        bool is_same;
        int r = store_start(store, &statement, "SELECT id FROM boot", "");

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
        if (r == 0 &&
            execute(store, "DELETE FROM process; DELETE FROM operation; DELETE FROM mover;"
                           "DELETE FROM instance WHERE transient;"
                           "DELETE FROM setting WHERE instance IS NULL;"
                           "UPDATE instance SET state = 0") != 0)
                r = -EIO;
        if (r == 0)
                r = STORE_RUN(store, "UPDATE boot SET id = ?", "s", boot_id);
        if (r == 0)
                r = store_commit(store);
        return r;
}

int store_open(struct store **ret_store, const char *path, const char *boot_id,
               struct failure *failure)
{
        CLEANUP(store_closep) struct store *store = calloc(1, sizeof(*store));
        mode_t mask = umask(077); /* it tells who runs what */
        int code, r;

        if (!store) {
                umask(mask);
                return -ENOMEM;
        }
        code = sqlite3_open_v2(path, &store->database,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
                               NULL);
        if (code == SQLITE_OK)
                code = execute(store, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
                                      "PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;"
                                      "BEGIN IMMEDIATE; COMMIT");
        umask(mask);
        if (code != SQLITE_OK)
                return refuse(store, path, code & 0xff, failure);

        r = check_schema(store, path, failure);
        if (r == 0 && execute(store, later_tables) != 0)
                r = -EIO;
        if (r == 0)
                r = forget_former_boot(store, boot_id);
        if (r < 0)
                return failure_from_errno(failure, r, "opening the state database");
        *ret_store = TAKE(store);
        return 0;
}

struct store *store_close(struct store *store)
{
        if (!store)
                return NULL;
        for (size_t i = 0; i < store->n_statements; i++)
                sqlite3_finalize(store->statement[i].prepared);
        sqlite3_close(store->database);
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
        int code = 0;

        if (wanted != store->waits_for_disk)
                code = execute(store,
                               wanted ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
        if (code == 0)
                store->waits_for_disk = wanted;
        return code ? -EIO : 0;
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
        if (!sqlite3_get_autocommit(store->database))
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
