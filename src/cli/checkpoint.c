/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu checkpoint: the CUDA state of processes, with no manager and no vGPU.
 *
 * Ctrl-C ends us, not the helper that calls the driver: it undoes what it has begun.
 */
#include "cli/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/say.h"

DEFINE_CLEANUP(struct vgpu_checkpoint *, vgpu_checkpoint_free);

/* What the command line says, ready for the library. */
struct wish {
        struct vgpu_checkpoint_options options;
        struct vgpu_checkpoint_pair pairs[COMMAND_REPEATS_MAX];
        char text[COMMAND_REPEATS_MAX][128]; /* of the pairs: cut in two at '=' */
        enum vgpu_checkpoint_state goal;     /* of wait */
        double wait_seconds;
};

static int get_states(struct vgpu_checkpoint *checkpoint, const struct wish *wish)
{
        return vgpu_checkpoint_look(checkpoint, &wish->options);
}

static int get_threads(struct vgpu_checkpoint *checkpoint, const struct wish *wish)
{
        pid_t thread;

        (void)wish;
        return vgpu_checkpoint_get_restore_thread(checkpoint, &thread);
}

static int wait_for(struct vgpu_checkpoint *checkpoint, const struct wish *wish)
{
        return vgpu_checkpoint_wait(checkpoint, wish->goal, wish->wait_seconds);
}

#define STEP(name)                                                                   \
        static int name(struct vgpu_checkpoint *checkpoint, const struct wish *wish) \
        {                                                                            \
                return vgpu_checkpoint_##name(checkpoint, &wish->options);           \
        }

STEP(lock)
STEP(checkpoint)
STEP(restore)
STEP(unlock)
STEP(suspend)
STEP(resume)

static int toggle(struct vgpu_checkpoint *checkpoint, const struct wish *wish)
{
        int state = vgpu_checkpoint_toggle(checkpoint, &wish->options);

        return state < 0 ? state : 0;
}

static const struct action {
        const char *name;
        int (*run)(struct vgpu_checkpoint *checkpoint, const struct wish *wish);
        int (*say)(const struct arguments *arguments, const struct vgpu_checkpoint *checkpoint);
        const char *options; /* that it takes, each with a blank before and behind */
} actions[] = {
        { "state", get_states, checkpoint_say_states, " tree " },
        { "tid", get_threads, checkpoint_say_threads, " " },
        { "wait", wait_for, checkpoint_say_states, " timeout for " },
        { "lock", lock, checkpoint_say_done, " timeout tree force " },
        { "checkpoint", checkpoint, checkpoint_say_done, " tree force " },
        { "restore", restore, checkpoint_say_done, " tree gpu force " },
        { "unlock", unlock, checkpoint_say_done, " tree force " },
        { "suspend", suspend, checkpoint_say_done, " timeout tree careful force " },
        { "resume", resume, checkpoint_say_done, " tree gpu force " },
        { "toggle", toggle, checkpoint_say_done, " timeout tree careful gpu force " },
};

static const struct action *find_action(const char *name)
{
        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
                if (strcmp(actions[i].name, name) == 0)
                        return &actions[i];
        return NULL;
}

/* An option that an action would ignore is a mistake that somebody should hear of. */
static int check_options(const struct arguments *arguments, const struct action *action)
{
        for (const struct option *option = arguments->command->options; option->name; option++) {
                char name[32];

                snprintf(name, sizeof(name), " %s ", option->name);
                if (arguments_get(arguments, option->name) && !strstr(action->options, name))
                        return say_usage(arguments, "see 'vgpu help checkpoint'",
                                         "%s takes no --%s", action->name, option->name);
        }
        return 0;
}

static int read_pairs(const struct arguments *arguments, struct wish *wish)
{
        for (size_t i = 0; i < arguments->n_repeated; i++) {
                char *equals;

                snprintf(wish->text[i], sizeof(wish->text[i]), "%s", arguments->repeated[i]);
                equals = strchr(wish->text[i], '=');
                if (!equals || equals == wish->text[i] || !equals[1])
                        return say_usage(arguments, "for example --gpu 0=1",
                                         "--gpu: '%s' is not OLD=NEW", arguments->repeated[i]);
                *equals = '\0';
                wish->pairs[i] = (struct vgpu_checkpoint_pair){ wish->text[i], equals + 1 };
        }
        wish->options.pairs = wish->pairs;
        wish->options.n_pairs = arguments->n_repeated;
        return 0;
}

static int read_goal(const struct arguments *arguments, struct wish *wish)
{
        const char *name = arguments_get(arguments, "for");

        wish->goal = VGPU_CHECKPOINT_STATE_RUNNING;
        if (!name)
                return 0;
        for (int i = VGPU_CHECKPOINT_STATE_RUNNING; i <= VGPU_CHECKPOINT_STATE_CHECKPOINTED; i++) {
                wish->goal = (enum vgpu_checkpoint_state)i;
                if (strcmp(vgpu_checkpoint_state_get_name(wish->goal), name) == 0)
                        return 0;
        }
        return say_usage(arguments, "running, locked or checkpointed", "--for: no state is '%s'",
                         name);
}

