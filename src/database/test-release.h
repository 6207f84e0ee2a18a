/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATABASE_TEST_RELEASE_H
#define DATABASE_TEST_RELEASE_H

/* For tests: makes the database of a release from its checked-in text. */
#include <stdio.h>

#include "base/test.h"
#include "database/database.h"

static inline void release_load(const char *path, const char *text_path)
{
        static char text[65536];
        struct database database;
        FILE *file = fopen(text_path, "re");
        size_t n;

        assert_non_null(file);
        n = fread(text, 1, sizeof(text) - 1, file);
        assert_in_range(n, 1, sizeof(text) - 2);
        assert_int_equal(fclose(file), 0);
        text[n] = '\0';
        assert_int_equal(database_open(&database, path, 0), 0);
        assert_int_equal(database_execute(&database, text), 0);
        database_close(&database);
}

#endif
