/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table event_owner counts the events of each owner, so that a limit costs a look and no count.
 * Statements run past STORE_RUN(), which has the fault point.
 */
#include "store/store-event.h"

#include <errno.h>

#include "store/store-internal.h"

#define RUN(store, text, ...) \
        store_error(store, DATABASE_RUN(&(store)->database, text, __VA_ARGS__))

/* So many are forgotten at once, at least, when an owner has too many. */
#define PORTION 64

static int insert_event(struct store *store, const struct store_event *event)
{
        return RUN(store,
                   "INSERT INTO event (time_ms, owner, uuid, name, word, device, pid, bytes,"
                   " duration_ms, text) VALUES (?,?,?,?,?,?,?,?,?,?)",
                   "iisssiiiis", (int64_t)event->time_ms, (int64_t)event->owner, event->uuid,
                   event->name, event->word, (int64_t)event->device, (int64_t)event->pid,
                   (int64_t)event->bytes, (int64_t)event->duration_ms, event->text);
}

static int insert_parts(struct store *store, int64_t id, const struct store_event *event)
{
        return RUN(store,
                   "INSERT INTO event_part (event, drain_ms, copy_ms, context_ms) VALUES (?,?,?,?)",
                   "iiii", id, (int64_t)event->drain_ms, (int64_t)event->copy_ms,
                   (int64_t)event->context_ms);
}

/* Few events have parts, and few are of a vGPU of several devices. */
static int insert(struct store *store, const struct store_event *event)
{
        int r = insert_event(store, event);
        int64_t id = (int64_t)sqlite3_last_insert_rowid(store->database.handle);

        if (r == 0 && (event->drain_ms > 0 || event->copy_ms > 0 || event->context_ms > 0))
                r = insert_parts(store, id, event);
        if (r == 0 && event->devices[0])
                r = RUN(store, "INSERT INTO event_place (event, devices) VALUES (?,?)", "is", id,
                        event->devices);
        return r;
}

static int count(struct store *store, uid_t owner, size_t n)
{
        int64_t last = (int64_t)sqlite3_last_insert_rowid(store->database.handle);

        return RUN(store,
                   "INSERT INTO event_owner (owner, n, last) VALUES (?1, ?2, ?3)"
                   " ON CONFLICT (owner) DO UPDATE SET n = n + ?2, last = ?3",
                   "iii", (int64_t)owner, (int64_t)n, last);
}

static int get_excess(struct store *store, uid_t owner, int64_t *ret_n)
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row, "SELECT n - ? FROM event_owner WHERE owner = ?", "ii",
                            (int64_t)STORE_EVENTS_MAX, (int64_t)owner);

        *ret_n = 0;
        if (r == 0)
                r = store_error(store, database_step(row));
        if (r <= 0)
                return r;
        *ret_n = sqlite3_column_int64(row, 0);
        sqlite3_reset(row);
        return 0;
}

/* Of this owner the earliest. */
static int trim(struct store *store, uid_t owner)
{
        int64_t excess;
        int r = get_excess(store, owner, &excess);

        if (r < 0 || excess <= 0)
                return r;
        r = RUN(store,
                "DELETE FROM event WHERE id IN"
                " (SELECT id FROM event WHERE owner = ? ORDER BY id LIMIT ?)",
                "ii", (int64_t)owner, excess > PORTION ? excess : PORTION);
        return r < 0 ? r
                     : RUN(store, "UPDATE event_owner SET n = n - ? WHERE owner = ?", "ii",
                           (int64_t)sqlite3_changes(store->database.handle), (int64_t)owner);
}

/* At most one owner is new: the one that has been quiet for the longest time makes room. */
static int trim_owners(struct store *store)
{
        int64_t n, owner;
        int r = store_error(store, database_read_integer(&store->database,
                                                         "SELECT count(*) FROM event_owner", &n));

        if (r < 0 || n <= STORE_EVENT_OWNERS_MAX)
                return r;
        r = store_error(
                store,
                database_read_integer(
                        &store->database,
                        "SELECT owner FROM event_owner WHERE owner <> 0 ORDER BY last LIMIT 1",
                        &owner));
        if (r == 0)
                r = RUN(store, "DELETE FROM event WHERE owner = ?", "i", owner);
        return r < 0 ? r : RUN(store, "DELETE FROM event_owner WHERE owner = ?", "i", owner);
}

/* Events of one owner, one after another, cost one look at his limit. */
static int add_some(struct store *store, const struct store_event *events, size_t n)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = insert(store, &events[i]);
        if (r == 0)
                r = count(store, events->owner, n);
        if (r == 0)
                r = trim(store, events->owner);
        return r < 0 ? r : trim_owners(store);
}

