/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/operation.h"
#include "cli/several.h"

static int run(const struct arguments *arguments, struct vgpu_client *client, const char *name,
               const struct vgpu_operation_options *options,
               struct vgpu_operation_report **ret_report)
{
        return vgpu_operation_resume(client, name, arguments_get(arguments, "device"), options,
                                     ret_report);
}

static bool is_off(const struct vgpu_instance *instance)
{
        return instance->state == VGPU_INSTANCE_SUSPENDED ||
               instance->state == VGPU_INSTANCE_EVICTED;
}

static int run_resume(const struct arguments *arguments, struct vgpu_client *client)
{
        static const struct several_operation operation = { run, operation_tell_resumed };
        static const struct several several = { .is_meant = is_off,
                                                .none = "no vGPU of yours is suspended",
                                                .operation = &operation };

        return several_run(arguments, client, &several);
}

static const struct option options[] = {
        SEVERAL_OPTION_ALL("all of yours (root: all) that are suspended"),
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID; of several: 2,3 (default: what it left)" },
        OPERATION_OPTION_GROUP,
        { .name = "timeout",
          .argument = "TIME",
          .help = "for room, its turn and its programs; then it stays suspended (10)" },
        { .name = NULL },
};

const struct command command_resume = {
        .name = "resume",
        .usage = "NAME...|--all [--device DEVICE] [--group] [--timeout TIME]",
        .summary = "put a vGPU back on any GPU; its programs continue",
        .description =
                "Puts a suspended vGPU on a GPU. Its programs continue where they were. Several\n"
                "vGPUs are resumed at the same time; if one fails, the others are still resumed.\n"
                "With --group, all vGPUs whose processes share memory with it come back at the\n"
                "same time.\n"
                "\n"
                "On the overcommitted GPU that it left, it waits for its turn: others leave for it.\n"
                "With --device it has no turn on another overcommitted GPU, and is refused while\n"
                "others have the memory. A stopped program follows when it is continued.\n"
                "\n"
                "An interrupt (Ctrl-C) ends the waiting, not the operation.\n",
        .examples = "vgpu suspend train --keep-context\n"
                    "vgpu resume train --timeout 60\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_resume,
};
