/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"
#include "cli/several.h"

static int act(const struct arguments *arguments, struct vgpu_client *client, const char *name,
               json_t **ret_document)
{
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        char copy[OPERATION_TEXT_MAX], whole[OPERATION_WHOLE_MAX];
        int r;

        r = operation_begin(arguments, name, &options);
        if (r != 0)
                return r;
        r = vgpu_operation_resume(client, name, arguments_get(arguments, "device"), &options,
                                  &report);
        operation_end();
        if (r < 0)
                return say_error(arguments, client);
        operation_tell_lost(report);
        if (arguments->is_json) {
                *ret_document = document_from_report(report);
                return 0;
        }
        printf("resumed %s: %s%s, on GPU %u\n", report->instance->name,
               operation_describe_copy(copy, report, "back"),
               operation_describe_whole(whole, report), report->to_device);
        return 0;
}

static bool is_off(const struct vgpu_instance *instance)
{
        return instance->state == VGPU_INSTANCE_SUSPENDED ||
               instance->state == VGPU_INSTANCE_EVICTED;
}

static int run_resume(const struct arguments *arguments, struct vgpu_client *client)
{
        static const struct several several = { .act = act,
                                                .is_meant = is_off,
                                                .none = "no vGPU of yours is suspended" };

        return several_run(arguments, client, &several);
}

static const struct option options[] = {
        SEVERAL_OPTION_ALL("all of yours (root: all) that are suspended"),
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID (default: the GPU that it left)" },
        OPERATION_OPTION_TIMEOUT,
        { .name = NULL },
};

const struct command command_resume = {
        .name = "resume",
        .usage = "NAME...|--all [--device DEVICE] [--timeout SECONDS]",
        .summary = "put a vGPU back on any GPU; its programs continue",
        .description =
                "Puts a suspended vGPU on a GPU. Its programs continue where they were. Several\n"
                "vGPUs are resumed one after another; if one fails, the others are still resumed.\n"
                "\n"
                "An interrupt (Ctrl-C) ends the waiting, not the operation.\n",
        .examples = "vgpu suspend train --keep-context\n"
                    "vgpu resume train --timeout 60\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_resume,
};
