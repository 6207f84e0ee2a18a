/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

static int run_rename(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        const char *from = arguments->words[0], *to = arguments->words[1];

        if (vgpu_instance_rename(client, from, to, &instance) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_instance(instance));

        printf("renamed %s to %s\n", from, instance->name);
        return 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_rename = {
        .name = "rename",
        .usage = "NAME NEW-NAME",
        .summary = "give a vGPU another name",
        .description =
                "Gives a vGPU another name. Its programs run on, and the ledger keeps what the vGPU\n"
                "has used, under the new name. A vGPU cannot be renamed while it is suspended,\n"
                "resumed or moved.\n",
        .examples = "vgpu rename train train-old\n"
                    "vgpu rename train-old train\n",
        .options = options,
        .n_words_min = 2,
        .n_words_max = 2,
        .word = "name or the new name",
        .run = run_rename,
};
