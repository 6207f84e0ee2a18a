/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"
#include "cli/several.h"

/* Else they stood still all the time. */
static bool is_stop_shorter(const struct vgpu_operation_report *report)
{
        return report->pre_copy_bytes > 0 || report->stopped_seconds < report->seconds / 2;
}

static void print(const struct vgpu_operation_report *report)
{
        const struct vgpu_instance *instance = report->instance;
        char copy[OPERATION_TEXT_MAX], whole[OPERATION_WHOLE_MAX], devices[OPERATION_DEVICES_MAX];
        char stop[OPERATION_STOP_MAX] = "";

        operation_describe_copy(copy, report, "out");
        if (is_stop_shorter(report))
                operation_describe_stop(stop, report);
        if (report->had_left)
                printf("%s had left GPU %u by itself%s; it stays away until 'vgpu resume %s'\n",
                       instance->name, report->from_device,
                       instance->state == VGPU_INSTANCE_EVICTED ? ", its context stays there" : "",
                       instance->name);
        else if (instance->state == VGPU_INSTANCE_EVICTED)
                printf("evicted %s: %s%s, its context stays on %s\n", instance->name, copy, stop,
                       operation_describe_devices(devices, report, report->from_device));
        else
                printf("suspended %s: %s%s%s, %s %s free of it\n", instance->name, copy, stop,
                       operation_describe_whole(whole, report),
                       operation_describe_devices(devices, report, report->from_device),
                       instance->n_parts > 1 ? "are" : "is");
}

static int run(const struct arguments *arguments, struct vgpu_client *client, const char *name,
               const struct vgpu_operation_options *options,
               struct vgpu_operation_report **ret_report)
{
        (void)arguments;
        return vgpu_operation_suspend(client, name, options, ret_report);
}

static void tell(const struct arguments *arguments, const struct vgpu_operation_report *report,
                 json_t **ret_document)
{
        operation_tell_lost(report);
        if (arguments->is_json)
                *ret_document = document_from_report(report);
        else
                print(report);
}

/* One that has left by itself would come back by itself. */
static bool is_meant(const struct vgpu_instance *instance)
{
        return instance->state == VGPU_INSTANCE_RUNNING || instance->demand[0];
}

static int run_suspend(const struct arguments *arguments, struct vgpu_client *client)
{
        static const struct several_operation operation = { run, tell };
        static const struct several several = { .is_meant = is_meant,
                                                .none = "no vGPU of yours has a program on a GPU",
                                                .operation = &operation };

        return several_run(arguments, client, &several);
}

static const struct option options[] = {
        SEVERAL_OPTION_ALL(
                "all of yours (root: all) that have a program on a GPU, or left it by themselves"),
        { .name = "keep-context",
          .help = "move only memory: quicker both ways; 0.5 GiB per program stays" },
        { .name = "verify",
          .help = "compare every byte that has not changed since the last suspend" },
        { .name = "pre-copy",
          .help = "copy while the programs run, then stop them for what they changed meanwhile" },
        OPERATION_OPTION_GROUP,
        OPERATION_OPTION_TIMEOUT,
        { .name = NULL },
};

const struct command command_suspend = {
        .name = "suspend",
        .usage =
                "NAME...|--all [--keep-context] [--verify] [--pre-copy] [--group] [--timeout TIME]",
        .summary = "take a vGPU off its GPU; its programs wait",
        .description =
                "Moves the GPU memory of a vGPU to host memory, and its programs off the GPU. The\n"
                "programs wait in their next GPU call until 'vgpu resume'. If anything fails, they\n"
                "continue as if nobody had asked.\n"
                "\n"
                "A vGPU that left its GPU by itself stays away from then on.\n"
                "\n"
                "Host memory keeps what it had of a vGPU that was resumed, as long as nobody needs the\n"
                "room. The next suspend finds what has changed by a hash, on the GPU, and copies only\n"
                "that.\n"
                "\n"
                "With --pre-copy the programs run on while their memory is copied, a few times over as\n"
                "long as less changes each time, and stop only for the rest. This takes longer in all.\n"
                "\n"
                "Several vGPUs are suspended at the same time. If one fails, the others are still\n"
                "suspended; the exit status is that of the first failure.\n"
                "\n"
                "Processes that share GPU memory can only leave together. If some of them are in\n"
                "other vGPUs, the command refuses and names one. With --group all these vGPUs leave\n"
                "at the same time, or none does.\n"
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
