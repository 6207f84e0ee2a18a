/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openvgpu-slurm.so, a SPANK plugin of Slurm: 'srun --vgpu=20G:share=25' runs a job step in a vGPU of its own.
 *
 * slurmstepd makes it before it starts tasks, as root, for the job's user, and it is gone with slurmstepd,
 * however that ends. What a guest needs goes into the environment of the tasks.
 *
 * When Slurm suspends a job, it sends SIGTSTP to its processes, stops or freezes them some two seconds later, and sends
 * SIGCONT at the end. Tasks ignore SIGTSTP. A process beside them, the sentry, takes it as the notice that it is,
 * and tells threads of slurmstepd, the attendant, which are not stopped: they suspend the vGPUs, and resume them after
 * SIGCONT. docs/slurm.md
 */
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openvgpu/guest.h>
#include <openvgpu/instance.h>

#include "base/cleanup.h"
#include "slurm/attendant.h"
#include "slurm/option.h"
#include "slurm/room.h"
#include "slurm/sentry.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const char plugin_name[], plugin_type[];
EXPORT extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(openvgpu, 1)

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);
DEFINE_CLEANUP(char **, vgpu_guest_environment_free);

/* Of all tasks of the step on this node; or each of one task. */
struct step_vgpu {
        char name[64];
        char **environment; /* what tasks get of it; NULL-terminated */
};

static struct step_vgpu *vgpus;
static uint32_t n_vgpus;          /* that there are */
static bool is_joined;            /* it is that of the job's script, which looks after it */
static char problem[1024];        /* why one is missing, or "" */
static int sentry_pipe = -1;      /* to the attendant */
static const char *run_directory; /* run=DIR in plugstack.conf; NULL: the usual one */
static struct room_wait room_wait = { .seconds_max = ROOM_SECONDS_MAX }; /* wait=SECONDS in it */

static int set_wait(const char *text)
{
        char *end;
        unsigned long seconds = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || *end || seconds > UINT32_MAX) {
                slurm_error("plugstack.conf: openvgpu-slurm.so: wait=%s is no number of seconds",
                            text);
                return -1;
        }
        room_wait.seconds_max = (uint32_t)seconds;
        return 0;
}

EXPORT int slurm_spank_init(spank_t spank, int n_arguments, char **arguments)
{
        for (int i = 0; i < n_arguments; i++) {
                if (strncmp(arguments[i], "run=", 4) == 0)
                        run_directory = strdup(arguments[i] + 4);
                else if (strncmp(arguments[i], "wait=", 5) == 0 && set_wait(arguments[i] + 5) < 0)
                        return -1;
        }
        return option_register_all(spank) ? 0 : -1;
}

/* slurmstepd has no connection to the user's terminal yet: the first task says it, whose standard error has. */
static int complain(const struct vgpu_client *client, const char *what)
{
        const struct vgpu_error *error = vgpu_client_get_error(client);

        snprintf(problem, sizeof(problem), "%s: %s%s%s", what, error->message,
                 error->hint[0] ? "; " : "", error->hint);
        slurm_error("--vgpu: %s", problem);
        return -1;
}

/* job-JOB-STEP, or job-JOB-STEP-TASK with the number that the task has in the whole step. */
static void set_name(spank_t spank, uint32_t local_task, char name[64])
{
        uint32_t job = 0, step = 0, task = 0;
        char text[24], suffix[16] = "";

        (void)spank_get_item(spank, S_JOB_ID, &job);
        (void)spank_get_item(spank, S_JOB_STEPID, &step);
        if (option_get()->is_per_task &&
            spank_get_item(spank, S_JOB_LOCAL_TO_GLOBAL_ID, local_task, &task) == ESPANK_SUCCESS)
                snprintf(suffix, sizeof(suffix), "-%u", task);
        if (step == SLURM_BATCH_SCRIPT)
                snprintf(text, sizeof(text), "batch");
        else if (step == SLURM_INTERACTIVE_STEP)
                snprintf(text, sizeof(text), "interactive");
        else
                snprintf(text, sizeof(text), "%u", step);
        snprintf(name, 64, "job-%u-%s%s", job, text, suffix);
}

