/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/sentry.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A child of slurmstepd, as tasks are: proctrack/cgroup of Slurm sends SIGTSTP and SIGCONT to no others. Made by a task,
 * because what slurmstepd itself starts is not in the job's control group.
 */
static pid_t fork_sibling(void)
{
        return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* What slurmstepd waits for the end of, as standard output, is not to be held open. */
static int keep_only(int pipe)
{
        if (pipe != 0 && dup2(pipe, 0) < 0)
                return -1;
        return (int)syscall(SYS_close_range, 1, ~0U, 0);
}

static void notify(int number)
{
        const struct sentry_notice notice = { .signal = number, .pid = getpid() };

        if (write(0, &notice, sizeof(notice)) !=
            sizeof(notice)) /* or SIGPIPE: nobody is interested */
                _exit(0);
}

__attribute__((noreturn)) static void watch(const sigset_t *signals)
{
        int number = 0;

        for (;;) {
                notify(number);
                if (sigwait(signals, &number) != 0)
                        _exit(1);
        }
}

int sentry_start(int pipe)
{
        sigset_t signals;
        pid_t pid;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTSTP);
        sigaddset(&signals, SIGCONT);
        pid = fork_sibling();
        if (pid != 0)
                return pid < 0 ? -1 : 0;
        sigprocmask(SIG_SETMASK, &signals, NULL);
        (void)signal(SIGTSTP, SIG_DFL); /* one that is ignored does not wait either */
        (void)signal(SIGPIPE, SIG_DFL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* with slurmstepd */
        (void)prctl(PR_SET_NAME, "vgpu-sentry");
        if (keep_only(pipe) < 0)
                _exit(1);
        watch(&signals);
}
