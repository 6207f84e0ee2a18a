/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/attendant.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/operation.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);

/* Between two tries. */
#define AGAIN_NS 100000000

struct attendant {
        struct vgpu_client *client;
        const char *vgpu;
        sigset_t signals;
};

struct reaction {
        const char *what; /* of a message */
        int (*operate)(struct vgpu_client *client, const char *vgpu);
};

static int suspend(struct vgpu_client *client, const char *vgpu)
{
        return vgpu_operation_suspend(client, vgpu, NULL, NULL);
}

static int resume(struct vgpu_client *client, const char *vgpu)
{
        return vgpu_operation_resume(client, vgpu, NULL, NULL, NULL);
}

static const struct reaction leave = { "leave its GPU", suspend };
static const struct reaction come_back = { "come back to a GPU", resume };

/* Somebody else's operation is under way, the job that makes room has not left yet, or vgpud is started anew. */
static bool is_worth_another_try(enum vgpu_error_kind kind)
{
        return kind == VGPU_ERROR_BUSY || kind == VGPU_ERROR_NO_ROOM ||
               kind == VGPU_ERROR_NO_MANAGER || kind == VGPU_ERROR_CONNECTION_LOST;
}

/* Until it is done, or Slurm wants something else: the signal that came, or 0. */
static int react(const struct attendant *attendant, const struct reaction *reaction)
{
        const struct timespec pause = { .tv_nsec = AGAIN_NS };
        const struct vgpu_error *error;
        int number = 0;

        while (number <= 0 && reaction->operate(attendant->client, attendant->vgpu) < 0) {
                error = vgpu_client_get_error(attendant->client);
                if (error->kind == VGPU_ERROR_WRONG_STATE) /* it is so already */
                        return 0;
                if (!is_worth_another_try(error->kind)) {
                        fprintf(stderr, "vgpu: %s cannot %s: %s\n", attendant->vgpu, reaction->what,
                                error->message);
                        return 0;
                }
                number = sigtimedwait(&attendant->signals, NULL, &pause);
        }
        return number > 0 ? number : 0;
}

/* Of each signal one at most waits: what comes last is what counts. */
__attribute__((noreturn)) static void attend(const struct attendant *attendant)
{
        int number = 0;

        for (;;) {
                if (number == 0 && sigwait(&attendant->signals, &number) != 0)
                        _exit(1);
                number = react(attendant, number == SIGTSTP ? &leave : &come_back);
        }
}

/*
 * A child whose end is told by no signal: wait() does not know of it, so a program that waits for all of its
 * children does not wait for this one. Slurm finds it among the descendants of the step; a grandchild would
 * belong to init.
 */
static pid_t fork_unnoticed(void)
{
        return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

int attendant_start(const char *run_directory, const char *vgpu)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        struct attendant attendant = { .vgpu = vgpu };
        pid_t task = getpid(), pid;

        sigemptyset(&attendant.signals);
        sigaddset(&attendant.signals, SIGTSTP);
        sigaddset(&attendant.signals, SIGCONT);
        pid = fork_unnoticed();
        if (pid != 0)
                return pid < 0 ? -1 : 0;
        sigprocmask(SIG_SETMASK, &attendant.signals, NULL);
        (void)signal(SIGTSTP, SIG_DFL); /* one that is ignored does not wait either */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, "vgpu-attendant");
        if (getppid() != task || vgpu_client_new(&client, run_directory) < 0)
                _exit(0);
        attendant.client = client;
        attend(&attendant);
}
