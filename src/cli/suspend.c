/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"
#include "cli/several.h"

static void print(const struct vgpu_operation_report *report)
{
        const struct vgpu_instance *instance = report->instance;
        char copy[OPERATION_TEXT_MAX], whole[OPERATION_WHOLE_MAX];

        operation_describe_copy(copy, report, "out");
        if (report->had_left)
                printf("%s had left GPU %u by itself%s; it stays away until 'vgpu resume %s'\n",
                       instance->name, report->from_device,
                       instance->state == VGPU_INSTANCE_EVICTED ? ", its context stays there" : "",
                       instance->name);
        else if (instance->state == VGPU_INSTANCE_EVICTED)
                printf("evicted %s: %s, its context stays on GPU %u\n", instance->name, copy,
                       report->from_device);
        else
                printf("suspended %s: %s%s, GPU %u is free of it\n", instance->name, copy,
                       operation_describe_whole(whole, report), report->from_device);
}

static int act(const struct arguments *arguments, struct vgpu_client *client, const char *name,
               json_t **ret_document)
{
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        int r;

        r = operation_begin(arguments, name, &options);
        if (r != 0)
                return r;
        r = vgpu_operation_suspend(client, name, &options, &report);
        operation_end();
        if (r < 0)
                return say_error(arguments, client);
        operation_tell_lost(report);
        if (arguments->is_json)
                *ret_document = document_from_report(report);
        else
                print(report);
        return 0;
}

static bool is_on_a_device(const struct vgpu_instance *instance)
{
        return instance->state == VGPU_INSTANCE_RUNNING;
}

static int run_suspend(const struct arguments *arguments, struct vgpu_client *client)
{
        static const struct several several = { .act = act,
                                                .is_meant = is_on_a_device,
                                                .none = "no vGPU of yours has a program on a GPU" };

        return several_run(arguments, client, &several);
}

static const struct option options[] = {
        SEVERAL_OPTION_ALL("all of yours (root: all) that have a program on a GPU"),
        { .name = "keep-context",
          .help = "move only memory: quicker both ways; 0.5 GiB per program stays" },
        OPERATION_OPTION_TIMEOUT,
        { .name = NULL },
};

const struct command command_suspend = {
        .name = "suspend",
        .usage = "NAME...|--all [--keep-context] [--timeout SECONDS]",
        .summary = "take a vGPU off its GPU; its programs wait",
        .description =
                "Moves the GPU memory of a vGPU to host memory, and its programs off the GPU. The\n"
                "programs wait in their next GPU call until 'vgpu resume'. If anything fails, they\n"
                "continue as if nobody had asked.\n"
                "\n"
                "Several vGPUs are suspended one after another. If one fails, the others are still\n"
                "suspended; the exit status is that of the first failure.\n"
                "\n"
                "An interrupt (Ctrl-C) ends the waiting, not the operation.\n",
        .examples = "vgpu suspend train\n"
                    "vgpu resume train\n"
                    "vgpu suspend --all\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_suspend,
};
