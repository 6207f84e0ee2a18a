/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
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

/* Stopping and going on take a moment. */
static bool becomes_stopped(pid_t pid, bool is_stopped)
{
        for (int i = 0; i < 1000 && process_is_stopped(pid) != is_stopped; i++)
                usleep(10000);
        return process_is_stopped(pid) == is_stopped;
}

static void test_who_is_stopped(void **state)
{
        pid_t pid = start(0);

        (void)state;
        assert_false(process_is_stopped(pid));
        kill(pid, SIGSTOP);
        assert_true(becomes_stopped(pid, true));
        kill(pid, SIGCONT);
        assert_true(becomes_stopped(pid, false));
        kill(pid, SIGKILL);
        assert_true(becomes_stopped(pid, false));
        waitpid(pid, NULL, 0);
        assert_false(process_is_stopped(pid));
}

static void *sleep_on(void *argument)
{
        char word = 'y';

        if (write(*(int *)argument, &word, 1) != 1)
                _exit(1);
        for (;;)
                pause();
        return NULL;
}

/* A child whose first thread waits, or has ended, beside another one. */
static pid_t start_threads(bool ends)
{
        static int ready[2];
        pthread_t thread;
        char word;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (pthread_create(&thread, NULL, sleep_on, &ready[1]) != 0)
                        _exit(1);
                if (ends)
                        pthread_exit(NULL);
                for (;;)
                        pause();
        }
        assert_int_equal(read(ready[0], &word, 1), 1);
        close(ready[0]);
        close(ready[1]);
        return pid;
}

static void test_who_is_stopped_after_its_first_thread_has_ended(void **state)
{
        pid_t pid = start_threads(true);

        (void)state;
        assert_false(process_is_stopped(pid));
        kill(pid, SIGSTOP);
        assert_true(becomes_stopped(pid, true));
        end(pid);
}

/* By a debugger: what the others are asked they answer. */
static void test_who_has_one_thread_stopped_is_not(void **state)
{
        pid_t pid = start_threads(false);

        (void)state;
        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
                skip(); /* nobody may */
        assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, NULL, __WALL), pid);
        assert_false(process_is_stopped(pid));
        end(pid);
}

/* exec() keeps the number and the start time of a process. */
static void test_another_program_in_a_process_has_another_mark(void **state)
{
        uint64_t fork_mark, mark, same;
        int go[2], ready[2];
        char word;
        pid_t pid;

        (void)state;
        assert_int_equal(pipe(go), 0);
        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                dup2(go[0], STDIN_FILENO);
                dup2(ready[1], STDOUT_FILENO);
                if (read(STDIN_FILENO, &word, 1) == 1)
                        execl("/bin/sh", "sh", "-c", "echo; read word", NULL);
                _exit(1);
        }
        assert_int_equal(process_get_program(pid, &fork_mark), 0);
        assert_int_equal(process_get_program(pid, &same), 0);
        assert_int_equal(fork_mark, same);
        assert_int_equal(write(go[1], "", 1), 1);
        assert_int_equal(read(ready[0], &word, 1), 1);
        assert_int_equal(process_get_program(pid, &mark), 0);
        assert_int_not_equal(mark, fork_mark);
        end(pid);
        assert_int_equal(process_get_program(pid, &mark), -ESRCH);
}

static void check_name(const char *name, const char *shown)
{
        char got[PROCESS_NAME_MAX];
        int ready[2];
        char word;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                dup2(ready[1], STDOUT_FILENO);
                execl("/bin/sh", name, "-c", "echo; while :; do sleep 1; done", NULL);
                _exit(1);
        }
        assert_int_equal(read(ready[0], &word, 1), 1);
        process_get_name(pid, got);
        end(pid);
        assert_string_equal(got, shown);
}

static void test_a_name_is_shown_as_it_is_written(void **state)
{
        (void)state;
        check_name("/opt/训练-größe", "训练-größe");
        check_name("a\033[2Jb\177", "a?[2Jb?");
        check_name("\xc2\x9b"
                   "2J",
                   "??2J"); /* a control character in two bytes */
        check_name("\xff\xe4\xb8", "???");
        check_name("\xed\xa0\x80\xc0\x80", "?????");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parent_and_child_are_beside_each_other_until_one_is_gone),
                cmocka_unit_test(test_who_is_in_another_user_namespace_is_not),
                cmocka_unit_test(test_who_is_stopped),
                cmocka_unit_test(test_who_is_stopped_after_its_first_thread_has_ended),
                cmocka_unit_test(test_who_has_one_thread_stopped_is_not),
                cmocka_unit_test(test_a_name_is_shown_as_it_is_written),
                cmocka_unit_test(test_another_program_in_a_process_has_another_mark),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
