/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd-table.h"
#include "base/test.h"

static int new_fd(void)
{
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

static bool is_open(int fd)
{
        return fcntl(fd, F_GETFD) >= 0;
}

static void test_what_is_put_is_found_until_it_is_dropped(void **state)
{
        struct fd_table table = { 0 };
        int a = new_fd(), b = new_fd();
        (void)state;

        assert_int_equal(fd_table_put(&table, "a", a), 0);
        assert_int_equal(fd_table_put(&table, "b", b), 0);
        assert_int_equal(fd_table_find(&table, "a"), a);
        assert_int_equal(fd_table_drop(&table, "a"), 0);
        assert_false(is_open(a));
        assert_int_equal(fd_table_find(&table, "a"), -1);
        assert_int_equal(fd_table_find(&table, "b"), b);
        assert_int_equal(fd_table_drop(&table, "a"), -ENOENT);
        fd_table_deinit(&table);
        assert_false(is_open(b));
}

static void test_a_label_in_use_is_replaced_and_the_old_one_closed(void **state)
{
        struct fd_table table = { 0 };
        int old = new_fd(), new = new_fd();
        (void)state;

        assert_int_equal(fd_table_put(&table, "a", old), 0);
        assert_int_equal(fd_table_put(&table, "a", new), 0);
        assert_false(is_open(old));
        assert_int_equal(table.n, 1);
        assert_int_equal(fd_table_find(&table, "a"), new);
        fd_table_deinit(&table);
}

static void test_nothing_of_a_former_label_is_behind_a_shorter_one(void **state)
{
        static const char nothing[FD_TABLE_LABEL_MAX];
        CLEANUP(fd_table_deinit) struct fd_table table = { 0 };

        (void)state;
        assert_int_equal(fd_table_put(&table, "a label of some length", dup(0)), 0);
        assert_int_equal(fd_table_drop(&table, "a label of some length"), 0);
        assert_int_equal(fd_table_put(&table, "short", dup(0)), 0);
        assert_memory_equal(table.entries[0].label + 5, nothing, sizeof(nothing) - 5);
}

static void test_a_label_that_is_too_long_leaves_the_descriptor_with_the_caller(void **state)
{
        struct fd_table table = { 0 };
        CLEANUP(fd_closep) int fd = new_fd();
        char label[FD_TABLE_LABEL_MAX + 1];
        (void)state;

        memset(label, 'x', sizeof(label) - 1);
        label[sizeof(label) - 1] = '\0';
        assert_int_equal(fd_table_put(&table, label, fd), -ENAMETOOLONG);
        assert_true(is_open(fd));
        assert_int_equal(table.n, 0);
}

static void test_many_labels_survive_growth(void **state)
{
        struct fd_table table = { 0 };
        int fds[100];
        (void)state;

        for (int i = 0; i < 100; i++) {
                char label[16];

                snprintf(label, sizeof(label), "%d", i);
                fds[i] = new_fd();
                assert_int_equal(fd_table_put(&table, label, fds[i]), 0);
        }
        assert_int_equal(fd_table_find(&table, "0"), fds[0]);
        assert_int_equal(fd_table_find(&table, "99"), fds[99]);
        fd_table_deinit(&table);
}

/* Every label is found again, whichever of its chain were dropped and moved meanwhile. */
static void test_what_is_left_is_found_while_others_go_and_come(void **state)
{
        CLEANUP(fd_table_deinit) struct fd_table table = { 0 };
        char label[16];
        int n = 0;
        (void)state;

        for (int i = 0; i < 5000; i++) {
                snprintf(label, sizeof(label), "%d", i % 1000);
                if (i % 7 < 3)
                        n -= fd_table_drop(&table, label) == 0;
                else {
                        n += fd_table_find(&table, label) < 0;
                        assert_int_equal(fd_table_put(&table, label, new_fd()), 0);
                        assert_true(fd_table_find(&table, label) >= 0);
                }
                assert_int_equal(table.n, n);
                for (size_t at = 0; i % 50 == 0 && at < table.n; at++)
                        assert_int_equal(fd_table_find(&table, table.entries[at].label),
                                         table.entries[at].fd);
        }
        while (table.n > 0)
                assert_int_equal(fd_table_drop(&table, table.entries[table.n / 2].label), 0);
}

/* As a guest with many pieces of memory has them; each with a search from end to end: minutes. */
static void test_the_labels_of_a_large_guest_are_found_at_once(void **state)
{
        CLEANUP(fd_table_deinit) struct fd_table table = { 0 };
        char label[FD_TABLE_LABEL_MAX];
        (void)state;

        assert_int_equal(fd_table_reserve(&table, 100000), 0);
        for (int i = 0; i < 100000; i++) {
                snprintf(label, sizeof(label), "memory/%d/7f%07x00000/200000", 123, i * 2);
                assert_int_equal(fd_table_put(&table, label, -1), 0);
        }
        for (int i = 0; i < 100000; i++) {
                snprintf(label, sizeof(label), "memory/%d/7f%07x00000/200000", 123, i * 2);
                assert_int_equal(fd_table_drop(&table, label), 0);
        }
        assert_int_equal(table.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_put_is_found_until_it_is_dropped),
                cmocka_unit_test(test_a_label_in_use_is_replaced_and_the_old_one_closed),
                cmocka_unit_test(test_nothing_of_a_former_label_is_behind_a_shorter_one),
                cmocka_unit_test(
                        test_a_label_that_is_too_long_leaves_the_descriptor_with_the_caller),
                cmocka_unit_test(test_many_labels_survive_growth),
                cmocka_unit_test(test_what_is_left_is_found_while_others_go_and_come),
                cmocka_unit_test(test_the_labels_of_a_large_guest_are_found_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
