/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-checkpoint: with the options, the output and the exit status of NVIDIA's program of that name,
 * so that CRIU's CUDA plugin and scripts can use ours in its place.
 *
 * What is better shows only when something goes wrong: a failed step is undone, a restore that would
 * not fit is not tried, and the message says what to do.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openvgpu/checkpoint.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct vgpu_checkpoint *, vgpu_checkpoint_free);

#define PAIRS_MAX 32

/* CRIU's plugin reads the first 2 KB of this and looks for "--action". */
static const char help[] =
        "CUDA checkpoint and restore utility, of OpenVGPU " OPENVGPU_VERSION ".\n"
        "\n"
        "Operations:\n"
        "--get-state --pid <pid>\n"
        "        Print the state of the process: running, locked, checkpointed or failed\n"
        "\n"
        "--action lock | checkpoint | restore | unlock --pid <pid> [--timeout <ms>]\n"
        "        [--device-map <old>=<new>,...]\n"
        "        Perform one step. A lock waits for at most <ms> milliseconds; a restore moves what\n"
        "        was on the device <old> to <new>. Devices that are not named stay.\n"
        "\n"
        "--toggle --pid <pid> [--device-map <old>=<new>,...]\n"
        "        Suspend a running process, or resume a checkpointed one\n"
        "\n"
        "--get-restore-tid --pid <pid>\n"
        "        Print the id of the thread that restores the process\n"
        "\n"
        "Options:\n"
        "--pid|-p <pid>            The process\n"
        "--timeout|-t <ms>         For the lock; without it, or 0: for ever\n"
        "--device-map|-d <map>     For the restore: UUIDs, as in GPU-1a2b...=GPU-3c4d...\n"
        "--help|-h                 Print this\n"
        "\n"
        "'vgpu checkpoint' does more: process trees, JSON, waiting, exit codes.\n";

enum operation { NONE, GET_STATE, GET_TID, TOGGLE, ACTION, SEVERAL };

struct request {
        enum operation operation;
        const char *action;
        const char *process;
        struct vgpu_checkpoint_options options;
        struct vgpu_checkpoint_pair pairs[PAIRS_MAX];
};

/* A wrong command line, in NVIDIA's words where it has some. */
static int say(const char *what, const char *word)
{
        fprintf(stderr, "%s%s\n\n%s", what, word, help);
        return 1;
}

/* NVIDIA's line, with what the driver calls it; then what we know. */
static int say_failed(const struct request *request, const char *reason, const char *detail,
                      const char *hint)
{
        switch (request->operation) {
        case GET_STATE:
                fprintf(stderr, "Error getting process state for process ID %s: \"%s\"\n",
                        request->process, reason);
                break;
        case GET_TID:
                fprintf(stderr, "Could not find restore thread for process ID %s\n",
                        request->process);
                break;
        case TOGGLE:
                fprintf(stderr, "Error toggling CUDA in process ID %s: \"%s\"\n", request->process,
                        reason);
                break;
        default:
                fprintf(stderr, "Could not %s on process ID %s: \"%s\"\n", request->action,
                        request->process, reason);
                break;
        }
        if (*detail)
                fprintf(stderr, "%s\n", detail);
        if (*hint)
                fprintf(stderr, "hint: %s\n", hint);
        return 1;
}

static bool parse_number(const char *text, unsigned long max, unsigned long *ret_number)
{
        char *end;

        errno = 0;
        *ret_number = strtoul(text, &end, 10);
        return !errno && end != text && !*end && *text != '-' && *ret_number <= max;
}

static int parse_timeout(struct request *request, const char *text)
{
        unsigned long ms;

        if (!parse_number(text, UINT32_MAX, &ms))
                return say("not a number of milliseconds: ", text);
        request->options.timeout_seconds = ms ? (double)ms / 1000 : VGPU_CHECKPOINT_FOREVER;
        return 0;
}

/* Cuts @text to pieces. */
static int parse_map(struct request *request, char *text)
{
        char *rest = NULL;

        for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
                char *equals = strchr(one, '=');

                if (!equals || equals == one || !equals[1])
                        return say("Invalid device remap: ", one);
                if (request->options.n_pairs == PAIRS_MAX)
                        return say("too many devices", "");
                *equals = '\0';
                request->pairs[request->options.n_pairs++] =
                        (struct vgpu_checkpoint_pair){ one, equals + 1 };
        }
        request->options.pairs = request->pairs;
        return request->options.n_pairs ? 0 : say("Invalid device remap", "");
}

static void choose(struct request *request, enum operation operation)
{
        request->operation = request->operation == NONE ? operation : SEVERAL;
}

static int parse_one(struct request *request, int option)
{
        switch (option) {
        case 's':
                choose(request, GET_STATE);
                return 0;
        case 'r':
                choose(request, GET_TID);
                return 0;
        case 'o':
                choose(request, TOGGLE);
                return 0;
        case 'a':
                choose(request, ACTION);
                request->action = optarg;
                return 0;
        case 'p':
                request->process = optarg;
                return 0;
        case 't':
                return parse_timeout(request, optarg);
        case 'd':
                return parse_map(request, optarg);
        case 'j':
                return say("--launch-job is not supported: jobs that share CUDA IPC memory need "
                           "NVIDIA's program",
                           "");
        case 'h':
                fputs(help, stdout);
                exit(0);
        default:
                return say("Invalid option(s) or option(s) not supported", "");
        }
}

