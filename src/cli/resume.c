/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"

static int run(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        char copy[OPERATION_TEXT_MAX], whole[OPERATION_WHOLE_MAX];
        int r;

        r = operation_begin(arguments, &options);
        if (r != 0)
                return r;
        r = vgpu_operation_resume(client, arguments->words[0], arguments_get(arguments, "device"),
                                  &options, &report);
        operation_end();
        if (r < 0)
                return say_error(arguments, client);
        operation_tell_lost(report);
        if (arguments->is_json)
                return document_print(arguments, document_from_report(report));

        printf("resumed %s: %s%s, on GPU %u\n", report->instance->name,
               operation_describe_copy(copy, report, "back"),
               operation_describe_whole(whole, report), report->to_device);
        return 0;
}

static const struct option options[] = {
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID; else the one that it was on" },
        OPERATION_OPTION_TIMEOUT,
        { .name = NULL },
};

const struct command command_resume = {
        .name = "resume",
        .usage = "NAME [--device DEVICE] [--timeout SECONDS]",
        .summary = "put a vGPU back, on any GPU; its programs go on",
        .description = "Puts a suspended vGPU on a GPU. Its programs go on where they were.\n"
                       "\n"
                       "An interrupt (Ctrl-C) ends the waiting, not the operation.\n",
        .examples = "vgpu suspend train --keep-context\n"
                    "vgpu resume train --timeout 60\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run,
};
