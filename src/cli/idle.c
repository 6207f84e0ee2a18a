/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/duration.h"
#include "cli/instance-devices.h"
#include "cli/instance.h"
#include "cli/say.h"

static void print(const struct vgpu_instance *instance)
{
        char text[DURATION_TEXT_MAX], devices[INSTANCE_DEVICES_MAX];
        const char *plural = instance->n_parts > 1 ? "s" : "";

        if (instance->idle_after == 0 && (instance->state == VGPU_INSTANCE_SUSPENDED ||
                                          instance->state == VGPU_INSTANCE_EVICTED))
                printf("%s: stays off its GPU until 'vgpu resume %s', and on it after that\n",
                       instance->name, instance->name);
        else if (instance->idle_after == 0)
                printf("%s: stays on GPU%s %s however long it is idle\n", instance->name, plural,
                       instance_devices_format(devices, instance));
        else
                printf("%s:%s leaves GPU%s %s after %s without work (%s), and comes back when it "
                       "has work\n",
                       instance->name,
                       instance->n_processes == 0 ? " once a program has run in it," : "", plural,
                       instance_devices_format(devices, instance),
                       duration_format(text, instance->idle_after),
                       duration_get_how(instance->idle_keeps_context));
}

static int run_idle(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        bool keeps_context = arguments_get(arguments, "keep-context") != NULL;
        double after = 0;

        if (duration_parse_or_never(&after, arguments->words[1]) < 0)
                return say_usage(arguments, DURATION_OR_NEVER, "'%s' is not a time",
                                 arguments->words[1]);
        if (vgpu_instance_set_idle(client, arguments->words[0], after, keeps_context, &instance) <
            0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_instance(instance));
        print(instance);
        return 0;
}

static const struct option options[] = {
        { .name = "keep-context",
          .help = "move only memory: quicker both ways; 0.5 GiB per program stays" },
        { .name = NULL },
};

const struct command command_idle = {
        .name = "idle",
        .usage = "NAME TIME [--keep-context]",
        .summary = "let a vGPU leave its GPU by itself when it has no work",
        .description =
                "Sets the time after which a vGPU without work leaves its GPU by itself: 30s, 5m,\n"
                "1h, or 'never'. It comes back by itself when one of its programs makes its next\n"
                "GPU call, which waits for that. The time counts from the last work on the GPU.\n"
                "\n"
                "A vGPU that finds no room when it comes back waits. Other vGPUs with such a time\n"
                "that are idle leave early for it. A vGPU that was suspended with 'vgpu suspend'\n"
                "does not come back by itself.\n",
        .examples = "vgpu idle train 30s\n"
                    "vgpu idle train 5m --keep-context\n"
                    "vgpu idle train never\n",
        .options = options,
        .n_words_min = 2,
        .n_words_max = 2,
        .word = "name or the time",
        .run = run_idle,
};
