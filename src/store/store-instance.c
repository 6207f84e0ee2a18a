/* SPDX-License-Identifier: Apache-2.0 */
/* Instances, what is being done to them, and what was set. */
#include <errno.h>

#include "store/store-internal.h"

/* Instances. */

/* NVML shows parts and instances in one list: their ids come from one sequence. */
static int add_part(struct store *store, uint32_t instance, size_t position,
                    struct store_part *part)
{
        int r = STORE_RUN(store, "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'instance'",
                          "");

        if (r == 0)
                r = STORE_RUN(store,
                              "INSERT INTO part VALUES ((SELECT seq FROM sqlite_sequence"
                              " WHERE name = 'instance'), ?, ?, ?)",
                              "iis", (int64_t)instance, (int64_t)position, part->device_uuid);
        if (r == 0)
                part->id = (uint32_t)sqlite3_last_insert_rowid(store->database.handle);
        return r;
}

int store_add_instance(struct store *store, struct store_instance *instance)
{
        int r = STORE_RUN(
                store,
                "INSERT INTO instance (name, uuid, device, frame_buffer, created_ns, state,"
                " owner, transient, creator, creator_start) VALUES (?,?,?,?,?,?,?,?,?,?)",
                "sssiiiiiii", instance->name, instance->uuid, instance->device_uuid,
                (int64_t)instance->frame_buffer, (int64_t)instance->created_ns,
                (int64_t)instance->state, (int64_t)instance->owner, (int64_t)instance->is_transient,
                (int64_t)instance->creator, (int64_t)instance->creator_start);

        if (r == 0)
                instance->id = (uint32_t)sqlite3_last_insert_rowid(store->database.handle);
        for (size_t i = 0; r == 0 && i < instance->n_more; i++)
                r = add_part(store, instance->id, i + 1, &instance->more[i]);
        return r;
}

int store_set_instance(struct store *store, uint32_t id, uint32_t state, const char *device_uuid)
{
        return STORE_RUN(store, "UPDATE instance SET state = ?, device = ? WHERE id = ?", "isi",
                         (int64_t)state, device_uuid, (int64_t)id);
}

int store_set_part(struct store *store, uint32_t id, const char *device_uuid)
{
        return STORE_RUN(store, "UPDATE part SET device = ? WHERE id = ?", "si", device_uuid,
                         (int64_t)id);
}

int store_rename_instance(struct store *store, uint32_t id, const char *name)
{
        return STORE_RUN(store, "UPDATE instance SET name = ? WHERE id = ?", "si", name,
                         (int64_t)id);
}

int store_resize_instance(struct store *store, uint32_t id, uint64_t frame_buffer)
{
        return STORE_RUN(store, "UPDATE instance SET frame_buffer = ? WHERE id = ?", "ii",
                         (int64_t)frame_buffer, (int64_t)id);
}

int store_remove_instance(struct store *store, uint32_t id)
{
        return STORE_RUN(store, "DELETE FROM instance WHERE id = ?", "i", (int64_t)id);
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
        database_get_text(row, 1, instance->name, sizeof(instance->name));
        database_get_text(row, 2, instance->uuid, sizeof(instance->uuid));
        database_get_text(row, 3, instance->device_uuid, sizeof(instance->device_uuid));
}

static int read_parts(struct store *store, struct store_instance *instance)
{
        const size_t most = sizeof(instance->more) / sizeof(instance->more[0]);
        sqlite3_stmt *row;
        int r = STORE_START(store, &row,
                            "SELECT id, device FROM part WHERE instance = ? ORDER BY position", "i",
                            (int64_t)instance->id);

        if (r < 0)
                return r;
        while ((r = store_next_row(store, row)) > 0) {
                struct store_part *part = &instance->more[instance->n_more];

                if (instance->n_more == most) {
                        sqlite3_reset(row);
                        return -EUCLEAN;
                }
                part->id = (uint32_t)sqlite3_column_int64(row, 0);
                database_get_text(row, 1, part->device_uuid, sizeof(part->device_uuid));
                instance->n_more++;
        }
        return r;
}

