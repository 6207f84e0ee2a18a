/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openvgpu.so, a SPANK plugin of Slurm: 'srun --vgpu=20G:share=25' runs a job step in a vGPU of its own.
 *
 * slurmstepd makes it before it starts tasks, as root, for the job's user, and it is gone with slurmstepd,
 * however that ends. What a guest needs goes into the environment of the tasks.
 *
 * When Slurm suspends a job, it sends SIGTSTP to all its processes, SIGSTOP some two seconds later, and at the
 * end SIGCONT. A process that stands still cannot leave its device. So tasks ignore SIGTSTP, and a
 * process beside them, the attendant, takes it as the notice that it is: it suspends the vGPU, and resumes
 * it after SIGCONT. docs/slurm.md
 */
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/guest.h>
#include <openvgpu/instance.h>
#include <openvgpu/operation.h>

#include "base/cleanup.h"
#include "base/size.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(openvgpu, 1)

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);
DEFINE_CLEANUP(char **, vgpu_guest_environment_free);

static struct {
        bool is_given;
        uint64_t frame_buffer;
        uint32_t share;
} wanted;

static char vgpu_name[64];
static char problem[1024];        /* why there is no vGPU, or "" */
static const char *run_directory; /* run=DIR in plugstack.conf; NULL: the usual one */

/* The option. */

static int parse_share(const char *text)
{
        char *end;
        unsigned long share = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || *end || share < 1 || share > 100)
                return -EINVAL;
        wanted.share = (uint32_t)share;
        return 0;
}

/* SIZE[:share=PERCENT] */
static int parse(const char *text)
{
        char copy[64], *share;

        if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
                return -EINVAL;
        share = strchr(copy, ':');
        if (share)
                *share++ = '\0';
        if (size_parse(&wanted.frame_buffer, copy) < 0 || wanted.frame_buffer == 0)
                return -EINVAL;
        if (!share)
                return 0;
        return strncmp(share, "share=", 6) == 0 ? parse_share(share + 6) : -EINVAL;
}

static int on_option(int value, const char *argument, int is_remote)
{
        (void)value, (void)is_remote;
        if (!argument || parse(argument) < 0) {
                slurm_error("--vgpu: '%s' is not a size, as 20G, or a size and a share, as "
                            "20G:share=25",
                            argument ? argument : "");
                return -1;
        }
        wanted.is_given = true;
        return 0;
}

/* Slurm's struct has no const. */
static char option_name[] = "vgpu";
static char option_argument[] = "SIZE[:share=PERCENT]";
static char option_usage[] =
        "run each step in a vGPU with so much GPU memory, and a share of its time";

static struct spank_option option = {
        .name = option_name,
        .arginfo = option_argument,
        .usage = option_usage,
        .has_arg = 1,
        .cb = on_option,
};

EXPORT int slurm_spank_init(spank_t spank, int n_arguments, char **arguments)
{
        for (int i = 0; i < n_arguments; i++)
                if (strncmp(arguments[i], "run=", 4) == 0)
                        run_directory = strdup(arguments[i] + 4);
        return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* The vGPU. */

/* slurmstepd has no connection to the user's terminal yet: the first task says it, whose standard error has. */
static int complain(const struct vgpu_client *client, const char *what)
{
        const struct vgpu_error *error = vgpu_client_get_error(client);

        snprintf(problem, sizeof(problem), "%s: %s%s%s", what, error->message,
                 error->hint[0] ? "; " : "", error->hint);
        slurm_error("--vgpu: %s", problem);
        return -1;
}

static void set_name(spank_t spank)
{
        uint32_t job = 0, step = 0;

        (void)spank_get_item(spank, S_JOB_ID, &job);
        (void)spank_get_item(spank, S_JOB_STEPID, &step);
        if (step == SLURM_BATCH_SCRIPT)
                snprintf(vgpu_name, sizeof(vgpu_name), "job-%u-batch", job);
        else if (step == SLURM_INTERACTIVE_STEP)
                snprintf(vgpu_name, sizeof(vgpu_name), "job-%u-interactive", job);
        else
                snprintf(vgpu_name, sizeof(vgpu_name), "job-%u-%u", job, step);
}

static int create(spank_t spank, struct vgpu_client *client)
{
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        uid_t user = 0;

        (void)spank_get_item(spank, S_JOB_UID, &user);
        set_name(spank);
        options.name = vgpu_name;
        options.frame_buffer = wanted.frame_buffer;
        options.share = wanted.share;
        options.is_transient = true;
        options.has_owner = user != geteuid();
        options.owner = user;
        if (vgpu_instance_create(client, &options, &instance) == 0)
                return 0;
        vgpu_name[0] = '\0'; /* one of that name is somebody else's */
        return complain(client, "no vGPU for this step");
}

/* The environment of the tasks becomes that of a guest. */
static int set_environment(spank_t spank, struct vgpu_client *client)
{
        CLEANUP(vgpu_guest_environment_freep) char **environment = NULL;
        char **before = NULL;

        if (spank_get_item(spank, S_JOB_ENV, &before) != ESPANK_SUCCESS || !before)
                return -1;
        if (vgpu_guest_prepare(client, vgpu_name, before, &environment) < 0)
                return complain(client, vgpu_name);
        for (char **one = environment; *one; one++) {
                char *value = strchr(*one, '=');

                if (!value)
                        continue;
                *value++ = '\0';
                if (spank_setenv(spank, *one, value, 1) != ESPANK_SUCCESS)
                        return -1;
        }
        return 0;
}

static bool is_for_tasks(spank_t spank)
{
        uint32_t step = 0;

        return wanted.is_given && spank_remote(spank) == 1 &&
               spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
               step != SLURM_EXTERN_CONT;
}

EXPORT int slurm_spank_init_post_opt(spank_t spank, int n_arguments, char **arguments)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        int r;

        (void)n_arguments, (void)arguments;
        if (!is_for_tasks(spank))
                return 0;
        r = vgpu_client_new(&client, run_directory);
        if (r == 0)
                r = create(spank, client);
        if (r == 0)
                r = set_environment(spank, client);
        return r < 0 && !problem[0] ? -1 : 0; /* else the tasks fail */
}