/* vGPUs. */

static int create(spank_t spank, struct vgpu_client *client, const char *name)
{
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        uid_t user = 0;
        int r;

        (void)spank_get_item(spank, S_JOB_UID, &user);
        options.name = name;
        options.frame_buffer = option_get()->frame_buffer;
        options.share = option_get()->share;
        options.swap_class = option_get()->swap_class;
        options.is_transient = true;
        options.has_owner = user != geteuid();
        options.owner = user;
        (void)spank_get_item(spank, S_JOB_ID, &room_wait.job);
        r = room_create(client, &options, &room_wait);
        return r < 0 ? complain(client, "no vGPU for this step") : 0;
}

static bool has(char *const *environment, const char *variable)
{
        while (*environment && strcmp(*environment, variable) != 0)
                environment++;
        return *environment;
}

/* What a guest has and the step does not; all else Slurm may still change for each task. */
static int prepare(spank_t spank, struct vgpu_client *client, struct step_vgpu *vgpu)
{
        char **before = NULL, **kept, **all;

        if (spank_get_item(spank, S_JOB_ENV, &before) != ESPANK_SUCCESS || !before)
                return -1;
        if (vgpu_guest_prepare(client, vgpu->name, before, &vgpu->environment) < 0)
                return complain(client, vgpu->name);
        kept = vgpu->environment;
        for (all = vgpu->environment; *all; all++)
                if (has(before, *all))
                        free(*all);
                else
                        *kept++ = *all;
        *kept = NULL;
        return 0;
}

/*
 * Joining. A script's '#SBATCH --vgpu' is handed on to each srun in it, by its environment. Such a step runs in the vGPU of
 * the script, or the job had twice what it asked for. A step for which the user gave the option has its own.
 */

#define OWN "OPENVGPU_SLURM_STEP=own" /* set by srun */

static const char *find_value(char *const *environment, const char *variable)
{
        size_t length = strlen(variable);

        for (; *environment; environment++)
                if (strncmp(*environment, variable, length) == 0)
                        return *environment + length;
        return "";
}

/* Is the vGPU that the script of this job runs in on this node? The step's is not yet in its environment. */
static bool find_vgpu_of_script(spank_t spank, struct vgpu_client *client, char name[64])
{
        static const char *const scripts[] = { "batch", "interactive" };
        char **environment = NULL;
        uint32_t job = 0;

        if (option_get()->is_per_task ||
            spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || !environment ||
            has(environment, OWN))
                return false;
        (void)spank_get_item(spank, S_JOB_ID, &job);
        for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
                CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;

                snprintf(name, 64, "job-%u-%s", job, scripts[i]);
                if (vgpu_instance_lookup(client, name, &instance) == 0 &&
                    strcmp(instance->uuid, find_value(environment, "OPENVGPU_VGPU=")) == 0)
                        return true;
        }
        return false;
}

static int make_all(spank_t spank, struct vgpu_client *client)
{
        uint32_t n = 1;
        int r = 0;

        if (option_get()->is_per_task &&
            spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &n) != ESPANK_SUCCESS)
                return -1;
        vgpus = calloc(n, sizeof(*vgpus));
        if (!vgpus)
                return -1;
        is_joined = find_vgpu_of_script(spank, client, vgpus[0].name);
        if (is_joined)
                return prepare(spank, client, &vgpus[0]);
        for (uint32_t i = 0; r == 0 && i < n; i++) {
                set_name(spank, i, vgpus[i].name);
                r = create(spank, client, vgpus[i].name);
                if (r < 0) /* one of that name is somebody else's */
                        return r;
                n_vgpus++;
                r = prepare(spank, client, &vgpus[i]);
        }
        return r;
}

