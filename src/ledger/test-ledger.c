/* SPDX-License-Identifier: Apache-2.0 */
/* The file: written entirely or not, full, locked, damaged, of an older version or not ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "database/test-release.h"
#include "ledger/test-fixture.h"

static void test_the_clock_counts_within_a_boot(void **state)
{
        struct fixture *fixture = *state;
        bool is_this_boot;
        struct wall wall;

        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), -ENOENT);
        fill(fixture);
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), 0);
        assert_int_equal(wall.steady_ms, 5000);
        assert_int_equal(wall.wall_ms, 6000000);
        assert_true(is_this_boot);
        assert_int_equal(open_again(fixture, "another boot"), 0);
        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), 0);
        assert_int_equal(wall.steady_ms, 5000);
        assert_false(is_this_boot);
}

static void test_a_batch_is_written_entirely_or_not(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(setenv("OPENVGPU_FAULT", "ledger.written=fail", 1), 0);
        add_vgpu(fixture, 1, TENANT_A, "train");
        add_usage(fixture, 100, 1, 11, 0, 1000);
        assert_int_equal(write_batch(fixture), -EIO);
        assert_int_equal(ask_all(fixture), 0);
        assert_int_equal(write_batch(fixture), 0); /* once only */
        assert_int_equal(ask_all(fixture), 1000);
        (void)unsetenv("OPENVGPU_FAULT");
}

static void test_a_locked_ledger_is_written_later(void **state)
{
        struct fixture *fixture = *state;
        sqlite3 *other;

        fill(fixture);
        assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        add_usage(fixture, 200, 1, 11, 0, 5);
        assert_int_equal(write_batch(fixture), -EBUSY);
        assert_int_equal(ask_all(fixture), 1748); /* it can be read */
        assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(other);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask_all(fixture), 1753);
}

static void limit_pages(struct fixture *fixture, int pages)
{
        char text[64];

        snprintf(text, sizeof(text), "PRAGMA max_page_count=%d", pages);
        assert_int_equal(sqlite3_exec(fixture->ledger->database.handle, text, NULL, NULL, NULL),
                         SQLITE_OK);
}

/* SQLite's own limit of a file makes it say what it says of a full disk. */
static void test_a_full_disk_costs_nothing_that_was_written(void **state)
{
        struct fixture *fixture = *state;
        uint64_t sum = 1748;
        int r = 0;

        fill(fixture);
        limit_pages(fixture, 16);
        for (uint64_t i = 1; i < 2000; i++) {
                add_usage(fixture, 1000 + i, 1, 11, 0, 1);
                r = write_batch(fixture);
                if (r < 0)
                        break;
                sum++;
        }
        assert_int_equal(r, -ENOSPC);
        assert_int_equal(ask_all(fixture), sum);
        limit_pages(fixture, 100000);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask_all(fixture), sum + 1);
}

static void overwrite(const char *path, off_t from, size_t size)
{
        char garbage[4096];
        int fd = open(path, O_RDWR | O_CLOEXEC);

        memset(garbage, 0xa5, sizeof(garbage));
        assert_true(fd >= 0);
        for (size_t done = 0; done < size; done += sizeof(garbage))
                assert_int_equal(pwrite(fd, garbage, sizeof(garbage), from + (off_t)done),
                                 sizeof(garbage));
        fd_close(fd);
}

static void test_a_damaged_ledger_is_told_and_kept(void **state)
{
        struct fixture *fixture = *state;
        char kept[PATHS_MAX];

        fill(fixture);
        fixture->ledger = ledger_close(fixture->ledger);
        overwrite(fixture->path, 0, 8192);
        assert_int_equal(open_again(fixture, "boot"), -EUCLEAN);
        assert_int_equal(ledger_set_aside(fixture->path, 12345, kept), 0);
        assert_int_equal(access(kept, F_OK), 0);
        assert_int_equal(unlink(kept), 0);
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ask_all(fixture), 0);
        fill(fixture);
        assert_int_equal(ask_all(fixture), 1748);
}

static void change(const char *path, const char *text)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(database);
}

static void test_a_ledger_of_each_release_is_opened(void **state)
{
        struct fixture *fixture = *state;
        bool is_this_boot;
        struct wall wall;

        fixture->ledger = ledger_close(fixture->ledger);
        assert_int_equal(unlink(fixture->path), 0);
        release_load(fixture->path, RELEASES "/release-2.sql");
        assert_int_equal(open_again(fixture, "b3a0c176-13d4-43d4-a24c-7030f98905b3"), 0);
        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), 0);
        assert_int_equal(wall.steady_ms, 3315806);
        assert_true(is_this_boot);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 1795358226019691740), 1);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 1);
        assert_int_equal(fixture->processes[0].busy_ns[METER_SM], 5895003102);
        assert_string_equal(fixture->processes[0].container, "");
        assert_int_equal(ask(fixture, LEDGER_BY_CONTAINER, 0, 1ull << 40, LEDGER_ANY_TENANT), 0);
}

/* As version 1 had it. */
static void test_a_ledger_of_the_version_before_is_brought_up_to_date(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture);
        fixture->ledger = ledger_close(fixture->ledger);
        change(fixture->path,
               "DROP INDEX process_running; ALTER TABLE process DROP COLUMN joined_ms;"
               "ALTER TABLE process DROP COLUMN container;"
               "ALTER TABLE process DROP COLUMN container_name;"
               "DROP TRIGGER process_dropped; DROP TABLE process_device;"
               "PRAGMA user_version=1");
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ask_all(fixture), 1748);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 2);
        assert_int_equal(fixture->processes[0].joined_ms, 0);
        assert_int_equal(fixture->processes[0].seen_ns[METER_OFA], 12);
        add_process(fixture, 11, 1, 0);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(open_again(fixture, "boot"), 0);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->processes[0].joined_ms, 19);
}

static void test_what_is_not_ours_is_left_alone(void **state)
{
        struct fixture *fixture = *state;

        fixture->ledger = ledger_close(fixture->ledger);
        change(fixture->path, "PRAGMA user_version=99");
        assert_int_equal(open_again(fixture, "boot"), -EPROTONOSUPPORT);
        change(fixture->path, "PRAGMA application_id=7");
        assert_int_equal(open_again(fixture, "boot"), -EPROTO);
        assert_int_equal(
                ledger_open(&fixture->ledger, "/nonexistent/ledger.db", "boot", ledger_devices, 2),
                -EACCES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_a_batch_is_written_entirely_or_not), /* first: fault points are read once */
                TEST(test_the_clock_counts_within_a_boot),
                TEST(test_a_locked_ledger_is_written_later),
                TEST(test_a_full_disk_costs_nothing_that_was_written),
                TEST(test_a_damaged_ledger_is_told_and_kept),
                TEST(test_a_ledger_of_each_release_is_opened),
                TEST(test_a_ledger_of_the_version_before_is_brought_up_to_date),
                TEST(test_what_is_not_ours_is_left_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
