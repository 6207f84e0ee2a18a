/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"

static void print(const struct vgpu_operation_report *report)
{
        const struct vgpu_instance *instance = report->instance;
        char copy[OPERATION_TEXT_MAX], whole[OPERATION_WHOLE_MAX];

        operation_describe_copy(copy, report, "out");
        if (instance->state == VGPU_INSTANCE_EVICTED)
                printf("evicted %s: %s, its context stays on GPU %u\n", instance->name, copy,
                       report->from_device);
        else
                printf("suspended %s: %s%s, GPU %u is free of it\n", instance->name, copy,
                       operation_describe_whole(whole, report), report->from_device);
}

static int run(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        int r;

        r = operation_begin(arguments, &options);
        if (r != 0)
                return r;
        r = vgpu_operation_suspend(client, arguments->words[0], &options, &report);
        operation_end();
        if (r < 0)
                return say_error(arguments, client);
        operation_tell_lost(report);
        if (arguments->is_json)
                return document_print(arguments, document_from_report(report));

        print(report);
        return 0;
}

static const struct option options[] = {
        { .name = "keep-context",
          .help = "move only the memory out: quicker both ways; 0.5 GiB a program stays" },
        OPERATION_OPTION_TIMEOUT,
        { .name = NULL },
};

const struct command command_suspend = {
        .name = "suspend",
        .usage = "NAME [--keep-context] [--timeout SECONDS]",
        .summary = "take a vGPU off its GPU; its programs wait",
        .description =
                "Moves the GPU memory of a vGPU to host memory, and its programs off the GPU.\n"
                "They wait in their next GPU call until 'vgpu resume'. If anything fails, they run\n"
                "on as if nothing had been asked.\n"
                "\n"
                "An interrupt (Ctrl-C) ends the waiting, not the operation.\n",
        .examples = "vgpu suspend train\n"
                    "vgpu resume train\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run,
};
