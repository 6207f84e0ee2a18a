/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement is a string literal that is prepared once and found again by
 * its address. Parameters are bound from a short format: i integer, s text.
 *
 * Write-ahead logging with synchronous=NORMAL: a commit is a write() without
 * waiting for the disk, some tens of microseconds, so it may happen in the middle
 * of a suspend.
 */
#include "manager/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "board/board.h"
#include "manager/log.h"
#include "manager/process.h"

#define STORE_SCHEMA         1
#define STORE_APPLICATION_ID 0x56475055 /* "VGPU", in the header of the file */
#define STATEMENTS_MAX       48

struct statement {
        const char *text;
        sqlite3_stmt *prepared;
};

struct store {
        sqlite3 *database;
        size_t n_statements;
        struct statement statement[STATEMENTS_MAX];
};

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

/* An older vgpud reads a database with these as well: they need no new version. */
static const char later_tables[] =
        "CREATE TABLE IF NOT EXISTS setting (name TEXT NOT NULL,"
        "  instance INTEGER REFERENCES instance ON DELETE CASCADE, value TEXT NOT NULL);";

static int store_error(struct store *store, int code)
{
        char quoted[LOG_QUOTED_MAX];

        log_event(LOG_LEVEL_ERROR, "the state database failed", "error=%s code=%d",
                  log_quote(quoted, sqlite3_errmsg(store->database)), code);
        switch (code & 0xff) {
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_NOMEM:
                return -ENOMEM;
        default:
                return -EIO;
        }
}

static int find_statement(struct store *store, sqlite3_stmt **ret_statement, const char *text)
{
        struct statement *new = &store->statement[store->n_statements];
        int code;

        for (size_t i = 0; i < store->n_statements; i++)
                if (store->statement[i].text == text) {
                        *ret_statement = store->statement[i].prepared;
                        return 0;
                }
        if (store->n_statements == STATEMENTS_MAX)
                return -EIO;

        code = sqlite3_prepare_v3(store->database, text, -1, SQLITE_PREPARE_PERSISTENT,
                                  &new->prepared, NULL);
        if (code != SQLITE_OK)
                return store_error(store, code);
        new->text = text;
        store->n_statements++;
        *ret_statement = new->prepared;
        return 0;
}

/* Arguments: int64_t for i, const char * for s. SQLite keeps no pointer longer than the step. */
static void bind(sqlite3_stmt *statement, const char *format, va_list args)
{
        for (int i = 0; format[i]; i++)
                if (format[i] == 'i')
                        sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
                else
                        sqlite3_bind_text(statement, i + 1, va_arg(args, const char *), -1,
                                          SQLITE_STATIC);
}

static int start(struct store *store, sqlite3_stmt **ret_statement, const char *text,
                 const char *format, ...)
{
        va_list args;
        int r = find_statement(store, ret_statement, text);

        if (r < 0)
                return r;
        va_start(args, format);
        bind(*ret_statement, format, args);
        va_end(args);
        return 0;
}

/* One row after another: 1, then 0 at the end; the statement is ready for its next use then. */
static int next_row(struct store *store, sqlite3_stmt *statement)
{
        int code = sqlite3_step(statement);
        int r = code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : store_error(store, code);

        if (r <= 0) {
                sqlite3_reset(statement);
                sqlite3_clear_bindings(statement);
        }
        return r;
}

#define RUN(store, text, ...)                                          \
        __extension__({                                                \
                sqlite3_stmt *statement_;                              \
                int r_ = start(store, &statement_, text, __VA_ARGS__); \
                r_ < 0 ? r_ : next_row(store, statement_);             \
        })

static void copy_text(char *to, size_t size, sqlite3_stmt *statement, int column)
{
        const unsigned char *text = sqlite3_column_text(statement, column);

        snprintf(to, size, "%s", text ? (const char *)text : "");
}

/* Opening. */

static int execute(struct store *store, const char *text)
{
        int code = sqlite3_exec(store->database, text, NULL, NULL, NULL);

        return code == SQLITE_OK ? 0 : code;
}

static int read_integer(struct store *store, const char *text, int64_t *ret_value)
{
        sqlite3_stmt *statement;
        int r = start(store, &statement, text, "");

        if (r < 0)
                return r;
        r = next_row(store, statement);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        *ret_value = sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        return 0;
}

