/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "daemon/process.h"

/* A child that has gone its way and waits to be killed; -1: it may not go there. */
static pid_t start(int namespaces)
{
        int ready[2];
        char word = 0;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                word = namespaces == 0 || unshare(namespaces) == 0 ? 'y' : 'n';
                if (write(ready[1], &word, 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        assert_int_equal(read(ready[0], &word, 1), 1);
        close(ready[0]);
        close(ready[1]);
        if (word == 'y')
                return pid;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static void test_parent_and_child_are_beside_each_other_until_one_is_gone(void **state)
{
        pid_t pid = start(0);

        (void)state;
        assert_true(process_is_beside(pid, getpid()));
        assert_true(process_is_beside(getpid(), pid));
        end(pid);
        assert_false(process_is_beside(pid, getpid()));
        assert_false(process_is_beside(getpid(), pid));
}

static void test_who_is_in_another_user_namespace_is_not(void **state)
{
        pid_t pid = start(CLONE_NEWUSER);

        (void)state;
        if (pid < 0)
                skip(); /* the kernel, or who confines us, permits none */
        assert_false(process_is_beside(pid, getpid()));
        assert_false(process_is_beside(getpid(), pid));
        end(pid);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parent_and_child_are_beside_each_other_until_one_is_gone),
                cmocka_unit_test(test_who_is_in_another_user_namespace_is_not),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
