/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

static int run_class(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;

        if (vgpu_instance_set_class(client, arguments->words[0], arguments->words[1], &instance) <
            0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_instance(instance));
        printf("%s: %s\n", instance->name, instance->swap_class);
        return 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_class = {
        .name = "class",
        .usage = "NAME batch|interactive",
        .summary = "say how a vGPU waits for its turn, and for room on an overcommitted GPU",
        .description =
                "Sets the class of a vGPU, which counts where vGPUs wait for each other. Where they wait\n"
                "for room on a GPU ('vgpud --overcommit'):\n"
                "\n"
                "  batch        comes in after those that are interactive; while it has work,\n"
                "               its turn is as long as its share (default)\n"
                "  interactive  comes in first, and others leave for it sooner; when it is idle,\n"
                "               it leaves at once for another that is interactive\n"
                "\n"
                "Where they wait for their turns (vgpu share, vgpu scheduler), an interactive vGPU that gets\n"
                "work has the GPU at once, whoever has the turn, and pays for it from its share.\n"
                "\n"
                "An interactive vGPU that always has work is treated as one of the class batch.\n",
        .examples = "vgpu class train batch\n",
        .options = options,
        .n_words_min = 2,
        .n_words_max = 2,
        .word = "name or the class",
        .run = run_class,
};
