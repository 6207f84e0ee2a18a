/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openvgpu/usage.h>

#include "base/clock.h"
#include "cli/document.h"
#include "cli/duration.h"
#include "cli/instance.h"
#include "cli/say.h"
#include "cli/usage.h"

/* vgpud tells nobody of a change, so it is asked again. */
#define AGAIN_US 100000

/* "no-work" alone: long enough not to be the moment between two kernels. */
#define NO_WORK_SECONDS 1

#define WHAT_HELP \
        "ended (default), removed, no-work[=TIME], or a state: running, suspended, evicted, failed"

enum what { ENDED, REMOVED, NO_WORK, STATE };

struct goal {
        enum what what;
        const char *word; /* as it was asked for */
        enum vgpu_instance_state state;
        double seconds; /* without work */
};

static int parse_goal(const struct arguments *arguments, struct goal *goal)
{
        static const char no_work[] = "no-work";
        const size_t length = strlen(no_work);
        const char *word = arguments_get(arguments, "for");

        *goal = (struct goal){ .what = ENDED, .word = word ? word : "ended" };
        if (strcmp(goal->word, "ended") == 0)
                return 0;
        if (strncmp(goal->word, no_work, length) == 0 && (!word[length] || word[length] == '=')) {
                goal->what = NO_WORK;
                goal->seconds = NO_WORK_SECONDS;
                if (word[length] && duration_parse(&goal->seconds, word + length + 1) < 0)
                        return say_usage(arguments, DURATION_EXAMPLE, "--for: '%s' is not a time",
                                         word + length + 1);
                return 0;
        }
        goal->what = strcmp(goal->word, "removed") == 0 ? REMOVED : STATE;
        for (int i = VGPU_INSTANCE_RUNNING; goal->what == STATE && i <= VGPU_INSTANCE_FAILED; i++)
                if (strcmp(vgpu_instance_state_get_name((enum vgpu_instance_state)i), word) == 0)
                        goal->state = (enum vgpu_instance_state)i;
        return goal->what == REMOVED || goal->state
                       ? 0
                       : say_usage(arguments, WHAT_HELP, "--for: nothing is called '%s'", word);
}

/* Those that have not come to CUDA yet are programs as well; only the meter knows them. */
static bool has_program(struct vgpu_client *client, const struct vgpu_instance *instance)
{
        struct vgpu_usage_snapshot_options options = VGPU_USAGE_SNAPSHOT_OPTIONS_INIT;
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *snapshot = NULL;

        if (instance->n_processes > 0)
                return true;
        options.is_without_processes = true;
        if (vgpu_usage_take_snapshot_with(client, &options, &snapshot) < 0)
                return false;
        for (size_t i = 0; i < snapshot->n_instances; i++)
                if (strcmp(snapshot->instances[i]->uuid, instance->uuid) == 0)
                        return snapshot->instances[i]->n_programs > 0;
        return false;
}

static bool is_reached(struct vgpu_client *client, const struct goal *goal,
                       const struct vgpu_instance *instance)
{
        switch (goal->what) {
        case ENDED:
                return !has_program(client, instance);
        case NO_WORK:
                return instance->n_processes == 0 || instance->idle >= goal->seconds ||
                       instance->state == VGPU_INSTANCE_SUSPENDED ||
                       instance->state == VGPU_INSTANCE_EVICTED;
        case STATE:
                return instance->state == goal->state;
        default:
                return false;
        }
}

static int time_out(const struct arguments *arguments, const struct goal *goal,
                    const struct vgpu_instance *instance)
{
        return say_failure(arguments, EXIT_CODE_TIMED_OUT, "TimedOut", "--timeout says how long",
                           "vGPU %s is %s and has %zu program%s: not '%s' in time", instance->name,
                           vgpu_instance_state_get_name(instance->state), instance->n_processes,
                           instance->n_processes == 1 ? "" : "s", goal->word);
}

/*
 * Waits for one. @name becomes its UUID once it was seen, so that another one of that name is not taken for
 * it: its removal ends the waiting for its programs, and is an error for any other goal.
 */
static int wait_for(const struct arguments *arguments, struct vgpu_client *client,
                    const struct goal *goal, const char *name, uint64_t until_ns)
{
        char uuid[64] = "";

        for (;; (void)usleep(AGAIN_US)) {
                CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;

                if (vgpu_instance_lookup(client, *uuid ? uuid : name, &instance) < 0) {
                        bool is_gone =
                                vgpu_client_get_error(client)->kind == VGPU_ERROR_NO_SUCH_VGPU;

                        if (is_gone && (goal->what == REMOVED || (*uuid && goal->what == ENDED)))
                                return 0;
                        return say_error(arguments, client);
                }
                (void)snprintf(uuid, sizeof(uuid), "%s", instance->uuid);
                if (is_reached(client, goal, instance))
                        return 0;
                if (instance->state == VGPU_INSTANCE_FAILED && goal->what == STATE)
                        return say_failure(arguments, EXIT_CODE_STATE, "WrongState",
                                           "vgpu logs says why", "vGPU %s has failed",
                                           instance->name);
                if (until_ns > 0 && clock_now(CLOCK_MONOTONIC) >= until_ns)
                        return time_out(arguments, goal, instance);
        }
}

static int run_wait(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(json_decrefp) json_t *reached = json_array();
        double seconds = 0;
        uint64_t until_ns = 0;
        struct goal goal;
        int code = parse_goal(arguments, &goal), r;

        if (code == 0)
                code = arguments_get_seconds(arguments, "timeout", &seconds);
        if (code != 0)
                return code;
        if (seconds > 0)
                until_ns = clock_now(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
        for (size_t i = 0; code != EXIT_CODE_NO_MANAGER && i < arguments->n_words; i++) {
                struct arguments about = *arguments;
                const char *name = arguments->words[i];

                about.vgpu = arguments->n_words > 1 ? name : NULL;
                r = wait_for(&about, client, &goal, name, until_ns);
                code = code != 0 ? code : r;
                if (r == 0 && !arguments->is_json)
                        printf("%s: %s\n", name, goal.word);
                else if (r == 0)
                        json_array_append_new(
                                reached, json_pack("{ss ss}", "name", name, "reached", goal.word));
                (void)fflush(stdout);
        }
        r = arguments->is_json ? document_print(arguments, json_pack("{sO}", "vgpus", reached)) : 0;
        return code != 0 ? code : r;
}

static const struct option options[] = {
        { .name = "for", .argument = "WHAT", .help = WHAT_HELP },
        { .name = "timeout", .argument = "TIME", .help = "give up after so long (default: never)" },
        { .name = NULL },
};

const struct command command_wait = {
        .name = "wait",
        .usage = "NAME... [--for WHAT] [--timeout TIME]",
        .summary = "wait until a vGPU's programs have ended, or for a state",
        .description =
                "Waits until each of the vGPUs is as asked for, and says so:\n"
                "\n"
                "  ended      no program runs in it, or it was removed\n"
                "  removed    there is no such vGPU any more\n"
                "  no-work    its programs have given the GPU no work for 1 s; no-work=30s: for 30 s\n"
                "  running, suspended, evicted, failed   the STATE of 'vgpu ls'\n"
                "\n"
                "The exit status is 4 if the time is over before, 3 if there is no such vGPU, 7 if it\n"
                "has failed. A vGPU in which nothing has run yet counts as ended: after\n"
                "'vgpu run ... &' wait for 'running' first.\n",
        .examples = "vgpu wait train --for running --timeout 30s\n"
                    "vgpu suspend train\n"
                    "vgpu wait train --for suspended\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_wait,
};