static int attend(spank_t spank)
{
        static struct attendant_step step; /* until slurmstepd ends */
        const char **names = calloc(n_vgpus, sizeof(*names));

        if (!names)
                return -1;
        for (uint32_t i = 0; i < n_vgpus; i++)
                names[i] = vgpus[i].name;
        step.run_directory = run_directory;
        step.vgpus = names;
        step.n_vgpus = n_vgpus;
        (void)spank_get_item(spank, S_JOB_ID, &step.job);
        (void)spank_get_item(spank, S_JOB_UID, &step.user);
        sentry_pipe = attendant_start(&step);
        return sentry_pipe < 0 ? -1 : 0;
}

/* At the terminal, before anything is asked of nodes. */
static int check_options(spank_t spank)
{
        static char own[] = OWN;

        if (spank_context() == S_CTX_LOCAL && option_get()->is_own)
                (void)putenv(own);
        if (spank_remote(spank) == 1 || !option_get()->is_per_task || option_get()->is_given)
                return 0;
        slurm_error("--vgpu-per-task: of what size? Give --vgpu=SIZE as well");
        return -1;
}

static bool is_script(spank_t spank)
{
        uint32_t step = 0;

        return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
               step == SLURM_BATCH_SCRIPT;
}

static bool is_for_tasks(spank_t spank)
{
        uint32_t step = 0;

        return option_get()->is_given && spank_remote(spank) == 1 &&
               spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
               step != SLURM_EXTERN_CONT;
}

EXPORT int slurm_spank_init_post_opt(spank_t spank, int n_arguments, char **arguments)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        int r;

        (void)n_arguments, (void)arguments;
        if (!is_for_tasks(spank))
                return check_options(spank);
        r = vgpu_client_new(&client, run_directory);
        if (r == 0)
                r = make_all(spank, client);
        if (r == 0 && !is_joined)
                r = attend(spank);
        return r < 0 && !problem[0] ? -1 : 0; /* else the tasks fail */
}

EXPORT int slurm_spank_exit(spank_t spank, int n_arguments, char **arguments)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;

        (void)n_arguments, (void)arguments;
        if (n_vgpus == 0 || spank_remote(spank) != 1 || vgpu_client_new(&client, run_directory) < 0)
                return 0;
        for (uint32_t i = 0; i < n_vgpus; i++)
                (void)vgpu_instance_remove(client, vgpus[i].name,
                                           NULL); /* else it goes a moment later */
        return 0;
}

/* Tasks. */

static int set_environment(spank_t spank, char *const *environment)
{
        for (; *environment; environment++) {
                const char *value = strchr(*environment, '=');
                CLEANUP(freep)
                char *name = value ? strndup(*environment, (size_t)(value - *environment)) : NULL;

                if (!name || spank_setenv(spank, name, value + 1, 1) != ESPANK_SUCCESS)
                        return -1;
        }
        return 0;
}

/* To the standard error of the first task, which is there now. */
static void say_how_it_went(const char *command)
{
        if (room_wait.seconds > 0)
                fprintf(stderr, "%s: --vgpu: waited %u seconds for room\n", command,
                        room_wait.seconds);
        if (problem[0])
                fprintf(stderr, "%s: --vgpu: %s\n", command, problem);
}

EXPORT int slurm_spank_task_init(spank_t spank, int n_arguments, char **arguments)
{
        bool is_per_task = option_get()->is_per_task;
        int task = -1;

        (void)n_arguments, (void)arguments;
        if (!is_for_tasks(spank))
                return 0;
        (void)spank_get_item(spank, S_TASK_ID, &task);
        if (task == 0)
                say_how_it_went(is_script(spank) ? "sbatch" : "srun");
        if (problem[0] || task < 0 || (is_per_task && (uint32_t)task >= n_vgpus))
                return -1;
        if (set_environment(spank, vgpus[is_per_task ? task : 0].environment) < 0)
                return -1;
        (void)signal(SIGTSTP, SIG_IGN);
        return task == 0 && !is_joined ? sentry_start(sentry_pipe) : 0;
}