static int add_all(struct store *store, const struct store_event *events, size_t n)
{
        int r = 0;

        while (r == 0 && n > 0) {
                size_t some = 1;

                while (some < n && events[some].owner == events->owner)
                        some++;
                r = add_some(store, events, some);
                events += some;
                n -= some;
        }
        return r;
}

int store_add_events(struct store *store, const struct store_event *events, size_t n)
{
        int r = RUN(store, "BEGIN IMMEDIATE", "");

        if (r == 0)
                r = add_all(store, events, n);
        if (r == 0)
                r = RUN(store, "COMMIT", "");
        if (r < 0)
                store_rollback(store);
        return r;
}

/* Reading. */

static int take_uuid(struct store *store, sqlite3_stmt *row, char ret_uuid[STORE_UUID_MAX])
{
        int r = store_next_row(store, row);

        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        database_get_text(row, 0, ret_uuid, STORE_UUID_MAX);
        sqlite3_reset(row);
        return 0;
}

int store_find_event_vgpu(struct store *store, const char *name, int64_t owner,
                          char ret_uuid[STORE_UUID_MAX])
{
        sqlite3_stmt *row;
        int r = STORE_START(store, &row,
                            "SELECT uuid FROM event WHERE name = ?1 AND (?2 < 0 OR owner = ?2)"
                            " ORDER BY id DESC LIMIT 1",
                            "si", name, owner);

        if (r == 0)
                r = take_uuid(store, row, ret_uuid);
        if (r != -ENOENT)
                return r;
        r = STORE_START(store, &row,
                        "SELECT uuid FROM event WHERE uuid = ?1 AND (?2 < 0 OR owner = ?2) LIMIT 1",
                        "si", name, owner);
        return r < 0 ? r : take_uuid(store, row, ret_uuid);
}

static void decode(struct store_event *event, sqlite3_stmt *row)
{
        *event = (struct store_event){
                .id = (uint64_t)sqlite3_column_int64(row, 0),
                .time_ms = (uint64_t)sqlite3_column_int64(row, 1),
                .owner = (uid_t)sqlite3_column_int64(row, 2),
                .device = (uint32_t)sqlite3_column_int64(row, 6),
                .pid = (pid_t)sqlite3_column_int64(row, 7),
                .bytes = (uint64_t)sqlite3_column_int64(row, 8),
                .duration_ms = (uint64_t)sqlite3_column_int64(row, 9),
                .drain_ms = (uint64_t)sqlite3_column_int64(row, 11),
                .copy_ms = (uint64_t)sqlite3_column_int64(row, 12),
                .context_ms = (uint64_t)sqlite3_column_int64(row, 13),
        };
        database_get_text(row, 3, event->uuid, sizeof(event->uuid));
        database_get_text(row, 4, event->name, sizeof(event->name));
        database_get_text(row, 5, event->word, sizeof(event->word));
        database_get_text(row, 10, event->text, sizeof(event->text));
        database_get_text(row, 14, event->devices, sizeof(event->devices));
}

#define SELECT                                                                          \
        "SELECT id, time_ms, owner, uuid, name, word, device, pid, bytes, duration_ms," \
        " text, drain_ms, copy_ms, context_ms, devices"                                 \
        " FROM event LEFT JOIN event_part ON event_part.event = event.id"               \
        " LEFT JOIN event_place ON event_place.event = event.id WHERE "
#define REST "id > ?1 AND time_ms >= ?2 ORDER BY id LIMIT ?3"

/* Each way has an index of its own. */
static int start(struct store *store, const struct store_event_query *query, sqlite3_stmt **ret_row)
{
        int64_t after = (int64_t)query->after, since = (int64_t)query->since_ms;
        int64_t limit = (int64_t)query->limit;

        if (query->uuid)
                return STORE_START(store, ret_row,
                                   SELECT "uuid = ?4 AND (?5 < 0 OR owner = ?5) AND " REST, "iiisi",
                                   after, since, limit, query->uuid, query->owner);
        if (query->owner >= 0)
                return STORE_START(store, ret_row, SELECT "owner = ?4 AND " REST, "iiii", after,
                                   since, limit, query->owner);
        return STORE_START(store, ret_row, SELECT REST, "iii", after, since, limit);
}

int store_each_event(struct store *store, const struct store_event_query *query,
                     store_event_fn each, void *userdata)
{
        struct store_event event;
        sqlite3_stmt *row;
        int r = start(store, query, &row);

        if (r < 0)
                return r;
        while ((r = store_next_row(store, row)) > 0) {
                decode(&event, row);
                r = each(&event, userdata);
                if (r < 0) {
                        sqlite3_reset(row);
                        return r;
                }
        }
        return r;
}