static int refuse(struct store *store, const char *path, int code, struct failure *failure)
{
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
                return failure_set(failure, -EBUSY, "Failed",
                                   "find out who has it open (fuser) and end that process",
                                   "the state database %s is locked by another process", path);
        if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_PERM)
                return failure_set(failure, -EACCES, "Failed",
                                   "make the state directory writable for the user of vgpud",
                                   "the state database %s cannot be opened for writing", path);
        return failure_set(failure, -EIO, "Failed",
                           "restore it from a backup; or move it away, and create the vGPUs anew",
                           "the state database %s is damaged (%s)", path,
                           sqlite3_errmsg(store->database));
}

static bool is_sound(struct store *store)
{
        sqlite3_stmt *statement;
        bool sound;

        if (start(store, &statement, "PRAGMA quick_check(1)", "") < 0 ||
            next_row(store, statement) != 1)
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
        snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
                 STORE_APPLICATION_ID, STORE_SCHEMA);
        return code ? code : execute(store, text);
}

static int check_schema(struct store *store, const char *path, struct failure *failure)
{
        int64_t version, application;

        if (read_integer(store, "PRAGMA user_version", &version) < 0 ||
            read_integer(store, "PRAGMA application_id", &application) < 0 || !is_sound(store))
                return refuse(store, path, SQLITE_CORRUPT, failure);

        if (version == 0 && application == 0) {
                int code = make_schema(store);

                return code ? refuse(store, path, code, failure) : 0;
        }
        if (application != STORE_APPLICATION_ID)
                return failure_set(failure, -EPROTO, "Failed",
                                   "move the file away or choose another --state-dir",
                                   "%s is the database of another program", path);
        if (version > STORE_SCHEMA)
                return failure_set(failure, -EPROTONOSUPPORT, "Failed",
                                   "install that version again, or a newer one",
                                   "the state database %s was written by a newer vgpud", path);
        return 0;
}

static int forget_former_boot(struct store *store, const char *boot_id)
{
        sqlite3_stmt *statement;
        bool is_same;
        int r = start(store, &statement, "SELECT id FROM boot", "");

        if (r < 0)
                return r;
        r = next_row(store, statement);
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
                r = RUN(store, "UPDATE boot SET id = ?", "s", boot_id);
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
        return RUN(store, "BEGIN IMMEDIATE", "");
}

int store_commit(struct store *store)
{
        int r = RUN(store, "COMMIT", "");

        if (r < 0)
                store_rollback(store);
        return r;
}

void store_rollback(struct store *store)
{
        if (!sqlite3_get_autocommit(store->database))
                (void)RUN(store, "ROLLBACK", "");
}

/* Instances. */

int store_add_instance(struct store *store, struct store_instance *instance)
{
        int r = RUN(store,
                    "INSERT INTO instance (name, uuid, device, frame_buffer, created_ns, state,"
                    " owner, transient, creator, creator_start) VALUES (?,?,?,?,?,?,?,?,?,?)",
                    "sssiiiiiii", instance->name, instance->uuid, instance->device_uuid,
                    (int64_t)instance->frame_buffer, (int64_t)instance->created_ns,
                    (int64_t)instance->state, (int64_t)instance->owner,
                    (int64_t)instance->is_transient, (int64_t)instance->creator,
                    (int64_t)instance->creator_start);

        if (r == 0)
                instance->id = (uint32_t)sqlite3_last_insert_rowid(store->database);
        return r;
}

int store_set_instance(struct store *store, uint32_t id, uint32_t state, const char *device_uuid)
{
        return RUN(store, "UPDATE instance SET state = ?, device = ? WHERE id = ?", "isi",
                   (int64_t)state, device_uuid, (int64_t)id);
}

int store_remove_instance(struct store *store, uint32_t id)
{
        return RUN(store, "DELETE FROM instance WHERE id = ?", "i", (int64_t)id);
}

static void decode_instance(struct store_instance *instance, sqlite3_stmt *row)
{
        *instance = (struct store_instance){
                .id = (uint32_t)sqlite3_column_int64(row, 0),
                .frame_buffer = (uint64_t)sqlite3_column_int64(row, 4),
                .created_ns = (uint64_t)sqlite3_column_int64(row, 5),
                .state = (uint32_t)sqlite3_column_int64(row, 6),
                .owner = (uid_t)sqlite3_column_int64(row, 7),
                .is_transient = sqlite3_column_int64(row, 8) != 0,
                .creator = (pid_t)sqlite3_column_int64(row, 9),
                .creator_start = (uint64_t)sqlite3_column_int64(row, 10),
        };
        copy_text(instance->name, sizeof(instance->name), row, 1);
        copy_text(instance->uuid, sizeof(instance->uuid), row, 2);
        copy_text(instance->device_uuid, sizeof(instance->device_uuid), row, 3);
}

