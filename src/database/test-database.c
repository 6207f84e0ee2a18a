/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "database/schema.h"

#define APPLICATION 0x1234

static const char first[] = "CREATE TABLE item (name TEXT NOT NULL)";
static const char *const changes[] = {
        "ALTER TABLE item ADD COLUMN size INTEGER NOT NULL DEFAULT 7",
        "INSERT INTO item (name, size) VALUES ('made by the third', 3)",
};

static struct database_schema schema_of(size_t n_changes)
{
        return (struct database_schema){ APPLICATION, first, changes, n_changes };
}

static int make_directory(void **state)
{
        static char path[64];

        snprintf(path, sizeof(path), "/tmp/test-database-XXXXXX");
        if (!mkdtemp(path))
                return -1;
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/db");
        *state = path;
        return 0;
}

static int remove_directory(void **state)
{
        char *path = *state;

        unlink(path);
        *strrchr(path, '/') = '\0';
        return rmdir(path);
}

static void open_with(struct database *database, const char *path,
                      const struct database_schema *schema, int expected)
{
        assert_int_equal(database_open(database, path, 0), 0);
        assert_int_equal(schema_apply(database, schema), expected);
}

static int64_t read_one(struct database *database, const char *text)
{
        int64_t value = -1;

        assert_int_equal(database_read_integer(database, text, &value), 0);
        return value;
}

static void test_a_database_of_each_version_becomes_the_newest(void **state)
{
        struct database_schema of[] = { schema_of(0), schema_of(1), schema_of(2) };
        struct database database;

        for (size_t made_by = 0; made_by < 3; made_by++) {
                open_with(&database, *state, &of[made_by], 0);
                assert_int_equal(
                        DATABASE_RUN(&database, "INSERT INTO item (name) VALUES (?)", "s", "kept"),
                        0);
                database_close(&database);

                open_with(&database, *state, &of[2], 0);
                assert_int_equal(read_one(&database, "PRAGMA user_version"), 3);
                assert_int_equal(read_one(&database, "SELECT size FROM item WHERE name = 'kept'"),
                                 7);
                assert_int_equal(read_one(&database, "SELECT count(*) FROM item"), 2);
                database_close(&database);
                assert_int_equal(unlink(*state), 0);
        }
}

static void test_a_newer_one_and_anothers_are_refused_and_left_alone(void **state)
{
        struct database_schema old = schema_of(1), new = schema_of(2), foreign = schema_of(2);
        struct database database;

        open_with(&database, *state, &new, 0);
        database_close(&database);
        open_with(&database, *state, &old, -EPROTONOSUPPORT);
        database_close(&database);
        foreign.application_id++;
        open_with(&database, *state, &foreign, -EPROTO);
        assert_int_equal(read_one(&database, "SELECT count(*) FROM item"), 1);
        assert_int_equal(read_one(&database, "PRAGMA application_id"), APPLICATION);
        database_close(&database);
}

static void test_a_file_with_tables_of_nobody_is_not_taken_for_new(void **state)
{
        struct database_schema schema = schema_of(2);
        struct database database;

        assert_int_equal(database_open(&database, *state, 0), 0);
        assert_int_equal(database_execute(&database, "CREATE TABLE mine (a)"), 0);
        assert_int_equal(schema_apply(&database, &schema), -EPROTO);
        database_close(&database);
}

static void test_a_change_that_fails_is_undone(void **state)
{
        static const char *const broken[] = { "INSERT INTO item VALUES ('half'); SELECT nothing" };
        struct database_schema schema = { APPLICATION, first, broken, 1 };
        struct database database;

        open_with(&database, *state, &schema, -EIO);
        assert_int_equal(read_one(&database, "PRAGMA user_version"), 1);
        assert_int_equal(read_one(&database, "SELECT count(*) FROM item"), 0);
        database_close(&database);
}

static void test_errors_are_those_of_errno(void **state)
{
        struct database_schema schema = schema_of(0);
        struct database database, other;
        FILE *file;

        open_with(&database, *state, &schema, 0);
        assert_int_equal(database_execute(&database, "BEGIN EXCLUSIVE"), 0);
        assert_int_equal(database_open(&other, *state, 0), 0);
        assert_int_equal(database_execute(&other, "INSERT INTO item VALUES ('a')"), -EBUSY);
        database_close(&other);
        database_close(&database);

        file = fopen(*state, "w");
        assert_non_null(file);
        for (int i = 0; i < 4096; i++)
                fputc('x', file);
        fclose(file);
        open_with(&database, *state, &schema, -EUCLEAN);
        assert_non_null(strstr(database_get_error(&database), "not a database"));
        database_close(&database);
        assert_int_equal(database_open(&database, "/nowhere/at/all", 0), -EACCES);
        database_close(&database);
}

static void test_what_is_made_is_for_its_owner_alone(void **state)
{
        struct database_schema schema = schema_of(0);
        struct database database;
        struct stat status;

        open_with(&database, *state, &schema, 0);
        assert_int_equal(stat(*state, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        database_close(&database);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_directory, remove_directory)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_a_database_of_each_version_becomes_the_newest),
                TEST(test_a_newer_one_and_anothers_are_refused_and_left_alone),
                TEST(test_a_file_with_tables_of_nobody_is_not_taken_for_new),
                TEST(test_a_change_that_fails_is_undone),
                TEST(test_errors_are_those_of_errno),
                TEST(test_what_is_made_is_for_its_owner_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
