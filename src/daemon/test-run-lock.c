/* SPDX-License-Identifier: Apache-2.0 */
/* One manager a run directory; also right after one was killed. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "daemon/run-lock.h"

static char directory[] = "/tmp/test-lock-XXXXXX";

/* A manager that has the lock, and writes to @report as soon as it has. */
static pid_t start_holder(void (*then)(void), int *ret_report)
{
        struct failure failure = { 0 };
        int ends[2], lock;
        pid_t pid;

        assert_int_equal(pipe(ends), 0);
        pid = fork();
        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (run_lock_take(directory, &lock, &failure) < 0)
                        _exit(1);
                then();
                (void)!write(ends[1], "", 1);
                for (;;)
                        pause();
        }
        close(ends[1]);
        *ret_report = ends[0];
        return pid;
}

static void await_holder(int report)
{
        char byte;

        assert_int_equal(read(report, &byte, 1), 1);
}

static void kill_holder(pid_t pid)
{
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void do_nothing(void)
{
}

/* As between fork() and exec(): with all descriptors, but not for long. */
static void leave_a_child(void)
{
        if (fork() == 0) {
                usleep(200000);
                _exit(0);
        }
}

static void test_a_living_manager_is_named(void **state)
{
        struct failure failure = { 0 };
        char text[32];
        int report, lock;
        pid_t holder = start_holder(do_nothing, &report);

        (void)state;
        await_holder(report);
        assert_int_equal(run_lock_take(directory, &lock, &failure), -EBUSY);
        (void)snprintf(text, sizeof(text), "process %d", (int)holder);
        assert_non_null(strstr(failure.message, text));
        kill_holder(holder);
        close(report);
        assert_int_equal(run_lock_take(directory, &lock, &failure), 0);
        fd_close(lock);
}

static void test_what_a_killed_manager_has_just_started_is_waited_for(void **state)
{
        struct failure failure = { 0 };
        int report, lock;
        pid_t holder = start_holder(leave_a_child, &report);

        (void)state;
        await_holder(report);
        kill_holder(holder);
        assert_int_equal(run_lock_take(directory, &lock, &failure), 0);
        fd_close(lock);
        close(report);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_living_manager_is_named),
                cmocka_unit_test(test_what_a_killed_manager_has_just_started_is_waited_for),
        };
        char path[64];
        int failed;

        if (!mkdtemp(directory))
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)snprintf(path, sizeof(path), "%s/vgpud.pid", directory);
        (void)unlink(path);
        (void)rmdir(directory);
        return failed;
}