int store_each_instance(struct store *store, store_instance_fn each, void *userdata)
{
        struct store_instance instance;
        sqlite3_stmt *row;
        int r = start(store, &row,
                      "SELECT id, name, uuid, device, frame_buffer, created_ns, state, owner,"
                      " transient, creator, creator_start FROM instance ORDER BY id",
                      "");

        if (r < 0)
                return r;
        while ((r = next_row(store, row)) > 0) {
                decode_instance(&instance, row);
                r = each(&instance, userdata);
                if (r < 0) {
                        sqlite3_reset(row);
                        return r;
                }
        }
        return r;
}

/* Processes and their memory. */

int store_put_process(struct store *store, const struct store_process *process)
{
        return RUN(
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
        return RUN(store, "DELETE FROM process WHERE instance = ? AND pid = ?", "ii",
                   (int64_t)instance, (int64_t)pid);
}

int store_each_process(struct store *store, uint32_t instance, store_process_fn each,
                       void *userdata)
{
        sqlite3_stmt *row;
        int r = start(
                store, &row,
                "SELECT pid, start_time, slot, context, context_device, context_target FROM process"
                " WHERE instance = ?",
                "i", (int64_t)instance);

        if (r < 0)
                return r;
        while ((r = next_row(store, row)) > 0) {
                struct store_process process = {
                        .instance = instance,
                        .pid = (pid_t)sqlite3_column_int64(row, 0),
                        .start_time = (uint64_t)sqlite3_column_int64(row, 1),
                        .slot = (uint32_t)sqlite3_column_int64(row, 2),
                        .context = (uint32_t)sqlite3_column_int64(row, 3),
                };

                copy_text(process.context_device, sizeof(process.context_device), row, 4);
                copy_text(process.context_target, sizeof(process.context_target), row, 5);
                r = each(&process, userdata);
                if (r < 0) {
                        sqlite3_reset(row);
                        return r;
                }
        }
        return r;
}

int store_put_memory(struct store *store, uint32_t instance, pid_t pid,
                     const struct store_memory *memory)
{
        int r = RUN(store, "DELETE FROM memory WHERE instance = ? AND pid = ?", "ii",
                    (int64_t)instance, (int64_t)pid);

        if (r == 0)
                r = RUN(store, "DELETE FROM extent WHERE instance = ? AND pid = ?", "ii",
                        (int64_t)instance, (int64_t)pid);
        for (size_t i = 0; r == 0 && i < memory->n_allocations; i++)
                r = RUN(store, "INSERT INTO memory VALUES (?,?,?,?)", "iiii", (int64_t)instance,
                        (int64_t)pid, (int64_t)memory->allocations[i].address,
                        (int64_t)memory->allocations[i].size);
        for (size_t i = 0; r == 0 && i < memory->n_extents; i++)
                r = RUN(store, "INSERT INTO extent VALUES (?,?,?,?,?)", "iiiii", (int64_t)instance,
                        (int64_t)pid, (int64_t)memory->extents[i].slab,
                        (int64_t)memory->extents[i].offset, (int64_t)memory->extents[i].length);
        return r;
}

static int count_of(struct store *store, const char *text, uint32_t instance, pid_t pid, size_t *n)
{
        sqlite3_stmt *row;
        int r = start(store, &row, text, "ii", (int64_t)instance, (int64_t)pid);

        if (r < 0)
                return r;
        r = next_row(store, row);
        if (r <= 0)
                return r < 0 ? r : -EIO;
        *n = (size_t)sqlite3_column_int64(row, 0);
        sqlite3_reset(row);
        return 0;
}

static int get_allocations(struct store *store, uint32_t instance, pid_t pid,
                           struct gate_allocation *allocations, size_t n)
{
        sqlite3_stmt *row;
        int r = start(store, &row,
                      "SELECT address, size FROM memory WHERE instance = ? AND pid = ?"
                      " ORDER BY rowid",
                      "ii", (int64_t)instance, (int64_t)pid);

        for (size_t i = 0; r == 0 && (r = next_row(store, row)) > 0; i++, r = 0)
                if (i < n)
                        allocations[i] = (struct gate_allocation){
                                (uint64_t)sqlite3_column_int64(row, 0),
                                (uint64_t)sqlite3_column_int64(row, 1),
                        };
        return r;
}

static int get_extents(struct store *store, uint32_t instance, pid_t pid,
                       struct store_extent *extents, size_t n)
{
        sqlite3_stmt *row;
        int r = start(store, &row,
                      "SELECT slab, offset, length FROM extent WHERE instance = ? AND pid = ?"
                      " ORDER BY rowid",
                      "ii", (int64_t)instance, (int64_t)pid);

        for (size_t i = 0; r == 0 && (r = next_row(store, row)) > 0; i++, r = 0)
                if (i < n)
                        extents[i] = (struct store_extent){
                                (uint32_t)sqlite3_column_int64(row, 0),
                                (uint64_t)sqlite3_column_int64(row, 1),
                                (uint64_t)sqlite3_column_int64(row, 2),
                        };
        return r;
}

int store_get_memory(struct store *store, uint32_t instance, pid_t pid,
                     struct gate_allocation **ret_allocations, size_t *ret_n_allocations,
                     struct store_extent **ret_extents, size_t *ret_n_extents)
{
        CLEANUP(freep) struct gate_allocation *allocations = NULL;
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

/* Operations. */

int store_put_operation(struct store *store, const struct store_operation *operation)
{
        return RUN(store, "INSERT OR REPLACE INTO operation VALUES (?,?,?,?,?,?)", "issssi",
                   (int64_t)operation->instance, operation->kind, operation->step,
                   operation->source, operation->target, (int64_t)operation->keep_context);
}

int store_remove_operation(struct store *store, uint32_t instance)
{
        return RUN(store, "DELETE FROM operation WHERE instance = ?", "i", (int64_t)instance);
}

int store_get_operation(struct store *store, uint32_t instance,
                        struct store_operation *ret_operation)
{
        sqlite3_stmt *row;
        int r = start(store, &row,
                      "SELECT kind, step, source, target, keep_context FROM operation"
                      " WHERE instance = ?",
                      "i", (int64_t)instance);

        if (r < 0)
                return r;
        r = next_row(store, row);
        if (r <= 0)
                return r < 0 ? r : -ENOENT;

        *ret_operation = (struct store_operation){
                .instance = instance,
                .keep_context = sqlite3_column_int64(row, 4) != 0,
        };
        copy_text(ret_operation->kind, sizeof(ret_operation->kind), row, 0);
        copy_text(ret_operation->step, sizeof(ret_operation->step), row, 1);
        copy_text(ret_operation->source, sizeof(ret_operation->source), row, 2);
        copy_text(ret_operation->target, sizeof(ret_operation->target), row, 3);
        sqlite3_reset(row);
        return 0;
}

/* Movers. */

int store_put_mover(struct store *store, pid_t pid)
{
        uint64_t start_time;

        if (process_get_start_time(pid, &start_time) < 0)
                return 0; /* dead already */
        return RUN(store, "INSERT OR REPLACE INTO mover VALUES (?,?)", "ii", (int64_t)pid,
                   (int64_t)start_time);
}

int store_remove_mover(struct store *store, pid_t pid)
{
        return RUN(store, "DELETE FROM mover WHERE pid = ?", "i", (int64_t)pid);
}

int store_take_movers(struct store *store, store_mover_fn each, void *userdata)
{
        sqlite3_stmt *row;
        int r = start(store, &row, "SELECT pid, start_time FROM mover", "");

        if (r < 0)
                return r;
        while ((r = next_row(store, row)) > 0)
                (void)each((pid_t)sqlite3_column_int64(row, 0),
                           (uint64_t)sqlite3_column_int64(row, 1), userdata);
        return r < 0 ? r : RUN(store, "DELETE FROM mover", "");
}

/* Settings. Those of no instance have the instance NULL, which is distinct from itself. */

int store_put_setting(struct store *store, const char *name, uint32_t instance, const char *value)
{
        int r = store_begin(store);

        if (r < 0)
                return r;
        r = RUN(store, "DELETE FROM setting WHERE name = ? AND ifnull(instance, 0) = ?", "si", name,
                (int64_t)instance);
        if (r == 0)
                r = RUN(store, "INSERT INTO setting VALUES (?, nullif(?, 0), ?)", "sis", name,
                        (int64_t)instance, value);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        return store_commit(store);
}

int store_each_setting(struct store *store, store_setting_fn each, void *userdata)
{
        sqlite3_stmt *row;
        int r = start(store, &row, "SELECT name, ifnull(instance, 0), value FROM setting", "");

        if (r < 0)
                return r;
        while ((r = next_row(store, row)) > 0) {
                r = each((const char *)sqlite3_column_text(row, 0),
                         (uint32_t)sqlite3_column_int64(row, 1),
                         (const char *)sqlite3_column_text(row, 2), userdata);
                if (r < 0) {
                        sqlite3_reset(row);
                        return r;
                }
        }
        return r;
}
