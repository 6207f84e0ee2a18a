/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/document.h"
#include "cli/end-programs.h"
#include "cli/instance.h"
#include "cli/say.h"
#include "cli/several.h"

/* For what goes on after the last program has ended: its operation is given up, its end is seen. */
#define SETTLE_NS 30000000000u

#define AGAIN_US 20000

/*
 * Programs may start while others are ended, so it goes round until the vGPU is gone. A vGPU that is
 * busy and has no program to end is refused as without --force. One that goes by itself, with its programs,
 * leaves *@ret_instance alone.
 */
static int end_and_remove(const struct arguments *arguments, struct vgpu_client *client,
                          const char *name, struct vgpu_instance **ret_instance)
{
        uint64_t end = clock_now(CLOCK_MONOTONIC) + SETTLE_NS;
        size_t n_ended = 0;

        for (;;) {
                size_t n = 0;
                int code = end_programs(arguments, client, name, &n);

                if (code != 0)
                        return code;
                n_ended += n;
                if (vgpu_instance_remove(client, name, ret_instance) >= 0)
                        return 0;
                if (vgpu_client_get_error(client)->kind == VGPU_ERROR_NO_SUCH_VGPU)
                        return 0;
                if (vgpu_client_get_error(client)->kind != VGPU_ERROR_BUSY || n_ended == 0 ||
                    clock_now(CLOCK_MONOTONIC) >= end)
                        return say_error(arguments, client);
                usleep(AGAIN_US);
        }
}

static int force(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                 struct vgpu_instance **ret_instance)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        int code;

        if (vgpu_instance_lookup(client, name, &instance) < 0)
                return say_error(arguments, client);
        code = end_programs_confirm(arguments, instance);
        if (code == 0) /* by its UUID: what was agreed to is this vGPU */
                code = end_and_remove(arguments, client, instance->uuid, ret_instance);
        if (code == 0 && !*ret_instance)
                *ret_instance = TAKE(instance);
        return code;
}

static int act(const struct arguments *arguments, struct vgpu_client *client, const char *name,
               json_t **ret_document)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;

        if (vgpu_instance_remove(client, name, &instance) < 0) {
                int code;

                if (vgpu_client_get_error(client)->kind != VGPU_ERROR_BUSY ||
                    !arguments_get(arguments, "force"))
                        return say_error(arguments, client);
                code = force(arguments, client, name, &instance);
                if (code != 0)
                        return code;
        }
        if (arguments->is_json)
                *ret_document = document_from_instance(instance);
        else
                printf("removed %s\n", instance->name);
        return 0;
}

static int run_rm(const struct arguments *arguments, struct vgpu_client *client)
{
        static const struct several several = { .act = act };

        return several_run(arguments, client, &several);
}

static const struct option options[] = {
        { .name = "force", .letter = 'f', .help = "end its programs first, after a question" },
        { .name = "yes", .letter = 'y', .help = "do not ask the question" },
        { .name = NULL },
};

const struct command command_rm = {
        .name = "rm",
        .usage = "NAME... [--force [--yes]]",
        .summary = "remove a vGPU",
        .description =
                "Removes vGPUs that have no programs.\n"
                "\n"
                "With --force, ends the programs first: with SIGTERM, and after 10 seconds (in a\n"
                "suspended vGPU after one second) with SIGKILL. If one vGPU cannot be removed, the\n"
                "others are still removed.\n",
        .examples = "vgpu create scratch --fb 1G\n"
                    "vgpu rm scratch\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_rm,
};
