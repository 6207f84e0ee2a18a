/* SPDX-License-Identifier: Apache-2.0 */
/* Fault points that are armed by a file while the process runs. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/test.h"

static char directory[] = "/tmp/test-fault-XXXXXX";

static void make_with(const char *name, const char *text)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void make(const char *name)
{
        make_with(name, "");
}

static bool exists(const char *name)
{
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        return access(path, F_OK) == 0;
}

static int remove_one(const char *name)
{
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        return unlink(path);
}

static void test_a_file_arms_a_point_once(void **state)
{
        (void)state;
        assert_false(fault_point("here"));
        make("here=fail");
        assert_false(fault_point("there"));
        assert_true(exists("here=fail"));
        assert_true(fault_point("here"));
        assert_false(exists("here=fail"));
        assert_false(fault_point("here"));
}

static void test_of_two_processes_one_takes_the_action(void **state)
{
        int status;
        pid_t child;

        (void)state;
        make("here=kill");
        child = fork();
        if (child == 0) {
                (void)fault_point("here");
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_false(fault_point("here"));
}

static void test_a_file_can_count_passes(void **state)
{
        (void)state;
        make_with("here=fail", "3");
        assert_false(fault_point("here"));
        assert_false(fault_point("here"));
        assert_true(fault_point("here"));
        assert_false(exists("here=fail"));
        assert_false(fault_point("here"));
}

static void test_a_file_can_say_from_then_on(void **state)
{
        (void)state;
        make_with("here=fail", "11+");
        for (int i = 1; i < 11; i++)
                assert_false(fault_point("here"));
        assert_true(fault_point("here"));
        assert_true(fault_point("here"));
        assert_int_equal(remove_one("here=fail"), 0);
        assert_false(fault_point("here"));
}

static void test_a_file_can_mean_one_of_several(void **state)
{
        (void)state;
        make("here@other=fail");
        make("here@this=fail");
        assert_true(fault_point("here"));
        assert_false(exists("here@this=fail"));
        assert_false(fault_point("here"));
        assert_true(exists("here@other=fail"));
        assert_int_equal(remove_one("here@other=fail"), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_file_arms_a_point_once),
                cmocka_unit_test(test_of_two_processes_one_takes_the_action),
                cmocka_unit_test(test_a_file_can_count_passes),
                cmocka_unit_test(test_a_file_can_say_from_then_on),
                cmocka_unit_test(test_a_file_can_mean_one_of_several),
        };
        int failed;

        if (!mkdtemp(directory) || setenv("OPENVGPU_FAULT_DIR", directory, 1) < 0 ||
            setenv("OPENVGPU_FAULT_OF", "this", 1) < 0)
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)rmdir(directory);
        return failed;
}
