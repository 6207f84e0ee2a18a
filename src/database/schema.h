/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATABASE_SCHEMA_H
#define DATABASE_SCHEMA_H

/*
 * How a database comes to the version that its program needs. A new one is made as version 1 had it and
 * then changed like one of that version, so both end alike. What has been released stays as it is:
 * others' databases have gone through it. A new version is a row at the end of @changes.
 */

#include "database/database.h"

struct database_schema {
        int application_id;         /* in the header of the file: whose database it is */
        const char *first;          /* makes version 1 of an empty file */
        const char *const *changes; /* each makes the next version of the one before */
        size_t n_changes;
};

/*
 * schema_apply() - each version as a whole: after an error or a kill the database is of some version.
 * Errors: -EPROTO, another program's; -EPROTONOSUPPORT, of a newer version; those of the database.
 */
int schema_apply(struct database *database, const struct database_schema *schema);

#endif
