/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: where a process is, and moving it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/control-group.h"
#include "base/test.h"

static void test_a_folder_is_within_itself_and_what_is_above(void **state)
{
        (void)state;
        assert_true(control_group_is_within("/a/b", "/a/b"));
        assert_true(control_group_is_within("/a/b/c", "/a/b"));
        assert_true(control_group_is_within("/a/b", "/"));
        assert_false(control_group_is_within("/a/bc", "/a/b"));
        assert_false(control_group_is_within("/a", "/a/b"));
}

static void test_what_a_folder_lists_is_in_it(void **state)
{
        char folder[] = "/tmp/test-group-XXXXXX", file[64];

        (void)state;
        assert_non_null(mkdtemp(folder));
        assert_false(control_group_has(folder, 0));
        assert_int_equal(control_group_move(folder, 1), 0);
        assert_false(control_group_has(folder, 0));
        assert_true(control_group_has(folder, 1));
        assert_int_equal(control_group_move(folder, getpid()), 0);
        assert_true(control_group_has(folder, 0));
        assert_true(control_group_has(folder, 1));
        snprintf(file, sizeof(file), "%s/cgroup.procs", folder);
        assert_int_equal(unlink(file), 0);
        assert_int_equal(rmdir(folder), 0);
}

/* In a child, so that the test itself stays where it is. */
static int try_real(const char *group)
{
        char path[CONTROL_GROUP_MAX];
        int status = 0;
        pid_t child = fork();

        if (child == 0) {
                if (control_group_move(group, getpid()) < 0 || !control_group_find(path, 0))
                        _exit(1);
                _exit(strcmp(path, group) == 0 && control_group_has(group, 0) ? 0 : 2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        return status;
}

static void test_the_kernels_own(void **state)
{
        char own[CONTROL_GROUP_MAX], group[CONTROL_GROUP_MAX + 32];
        int status;

        (void)state;
        if (!control_group_find(own, 0)) {
                print_message("skipped: this process has no control group of the second version\n");
                skip();
        }
        snprintf(group, sizeof(group), "%.200s/test-group-%d", own, (int)getpid());
        if (mkdir(group, 0755) < 0) {
                print_message("skipped: no control group can be made in %s\n", own);
                skip();
        }
        status = try_real(group);
        assert_int_equal(rmdir(group), 0);
        assert_int_equal(status, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_folder_is_within_itself_and_what_is_above),
                cmocka_unit_test(test_what_a_folder_lists_is_in_it),
                cmocka_unit_test(test_the_kernels_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