int store_each_instance(struct store *store, store_instance_fn each, void *userdata)
{
        struct store_instance instance;
        sqlite3_stmt *row;
        int r = STORE_START(store, &row,
                            "SELECT id, name, uuid, device, frame_buffer, created_ns, state, owner,"
                            " transient, creator, creator_start FROM instance ORDER BY id",
                            "");

        if (r < 0)
                return r;
        while ((r = store_next_row(store, row)) > 0) {
                decode_instance(&instance, row);
                r = read_parts(store, &instance);
                if (r == 0)
                        r = each(&instance, userdata);
                if (r < 0) {
                        sqlite3_reset(row);
                        return r;
                }
        }
        return r;
}

/* Operations. */

int store_put_operation(struct store *store, const struct store_operation *operation)
{
        return STORE_RUN(store, "INSERT OR REPLACE INTO operation VALUES (?,?,?,?,?,?)", "issssi",
                         (int64_t)operation->instance, operation->kind, operation->step,
                         operation->source, operation->target, (int64_t)operation->keep_context);
}

int store_remove_operation(struct store *store, uint32_t instance)
{
        return STORE_RUN(store, "DELETE FROM operation WHERE instance = ?", "i", (int64_t)instance);
}

int store_get_operation(struct store *store, uint32_t instance,
                        struct store_operation *ret_operation)
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row,
                            "SELECT kind, step, source, target, keep_context FROM operation"
                            " WHERE instance = ?",
                            "i", (int64_t)instance);

        if (r < 0)
                return r;
        r = store_next_row(store, row);
        if (r <= 0)
                return r < 0 ? r : -ENOENT;

        *ret_operation = (struct store_operation){
                .instance = instance,
                .keep_context = sqlite3_column_int64(row, 4) != 0,
        };
        database_get_text(row, 0, ret_operation->kind, sizeof(ret_operation->kind));
        database_get_text(row, 1, ret_operation->step, sizeof(ret_operation->step));
        database_get_text(row, 2, ret_operation->source, sizeof(ret_operation->source));
        database_get_text(row, 3, ret_operation->target, sizeof(ret_operation->target));
        sqlite3_reset(row);
        return 0;
}

/* Settings. Those of no instance have the instance NULL, which is distinct from itself. */

static int put_setting(struct store *store, const char *name, uint32_t instance, const char *value)
{
        int r = STORE_RUN(store, "DELETE FROM setting WHERE name = ? AND instance IS nullif(?, 0)",
                          "si", name, (int64_t)instance);

        if (r == 0)
                r = STORE_RUN(store, "INSERT INTO setting VALUES (?, nullif(?, 0), ?)", "sis", name,
                              (int64_t)instance, value);
        return r;
}

int store_put_setting(struct store *store, const char *name, uint32_t instance, const char *value)
{
        int r;

        if (!sqlite3_get_autocommit(store->database.handle)) /* whoever began will end it */
                return put_setting(store, name, instance, value);
        r = store_begin(store);
        if (r < 0)
                return r;
        r = put_setting(store, name, instance, value);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        return store_commit(store);
}

/* A store of a release that did not note the load is taken to be of this one. */
static int put_driver_setting(struct store *store, const char *load, const char *name,
                              const char *value)
{
        int r = STORE_RUN(store,
                          "DELETE FROM setting WHERE instance IS NULL AND EXISTS (SELECT 1 FROM "
                          "setting WHERE instance IS NULL AND name = ? AND value <> ?)",
                          "ss", STORE_DRIVER_LOAD, load);

        if (r == 0)
                r = put_setting(store, STORE_DRIVER_LOAD, 0, load);
        if (r == 0)
                r = put_setting(store, name, 0, value);
        return r;
}

int store_put_driver_setting(struct store *store, const char *load, const char *name,
                             const char *value)
{
        int r = store_begin(store);

        if (r < 0)
                return r;
        r = put_driver_setting(store, load, name, value);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        return store_commit(store);
}

int store_each_setting(struct store *store, store_setting_fn each, void *userdata)
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row, "SELECT name, ifnull(instance, 0), value FROM setting",
                            "");

        if (r < 0)
                return r;
        while ((r = store_next_row(store, row)) > 0) {
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