static int read_wish(const struct arguments *arguments, struct wish *wish)
{
        int r;

        *wish = (struct wish){ .options = VGPU_CHECKPOINT_OPTIONS_INIT,
                               .wait_seconds = VGPU_CHECKPOINT_FOREVER };
        r = arguments_get_seconds(arguments, "timeout", &wish->options.timeout_seconds);
        if (r == 0)
                r = arguments_get_seconds(arguments, "timeout", &wish->wait_seconds);
        if (r == 0)
                r = read_pairs(arguments, wish);
        wish->options.with_children = arguments_get(arguments, "tree") != NULL;
        wish->options.is_careful = arguments_get(arguments, "careful") != NULL;
        wish->options.is_forced = arguments_get(arguments, "force") != NULL;
        return r ? r : read_goal(arguments, wish);
}

static int fail_process(const struct arguments *arguments, const char *word, int error)
{
        if (error == -E2BIG)
                return say_usage(arguments, "", "more processes than one action can take");
        return say_failure(arguments, EXIT_CODE_FAILED, error == -ESRCH ? "NoProcess" : "Failed",
                           "", "process %s: %s", word, strerrordesc_np(-error));
}

static int add_process(const struct arguments *arguments, struct vgpu_checkpoint **checkpoint,
                       const char *word)
{
        char *end;
        long pid;
        int r;

        errno = 0;
        pid = strtol(word, &end, 10);
        if (errno || *end || end == word || pid <= 0 || pid > INT32_MAX)
                return say_usage(arguments, "a number, as ps(1) shows it",
                                 "'%s' is not a process id", word);
        r = *checkpoint ? vgpu_checkpoint_add(*checkpoint, (pid_t)pid)
                        : vgpu_checkpoint_new(checkpoint, (pid_t)pid);
        return r < 0 ? fail_process(arguments, word, r) : 0;
}

static int run_checkpoint(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct action *action = find_action(arguments->words[0]);
        struct wish wish;
        int r;

        (void)client;
        if (!action)
                return say_usage(arguments, "see 'vgpu help checkpoint'", "there is no action '%s'",
                                 arguments->words[0]);
        r = check_options(arguments, action);
        if (r == 0)
                r = read_wish(arguments, &wish);
        for (size_t i = 1; i < arguments->n_words && r == 0; i++)
                r = add_process(arguments, &checkpoint, arguments->words[i]);
        if (r != 0)
                return r;
        if (action->run(checkpoint, &wish) < 0)
                return checkpoint_say_error(arguments, checkpoint);
        return action->say(arguments, checkpoint);
}

static const struct option options[] = {
        { .name = "timeout",
          .argument = "TIME",
          .help = "how long to wait (default: lock 10, wait for ever)" },
        { .name = "gpu",
          .argument = "OLD=NEW",
          .may_repeat = true,
          .help = "restore on another GPU: index, UUID or beginning of a UUID" },
        { .name = "tree", .help = "include all CUDA processes below each PID: all or none" },
        { .name = "careful", .help = "stop the threads outside of the driver before the lock" },
        { .name = "force",
          .help = "allow guests of a vGPU, and actions that are known to be dangerous" },
        { .name = "for",
          .argument = "STATE",
          .help = "the state to wait for: running (the default), locked or checkpointed" },
        { .name = NULL },
};

const struct command command_checkpoint = {
        .name = "checkpoint",
        .usage = "ACTION PID... [--tree] [--timeout TIME] [--careful] [--gpu OLD=NEW]... "
                 "[--for STATE] [--force]",
        .summary = "take any CUDA process off its GPU and put it back",
        .description =
                "Controls the CUDA state of processes, in a vGPU or not. This needs no vgpud, but\n"
                "NVIDIA's driver 570 or newer.\n"
                "\n"
                "Actions:\n"
                "  suspend     lock and checkpoint: the process leaves the GPU and waits\n"
                "  resume      restore and unlock: the process continues\n"
                "  toggle      suspend a running process, resume a checkpointed process\n"
                "  state       print the state: running, locked, checkpointed, failed or busy\n"
                "  wait        wait until the process is in the state of --for\n"
                "  tid         print the id of the driver's restore thread in the process\n"
                "  lock, checkpoint, restore, unlock\n"
                "              take a single step\n"
                "  dump, load, check\n"
                "              write to disk and read back: see 'vgpu help checkpoint dump', and\n"
                "              the same for load and check\n"
                "\n"
                "Several processes are handled together: all or none. An action that fails or is\n"
                "interrupted (Ctrl-C) is undone.\n"
                "\n"
                "Exit status: 0 done, 1 failed and undone, 2 wrong command line, 3 the process has\n"
                "no CUDA, 4 timed out, 5 failed, and a process is lost or left in another state.\n",
        .examples = "python3 other.py &\n"
                    "vgpu checkpoint suspend $!\n"
                    "vgpu checkpoint resume $! --gpu 0=1\n",
        .options = options,
        .n_words_min = 2,
        .n_words_max = 65,
        .word = "action or the process id",
        .run = run_checkpoint,
};
