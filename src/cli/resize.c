/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

static int run(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        uint64_t frame_buffer = 0;
        int r;

        if (!arguments_get(arguments, "fb"))
                return say_usage(arguments, "how much memory may it hold? for example --fb 40G",
                                 "--fb SIZE is missing");
        r = arguments_get_size(arguments, "fb", &frame_buffer);
        if (r != 0)
                return r;
        if (vgpu_instance_resize(client, arguments->words[0], frame_buffer, &instance) < 0)
                return say_error(arguments, client);
        return document_print_instance(arguments, "resized", instance);
}

static const struct option options[] = {
        { .name = "fb",
          .argument = "SIZE",
          .help = "the frame buffer, which is the quota of GPU memory: 40G, 512M" },
        COMMAND_OPTION_MEMORY,
        { .name = NULL },
};

const struct command command_resize = {
        .name = "resize",
        .usage = "NAME --fb SIZE",
        .summary = "change the quota of a vGPU while its programs run",
        .description =
                "Changes how much GPU memory the programs in a vGPU may hold, while they run. The quota\n"
                "cannot be less than what they hold, nor more than the GPU has left. A suspended vGPU\n"
                "can be resized too, and needs the room when it is resumed. While a suspend, a resume\n"
                "or a move is under way, the vGPU is busy and cannot be resized.\n",
        .examples = "vgpu resize train --fb 20G\n"
                    "vgpu resize train --fb 40G\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run,
};