static int parse(struct request *request, int argc, char **argv)
{
        static const struct option names[] = {
                { "get-state", no_argument, NULL, 's' },
                { "get-restore-tid", no_argument, NULL, 'r' },
                { "toggle", no_argument, NULL, 'o' },
                { "action", required_argument, NULL, 'a' },
                { "pid", required_argument, NULL, 'p' },
                { "timeout", required_argument, NULL, 't' },
                { "device-map", required_argument, NULL, 'd' },
                { "launch-job", required_argument, NULL, 'j' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        int option, r = 0;

        while (r == 0 && (option = getopt_long(argc, argv, "+p:t:d:j:h", names, NULL)) != -1)
                r = parse_one(request, option);
        if (r == 0 && optind < argc)
                r = say("unexpected: ", argv[optind]);
        return r;
}

/*
 * A process that is locked is where a restore would bring it. CRIU's plugin asks for one after a
 * checkpoint that failed, and unlocks only if it succeeds: else the process would stay locked.
 */
static int restore(struct vgpu_checkpoint *checkpoint,
                   const struct vgpu_checkpoint_options *options)
{
        int r = vgpu_checkpoint_restore(checkpoint, options);
        const struct vgpu_checkpoint_error *error = vgpu_checkpoint_get_error(checkpoint);

        if (r < 0 && error->kind == VGPU_CHECKPOINT_ERROR_WRONG_STATE &&
            error->state_after == VGPU_CHECKPOINT_STATE_LOCKED && options->n_pairs == 0)
                return 0;
        return r;
}

static const struct {
        const char *name;
        int (*run)(struct vgpu_checkpoint *checkpoint,
                   const struct vgpu_checkpoint_options *options);
} steps[] = {
        { "lock", vgpu_checkpoint_lock },
        { "checkpoint", vgpu_checkpoint_checkpoint },
        { "restore", restore },
        { "unlock", vgpu_checkpoint_unlock },
};

static bool is_step(const char *name)
{
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                if (strcmp(steps[i].name, name) == 0)
                        return true;
        return false;
}

static int check(const struct request *request)
{
        if (request->operation == NONE)
                return say("No operation selected", "");
        if (request->operation == SEVERAL)
                return say("Too many operations selected", "");
        if (!request->process)
                return say("Missing pid to perform operation on", "");
        if (request->action && !is_step(request->action))
                return say("Invalid process state", "");
        return 0;
}

static int print_state(struct vgpu_checkpoint *checkpoint)
{
        enum vgpu_checkpoint_state state;
        int r = vgpu_checkpoint_get_state(checkpoint, &state);

        if (r == 0)
                puts(vgpu_checkpoint_state_get_name(state));
        return r;
}

static int print_tid(struct vgpu_checkpoint *checkpoint)
{
        pid_t thread;
        int r = vgpu_checkpoint_get_restore_thread(checkpoint, &thread);

        if (r == 0)
                printf("%d\n", (int)thread);
        return r;
}

static int act(struct vgpu_checkpoint *checkpoint, const struct request *request)
{
        int state;

        switch (request->operation) {
        case GET_STATE:
                return print_state(checkpoint);
        case GET_TID:
                return print_tid(checkpoint);
        case TOGGLE:
                state = vgpu_checkpoint_toggle(checkpoint, &request->options);
                return state < 0 ? state : 0;
        default:
                break;
        }
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                if (strcmp(steps[i].name, request->action) == 0)
                        return steps[i].run(checkpoint, &request->options);
        return 1; /* not reached: check() has looked */
}

static int open_process(struct vgpu_checkpoint **ret_checkpoint, const struct request *request)
{
        unsigned long pid;
        int r;

        if (!parse_number(request->process, INT32_MAX, &pid) || pid == 0)
                return say("pid must be a positive integer", "");
        r = vgpu_checkpoint_new(ret_checkpoint, (pid_t)pid);
        return r < 0 ? say_failed(request, strerrordesc_np(-r), "", "") : 0;
}

int main(int argc, char **argv)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        struct request request = { .options = VGPU_CHECKPOINT_OPTIONS_INIT };
        const struct vgpu_checkpoint_error *error;

        request.options.timeout_seconds = VGPU_CHECKPOINT_FOREVER;
        if (parse(&request, argc, argv) != 0 || check(&request) != 0 ||
            open_process(&checkpoint, &request) != 0)
                return 1;
        if (act(checkpoint, &request) == 0)
                return fflush(stdout) == 0 ? 0 : 1;

        error = vgpu_checkpoint_get_error(checkpoint);
        return say_failed(&request, *error->driver_text ? error->driver_text : error->message,
                          *error->driver_text ? error->message : "", error->hint);
}