EXPORT int slurm_spank_exit(spank_t spank, int n_arguments, char **arguments)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;

        (void)n_arguments, (void)arguments;
        if (vgpu_name[0] && spank_remote(spank) == 1 &&
            vgpu_client_new(&client, run_directory) == 0)
                (void)vgpu_instance_remove(client, vgpu_name,
                                           NULL); /* else it goes a moment later */
        return 0;
}

/* The attendant. */

static void report(const struct vgpu_client *client, const char *what)
{
        fprintf(stderr, "vgpu: %s cannot %s: %s\n", vgpu_name, what,
                vgpu_client_get_error(client)->message);
}

/* While somebody else's operation is under way. */
#define BUSY_NS 100000000

static int suspend(struct vgpu_client *client)
{
        return vgpu_operation_suspend(client, vgpu_name, NULL, NULL);
}

static int resume(struct vgpu_client *client)
{
        return vgpu_operation_resume(client, vgpu_name, NULL, NULL, NULL);
}

/* Until it is done, or Slurm wants something else: the signal that came, or 0. */
static int operate(struct vgpu_client *client, int (*operation)(struct vgpu_client *),
                   const char *what, const sigset_t *signals)
{
        const struct timespec pause = { .tv_nsec = BUSY_NS };
        enum vgpu_error_kind kind;
        int number = 0;

        while (number <= 0 && operation(client) < 0) {
                kind = vgpu_client_get_error(client)->kind;
                if (kind == VGPU_ERROR_WRONG_STATE && operation == resume)
                        return 0;
                if (kind != VGPU_ERROR_BUSY) {
                        report(client, what);
                        return 0;
                }
                number = sigtimedwait(signals, NULL, &pause);
        }
        return number > 0 ? number : 0;
}

/* Of each signal one at most waits: what comes last is what counts. */
__attribute__((noreturn)) static void attend(struct vgpu_client *client, const sigset_t *signals)
{
        int number = 0;

        for (;;) {
                if (number == 0 && sigwait(signals, &number) != 0)
                        _exit(1);
                if (number == SIGTSTP)
                        number = operate(client, suspend, "leave its GPU", signals);
                else
                        number = operate(client, resume, "come back to a GPU", signals);
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

/* As a child of the first task, whose processes Slurm signals; it goes with that task. */
static int start_attendant(void)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        sigset_t signals;
        pid_t task = getpid(), pid;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTSTP);
        sigaddset(&signals, SIGCONT);
        pid = fork_unnoticed();
        if (pid != 0)
                return pid < 0 ? -1 : 0;
        sigprocmask(SIG_SETMASK, &signals, NULL);
        (void)signal(SIGTSTP, SIG_DFL); /* one that is ignored does not wait either */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, "vgpu-attendant");
        if (getppid() != task || vgpu_client_new(&client, run_directory) < 0)
                _exit(0);
        attend(client, &signals);
}

EXPORT int slurm_spank_task_init(spank_t spank, int n_arguments, char **arguments)
{
        int task = -1;

        (void)n_arguments, (void)arguments;
        if (!is_for_tasks(spank))
                return 0;
        (void)spank_get_item(spank, S_TASK_ID, &task);
        if (problem[0] && task == 0)
                fprintf(stderr, "srun: --vgpu: %s\n", problem);
        if (problem[0])
                return -1;
        (void)signal(SIGTSTP, SIG_IGN);
        return task == 0 ? start_attendant() : 0;
}
