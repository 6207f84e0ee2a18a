/* SPDX-License-Identifier: Apache-2.0 */
/* Who is frozen, in folders that stand for control groups. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/freezer.h"
#include "base/test.h"

static char top[] = "/tmp/test-freezer-XXXXXX";
static char groups[64], first[64], second[64];

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void make_group(const char *mount, const char *group, const char *state)
{
        char path[128];

        snprintf(path, sizeof(path), "%s%s", mount, group);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s%s/%s", mount, group, state);
        write_file(path, "0\n");
}

static void freeze(const char *mount, const char *file, const char *text)
{
        char path[128];

        snprintf(path, sizeof(path), "%s%s", mount, file);
        write_file(path, text);
}

static int set_up(void **state)
{
        (void)state;
        assert_non_null(mkdtemp(top));
        snprintf(groups, sizeof(groups), "%s/groups", top);
        snprintf(first, sizeof(first), "%s/first", top);
        snprintf(second, sizeof(second), "%s/second", top);
        assert_int_equal(mkdir(first, 0700), 0);
        assert_int_equal(mkdir(second, 0700), 0);
        make_group(first, "/a", "freezer.self_freezing");
        make_group(first, "/a/b", "freezer.self_freezing");
        make_group(second, "/c", "cgroup.freeze");
        make_group(second, "/c/d", "cgroup.freeze");
        write_file(groups, "8:pids:/\n6:freezer:/a/b\n1:name=systemd:/c\n0::/c/d\n");
        return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
        (void)status, (void)type, (void)ftw;
        return remove(path);
}

static int tear_down(void **state)
{
        (void)state;
        assert_int_equal(nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        memcpy(top + strlen(top) - 6, "XXXXXX", 6);
        return 0;
}

static const struct freezer *find(char folder[PATH_MAX])
{
        return freezer_find_at(groups, first, second, folder);
}

static void test_one_in_groups_that_run_is_not_frozen(void **state)
{
        char folder[PATH_MAX];

        (void)state;
        assert_null(find(folder));
        freeze(second, "/c/cgroup.freeze", "0\n");
        assert_null(find(folder));
}

static void test_its_group_of_the_first_version_freezes_it(void **state)
{
        char folder[PATH_MAX];

        (void)state;
        freeze(first, "/a/b/freezer.self_freezing", "1\n");
        assert_string_equal(find(folder)->thaw, "THAWED");
        assert_string_equal(folder + strlen(first), "/a/b");
}

static void test_its_group_of_the_second_version_freezes_it(void **state)
{
        char folder[PATH_MAX];

        (void)state;
        freeze(second, "/c/d/cgroup.freeze", "1\n");
        assert_string_equal(find(folder)->control, "cgroup.freeze");
        assert_string_equal(folder + strlen(second), "/c/d");
}

static void test_a_group_above_freezes_it(void **state)
{
        char folder[PATH_MAX];

        (void)state;
        freeze(first, "/a/freezer.self_freezing", "1\n");
        assert_non_null(find(folder));
        assert_string_equal(folder + strlen(first), "/a");
        freeze(first, "/a/freezer.self_freezing", "0\n");
        freeze(second, "/c/cgroup.freeze", "1\n");
        assert_non_null(find(folder));
        assert_string_equal(folder + strlen(second), "/c");
}

static void test_one_that_has_ended_is_not_frozen(void **state)
{
        char folder[PATH_MAX];

        (void)state;
        freeze(second, "/c/d/cgroup.freeze", "1\n");
        assert_int_equal(unlink(groups), 0);
        assert_null(find(folder));
}

static void test_this_very_process_runs(void **state)
{
        char folder[PATH_MAX];

        (void)state;
        assert_null(freezer_find(getpid(), folder));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(test_one_in_groups_that_run_is_not_frozen),
                TEST(test_its_group_of_the_first_version_freezes_it),
                TEST(test_its_group_of_the_second_version_freezes_it),
                TEST(test_a_group_above_freezes_it),
                TEST(test_one_that_has_ended_is_not_frozen),
                TEST(test_this_very_process_runs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
