/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"
#include "cli/several.h"

/* Of several, the report does not say which they were. */
static const char *describe_source(char text[OPERATION_TEXT_MAX],
                                   const struct vgpu_operation_report *report)
{
        text[0] = '\0';
        if (report->instance->n_parts <= 1)
                snprintf(text, OPERATION_TEXT_MAX, " from GPU %u", report->from_device);
        return text;
}

/* What is suspended comes back to where it was: nothing has moved from there. */
static bool is_resume(const struct vgpu_operation_report *report)
{
        return report->instance->n_parts <= 1 && report->from_device == report->to_device;
}

static int run(const struct arguments *arguments, struct vgpu_client *client, const char *name,
               const struct vgpu_operation_options *options,
               struct vgpu_operation_report **ret_report)
{
        return vgpu_operation_migrate(client, name, arguments_get(arguments, "device"), options,
                                      ret_report);
}

static void tell(const struct arguments *arguments, const struct vgpu_operation_report *report,
                 json_t **ret_document)
{
        char copy[OPERATION_TEXT_MAX], time[OPERATION_TIME_MAX];
        char source[OPERATION_TEXT_MAX], devices[OPERATION_DEVICES_MAX];
        char stop[OPERATION_STOP_MAX];

        if (is_resume(report)) {
                operation_tell_resumed(arguments, report, ret_document);
                return;
        }
        operation_tell_lost(report);
        if (arguments->is_json)
                *ret_document = document_from_report(report);
        else
                printf("migrated %s%s to %s in %s: %s%s\n", report->instance->name,
                       describe_source(source, report),
                       operation_describe_devices(devices, report, report->to_device),
                       operation_describe_time(time, report->seconds),
                       operation_describe_copy(copy, report, "across"),
                       operation_describe_stop(stop, report));
}

static int run_migrate(const struct arguments *arguments, struct vgpu_client *client)
{
        static const struct several_operation operation = { run, tell };
        static const struct several several = { .operation = &operation };

        const char *device = arguments_get(arguments, "device");

        if (!device)
                return say_usage(arguments, "'vgpu devices' lists the GPUs",
                                 "--device DEVICE is missing");
        if (!*device)
                return say_usage(arguments, "'vgpu devices' lists the GPUs", "the device is empty");
        return several_run(arguments, client, &several);
}

static const struct option options[] = {
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID; of several: 2,3" },
        OPERATION_OPTION_TIMEOUT,
        { .name = NULL },
};

const struct command command_migrate = {
        .name = "migrate",
        .usage = "NAME... --device DEVICE [--timeout TIME]",
        .summary = "move a running vGPU to another GPU",
        .description =
                "Moves a vGPU and its programs to another GPU of this machine, from GPU to GPU. A\n"
                "suspended vGPU is resumed on that GPU. For a vGPU of several GPUs, DEVICE names as\n"
                "many, in the order of its own; they may be some of those that it is on.\n"
                "Several vGPUs move at the same time; if one fails, the others still move.\n"
                "\n"
                "GPUs that cannot reach each other's memory copy through host memory. There, 'vgpu\n"
                "suspend --pre-copy' and then 'vgpu resume --device' may stop the programs for less.\n"
                "\n"
                "An interrupt (Ctrl-C) ends the waiting, not the operation.\n",
        .examples = "vgpu create infer --fb 20G --device 0\n"
                    "vgpu migrate train infer --device 1\n"
                    "vgpu migrate train --device 0\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_migrate,
};
