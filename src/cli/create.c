/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cli/declared.h"
#include "cli/document.h"
#include "cli/duration.h"
#include "cli/instance.h"
#include "cli/say.h"

static int get_idle(const struct arguments *arguments, struct vgpu_instance_options *options)
{
        const char *after = arguments_get(arguments, "idle-after");
        const char *how = arguments_get(arguments, "idle");

        if (after && duration_parse_or_never(&options->idle_after, after) < 0)
                return say_usage(arguments, DURATION_OR_NEVER, "--idle-after: '%s' is not a time",
                                 after);
        if (how && duration_parse_how(&options->idle_keeps_context, how) < 0)
                return say_usage(arguments, "suspend or keep-context",
                                 "--idle: '%s' is no way to leave", how);
        return 0;
}

static int run_create(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        int r;

        if (!arguments_get(arguments, "fb"))
                return say_usage(arguments, "how much memory may it hold? for example --fb 40G",
                                 "--fb SIZE is missing");
        r = arguments_get_size(arguments, "fb", &options.frame_buffer);
        if (r != 0)
                return r;
        options.swap_class = arguments_get(arguments, "class");
        options.pool_group = arguments_get(arguments, "pool-group");
        options.name = arguments->n_words > 0 ? arguments->words[0] : NULL;
        options.device = arguments_get(arguments, "device");
        r = arguments_get_devices(arguments, &options.n_devices);
        if (r != 0)
                return r;
        r = arguments_get_percent(arguments, "share", &options.share);
        if (r == 0)
                r = get_idle(arguments, &options);
        if (r != 0)
                return r;

        if (arguments_get(arguments, "owner")) {
                options.has_owner = true;
                if (declared_parse_user(&options.owner, arguments_get(arguments, "owner")) < 0)
                        return say_usage(arguments, "a name, or the number of a user",
                                         "--owner: there is no user '%s'",
                                         arguments_get(arguments, "owner"));
        }
        if (vgpu_instance_create(client, &options, &instance) < 0)
                return say_error(arguments, client);
        return document_print_instance(arguments, "created", instance);
}

static const struct option options[] = {
        { .name = "fb",
          .argument = "SIZE",
          .help = "the frame buffer, which is the quota of GPU memory: 40G, 512M" },
        COMMAND_OPTION_MEMORY,
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID; several: 0,1 (default: most room)" },
        { .name = "devices",
          .argument = "N",
          .help = "so many GPUs, linked ones if possible, with --fb on each" },
        { .name = "share",
          .argument = "PERCENT",
          .help = "share of the GPU's time when others want it too, 1 to 100; for root" },
        { .name = "owner",
          .argument = "USER",
          .help = "the user to whom the vGPU belongs (default: you); for root" },
        { .name = "idle-after",
          .argument = "TIME",
          .help = "the vGPU leaves its GPU after so long without work: 30s, 5m" },
        { .name = "idle",
          .argument = "HOW",
          .help = "how it leaves by itself: suspend (default) or keep-context" },
        { .name = "class",
          .argument = "CLASS",
          .help = "batch (default), or interactive: its work is waited for" },
        { .name = "pool-group",
          .argument = "GROUP",
          .help = "keep equal memory of its vGPUs once, whoever owns them; for root" },
        { .name = NULL },
};

const struct command command_create = {
        .name = "create",
        .usage =
                "[NAME] --fb SIZE [--device DEVICE[,DEVICE...] | --devices N] [--share PERCENT] [--owner USER] "
                "[--idle-after TIME] [--idle HOW] [--class CLASS] [--pool-group GROUP]",
        .summary = "create a vGPU: a slice of a GPU with a quota of its memory",
        .description =
                "Creates a vGPU, which stays until 'vgpu rm'. The vGPU belongs to you. Without NAME,\n"
                "the command makes up a name and prints it.\n"
                "\n"
                "A vGPU may have several GPUs, with the same quota on each. Its programs see them\n"
                "in the order in which they are named. Such a vGPU is suspended, resumed and moved\n"
                "as a whole. A share is one of each device.\n",
        .examples = "vgpu create serve --fb 20G --device 1\n"
                    "vgpu create big --fb 60G --devices 2\n",
        .options = options,
        .n_words_max = 1,
        .word = "name",
        .run = run_create,
};
