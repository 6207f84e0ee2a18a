/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

static int run(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;

        if (vgpu_instance_remove(client, arguments->words[0], &instance) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_instance(instance));

        printf("removed %s\n", instance->name);
        return 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_rm = {
        .name = "rm",
        .usage = "NAME",
        .summary = "remove a vGPU",
        .description = "Removes a vGPU that no program runs in.\n",
        .examples = "vgpu create scratch --fb 1G\n"
                    "vgpu rm scratch\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run,
};
