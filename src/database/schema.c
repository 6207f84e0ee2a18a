/* SPDX-License-Identifier: Apache-2.0 */
#include "database/schema.h"

#include <errno.h>
#include <stdio.h>

/* All of @statements, and that the database is of @version then; or nothing. */
static int change(struct database *database, const struct database_schema *schema,
                  const char *statements, int64_t version)
{
        char text[128];
        int r = database_execute(database, "BEGIN IMMEDIATE");

        if (r == 0)
                r = database_execute(database, statements);
        snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
                 schema->application_id, (int)version);
        if (r == 0)
                r = database_execute(database, text);
        if (r < 0 && !sqlite3_get_autocommit(database->handle)) /* some errors have done it */
                (void)database_execute(database, "ROLLBACK");
        return r;
}

static int make_first(struct database *database, const struct database_schema *schema)
{
        int64_t n_tables;
        int r = database_read_integer(database, "SELECT count(*) FROM sqlite_schema", &n_tables);

        if (r < 0)
                return r;
        return n_tables > 0 ? -EPROTO : change(database, schema, schema->first, 1);
}

int schema_apply(struct database *database, const struct database_schema *schema)
{
        int64_t version, application, newest = (int64_t)schema->n_changes + 1;
        int r = database_read_integer(database, "PRAGMA user_version", &version);

        if (r == 0)
                r = database_read_integer(database, "PRAGMA application_id", &application);
        if (r < 0)
                return r;
        if (version == 0 && application == 0) {
                r = make_first(database, schema);
                version = 1;
        } else if (application != schema->application_id || version < 1) {
                return -EPROTO;
        }
        if (version > newest)
                return -EPROTONOSUPPORT;
        for (; r == 0 && version < newest; version++)
                r = change(database, schema, schema->changes[version - 1], version + 1);
        return r;
}
