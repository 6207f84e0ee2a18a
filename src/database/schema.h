/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATABASE_SCHEMA_H
#define DATABASE_SCHEMA_H

/*
 * Brings a database to the version that the program needs. A new database starts as version 1 and
 * goes through the same changes as an old one, so both end alike. A released change never changes,
 * because users' databases have gone through it. A new version is a row at the end of @changes.
 */

#include "database/database.h"

struct database_schema {
        int application_id;         /* in the header of the file: whose database it is */
        const char *first;          /* makes version 1 of an empty file */
        const char *const *changes; /* each makes the next version of the one before */
        size_t n_changes;
};

/*
 * schema_apply() - each version as a whole: after an error or a kill the database is of some
 * version. Errors: -EPROTO, another program's; -EPROTONOSUPPORT, of a newer version; those of the
 * database.
 */
int schema_apply(struct database *database, const struct database_schema *schema);

#endif
