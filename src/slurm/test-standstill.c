/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process-stat.h"
#include "base/test.h"
#include "slurm/standstill.h"

#define PATIENCE 300 /* tenths of a second */

/* The job's processes do nothing; they end with the test. */
static pid_t start(void)
{
        pid_t pid = fork();

        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void)pause();
        }
        assert_true(pid > 0);
        return pid;
}

static void end(pid_t pid)
{
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool is_stopped(pid_t pid)
{
        struct process_stat stat;

        assert_int_equal(process_stat_read(&stat, pid), 0);
        return stat.state == 'T';
}

static void wait_until(bool (*is)(pid_t pid), pid_t pid, bool wanted)
{
        const struct timespec tenth = { .tv_nsec = 100000000 };

        for (int i = 0; i < PATIENCE && is(pid) != wanted; i++)
                (void)nanosleep(&tenth, NULL);
        assert_int_equal(is(pid), wanted);
}

static void test_a_stopped_process_runs_for_a_while(void **state)
{
        struct standstill standstill = { .job = 7, .user = getuid() };
        pid_t pid = start();

        (void)state;
        (void)kill(pid, SIGSTOP);
        wait_until(is_stopped, pid, true);
        assert_true(standstill_has_begun(pid));
        standstill_lift(&standstill, pid);
        wait_until(is_stopped, pid, false);
        standstill_restore(&standstill);
        wait_until(is_stopped, pid, true);
        standstill_end(&standstill);
        wait_until(is_stopped, pid, false);
        assert_int_equal(standstill.n, 0);
        end(pid);
}

static void test_a_process_that_slurm_stops_again_runs_again(void **state)
{
        struct standstill standstill = { .job = 7, .user = getuid() };
        pid_t pid = start();

        (void)state;
        for (int i = 0; i < 40; i++) {
                (void)kill(pid, SIGSTOP);
                wait_until(is_stopped, pid, true);
                standstill_lift(&standstill, pid);
                wait_until(is_stopped, pid, false);
        }
        standstill_end(&standstill);
        end(pid);
}

static void test_a_process_of_another_user_is_left_alone(void **state)
{
        struct standstill standstill = { .job = 7, .user = getuid() + 1 };
        pid_t pid = start();

        (void)state;
        (void)kill(pid, SIGSTOP);
        wait_until(is_stopped, pid, true);
        standstill_lift(&standstill, pid);
        assert_int_equal(standstill.n, 0);
        assert_true(is_stopped(pid));
        end(pid);
}

/* Control groups of version 2, in a mount namespace of our own. */

#define STEP "/sys/fs/cgroup/openvgpu-test/job_7/step_0/user"

static void put(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void make_groups(void)
{
        static const char *const folders[] = { "/sys/fs/cgroup/openvgpu-test",
                                               "/sys/fs/cgroup/openvgpu-test/job_7",
                                               "/sys/fs/cgroup/openvgpu-test/job_7/step_0", STEP,
                                               STEP "/task_0" };

        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
                (void)mkdir(folders[i], 0755);
}

static int mount_groups(void **state)
{
        (void)state;
        if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL) < 0)
                return 0;
        make_groups();
        return 0;
}

static int remove_groups(void **state)
{
        (void)state;
        (void)rmdir(STEP "/task_0");
        (void)rmdir(STEP);
        (void)rmdir("/sys/fs/cgroup/openvgpu-test/job_7/step_0");
        (void)rmdir("/sys/fs/cgroup/openvgpu-test/job_7");
        (void)rmdir("/sys/fs/cgroup/openvgpu-test");
        return 0;
}

static pid_t start_in_group(void)
{
        pid_t pid = start();
        char text[16];

        snprintf(text, sizeof(text), "%d", (int)pid);
        put(STEP "/task_0/cgroup.procs", text);
        return pid;
}

static void test_out_of_a_frozen_group_one_runs_and_the_others_are_stopped(void **state)
{
        struct standstill standstill = { .job = 7, .user = getuid() };
        pid_t guest, other, sentry;

        (void)state;
        if (access(STEP "/task_0/cgroup.procs", W_OK) < 0)
                skip();
        guest = start_in_group(), other = start_in_group(), sentry = start_in_group();
        put(STEP "/cgroup.freeze", "1");
        wait_until(standstill_has_begun, guest, true);
        standstill.sentry = sentry;
        standstill_lift(&standstill, guest);
        wait_until(is_stopped, other, true);
        assert_false(standstill_has_begun(guest));
        assert_false(standstill_has_begun(sentry));
        standstill_restore(&standstill);
        wait_until(is_stopped, guest, true);
        standstill_end(&standstill);
        wait_until(is_stopped, guest, false);
        wait_until(is_stopped, other, false);
        end(guest), end(other), end(sentry);
}

static void test_a_frozen_group_of_another_job_is_left_alone(void **state)
{
        struct standstill standstill = { .job = 8, .user = getuid() };
        pid_t pid;

        (void)state;
        if (access(STEP "/task_0/cgroup.procs", W_OK) < 0)
                skip();
        pid = start_in_group();
        put(STEP "/cgroup.freeze", "1");
        wait_until(standstill_has_begun, pid, true);
        standstill_lift(&standstill, pid);
        assert_true(standstill_has_begun(pid));
        put(STEP "/cgroup.freeze", "0");
        end(pid);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stopped_process_runs_for_a_while),
                cmocka_unit_test(test_a_process_that_slurm_stops_again_runs_again),
                cmocka_unit_test(test_a_process_of_another_user_is_left_alone),
                cmocka_unit_test(test_out_of_a_frozen_group_one_runs_and_the_others_are_stopped),
                cmocka_unit_test(test_a_frozen_group_of_another_job_is_left_alone),
        };

        return cmocka_run_group_tests(tests, mount_groups, remove_groups);
}
