/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu checkpoint dump, load and check: checkpoints on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openvgpu/image.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"

DEFINE_CLEANUP(struct vgpu_image_report *, vgpu_image_report_free);

/* The codes of 'vgpu checkpoint' where they are not those of all commands. */
static int say_image_error(const struct arguments *arguments, const struct vgpu_client *client)
{
        const struct vgpu_error *error = vgpu_client_get_error(client);

        if (error->kind == VGPU_ERROR_GUEST_LOST)
                return say_failure(arguments, EXIT_CODE_LOST, error->name, error->hint, "%s",
                                   error->message);
        return say_error(arguments, client);
}

/* A process is a number; no vGPU has a name of digits alone that anybody would dump by accident. */
static pid_t get_pid(const char *word)
{
        long pid = strspn(word, "0123456789") == strlen(word) ? strtol(word, NULL, 10) : 0;

        return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int get_level(const struct arguments *arguments, struct vgpu_image_options *options)
{
        const char *text = arguments_get(arguments, "compress");
        static char name[16];
        const char *colon;

        if (!text)
                return 0;
        colon = strchrnul(text, ':');
        snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
        options->compression = name;
        options->level = *colon ? atoi(colon + 1) : 0;
        if (strcmp(name, "none") != 0 && strcmp(name, "zstd") != 0)
                return say_usage(arguments, "write it as zstd, zstd:9 or none",
                                 "--compress: '%s' is no compression", text);
        if (*colon && (options->level < 1 || options->level > 19 ||
                       strspn(colon + 1, "0123456789") != strlen(colon + 1)))
                return say_usage(arguments, "a level is a number from 1 to 19",
                                 "--compress: '%s' is no level", colon + 1);
        return 0;
}

/* Telling. */

static json_t *from_report(const struct vgpu_image_report *report)
{
        json_t *ancestors = json_array(), *devices = json_array();

        for (size_t i = 0; i < report->n_ancestors; i++)
                json_array_append_new(ancestors, json_string(report->ancestors[i]));
        for (size_t i = 0; i < report->n_devices; i++)
                json_array_append_new(devices, json_string(report->device_uuids[i]));
        return json_pack(
                "{ss ss ss s{ss ss} ss si sI si sI sI sI sb sb sf sf sf sf so sI so}", "directory",
                report->directory, "created", report->created, "host", report->host, "device",
                "name", report->device_name, "uuid", report->device_uuid, "vgpu", report->vgpu,
                "cuda_driver_version", (int)report->cuda_driver_version, "processes",
                (json_int_t)report->n_processes, "pid", (int)report->pid, "memory_bytes",
                (json_int_t)report->memory_bytes, "data_bytes", (json_int_t)report->data_bytes,
                "criu_bytes", (json_int_t)report->criu_bytes, "io_uring", report->has_io_uring,
                "direct_io", report->has_direct_io, "data_seconds", report->data_seconds,
                "criu_seconds", report->criu_seconds, "cuda_seconds", report->cuda_seconds,
                "seconds", report->seconds, "ancestors", ancestors, "inherited_bytes",
                (json_int_t)report->inherited_bytes, "device_uuids", devices);
}

/* "2 GiB of GPU memory in 0.61 s (3.5 GB/s)" */
static void print_memory(const struct vgpu_image_report *report)
{
        char size[SIZE_TEXT_MAX], file[SIZE_TEXT_MAX], time[OPERATION_TIME_MAX];

        if (report->memory_bytes == 0)
                return;
        printf(", %s of GPU memory", size_format(size, report->memory_bytes));
        if (report->n_devices > 1)
                printf(" of %zu GPUs", report->n_devices);
        if (report->data_bytes < report->memory_bytes)
                printf(" (%s in the file)", size_format(file, report->data_bytes));
        printf(" in %s", operation_describe_time(time, report->data_seconds));
        if (report->data_seconds >= 0.001)
                printf(" (%.1f GB/s)", (double)report->memory_bytes / report->data_seconds / 1e9);
}

static void print(const struct vgpu_image_report *report, const char *done, const char *what)
{
        char size[SIZE_TEXT_MAX], time[OPERATION_TIME_MAX];

        printf("%s %s", done, what);
        print_memory(report);
        if (report->criu_bytes > 0 && report->criu_seconds > 0)
                printf(", CRIU %s in %s", size_format(size, report->criu_bytes),
                       operation_describe_time(time, report->criu_seconds));
        printf(", %s in all\n", operation_describe_time(time, report->seconds));
        for (size_t i = 0; i < report->n_ancestors; i++)
                printf("  needs %s\n", report->ancestors[i]);
}

static int tell(const struct arguments *arguments, const struct vgpu_image_report *report,
                const char *done, const char *what)
{
        if (arguments->is_json)
                return document_print(arguments, from_report(report));
        print(report, done, what);
        return 0;
}

/* The commands. */

static int run_dump(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_image_options options = VGPU_IMAGE_OPTIONS_INIT;
        CLEANUP(vgpu_image_report_freep) struct vgpu_image_report *report = NULL;
        const char *what = arguments->words[0], *directory = arguments->words[1];
        pid_t pid = get_pid(what);
        char text[320];
        int r = get_level(arguments, &options);

        if (r == 0)
                r = arguments_get_seconds(arguments, "timeout", &options.timeout_seconds);
        if (r != 0)
                return r;
        options.criu = arguments_get(arguments, "criu");
        options.parent = arguments_get(arguments, "parent");
        options.leave_running = arguments_get(arguments, "leave-running") != NULL;
        options.cut_pipes = arguments_get(arguments, "cut-pipes") != NULL;
        r = pid > 0 ? vgpu_image_dump_process(client, pid, directory, &options, &report)
                    : vgpu_image_dump(client, what, directory, &options, &report);
        if (r < 0)
                return say_image_error(arguments, client);
        snprintf(text, sizeof(text), "%s to %s", what, directory);
        return tell(arguments, report, "dumped", text);
}

static int run_load(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_image_options options = VGPU_IMAGE_OPTIONS_INIT;
        CLEANUP(vgpu_image_report_freep) struct vgpu_image_report *report = NULL;
        const char *directory = arguments->words[0], *name = arguments_get(arguments, "vgpu");
        char text[320];
        int r;

        options.criu = arguments_get(arguments, "criu");
        options.device = arguments_get(arguments, "device");
        r = name ? vgpu_image_load(client, name, directory, &options, &report)
                 : vgpu_image_load_process(client, directory, &options, &report);
        if (r < 0)
                return say_image_error(arguments, client);
        if (name)
                snprintf(text, sizeof(text), "%s into %s", directory, name);
        else
                snprintf(text, sizeof(text), "%s, process %d goes on", directory, (int)report->pid);
        return tell(arguments, report, "loaded", text);
}

static int run_check(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_image_report_freep) struct vgpu_image_report *report = NULL;

        if (vgpu_image_check(client, arguments->words[0], &report) < 0)
                return say_image_error(arguments, client);
        return tell(arguments, report, "checked", arguments->words[0]);
}

static const struct option dump_options[] = {
        { .name = "leave-running", .help = "continue the process after its dump" },
        { .name = "cut-pipes", .help = "accept pipes that nobody will read after the load" },
        { .name = "compress",
          .argument = "HOW",
          .help = "pack the GPU memory: zstd, or zstd:LEVEL (1 to 19)" },
        { .name = "parent",
          .argument = "IMAGE",
          .help = "write only what differs from this older image, which a load then needs" },
        OPERATION_OPTION_TIMEOUT,
        { .name = "criu", .argument = "PROGRAM", .help = "the CRIU to use" },
        { .name = NULL },
};

const struct command command_checkpoint_dump = {
        .name = "checkpoint dump",
        .usage = "PID|NAME DIRECTORY [--leave-running] [--cut-pipes] [--compress HOW] "
                 "[--parent IMAGE] [--timeout TIME] [--criu PROGRAM]",
        .summary = "write a checkpoint to disk",
        .description =
                "PID: writes a process, with all processes below it and its GPU memory, to a new\n"
                "directory, and ends it. 'vgpu checkpoint load' continues it. This needs CRIU 4.1 or\n"
                "newer, and root. NAME: writes the GPU memory of a suspended vGPU; its programs stay.\n"
                "A dump that fails is undone: the process continues as before.\n"
                "With --parent, blocks of 2 MiB that the older image has are not written again. Keep\n"
                "it: without it, this one cannot be loaded.\n",
        .examples = "vgpu suspend train\n"
                    "vgpu checkpoint dump train ./train-1\n",
        .options = dump_options,
        .n_words_min = 2,
        .n_words_max = 2,
        .word = "process id (or name of the vGPU), or the directory",
        .run = run_dump,
};

static const struct option load_options[] = {
        { .name = "vgpu",
          .argument = "NAME",
          .help = "load only GPU memory, into this suspended vGPU with the same processes" },
        { .name = "device",
          .argument = "DEVICE[,...]",
          .help = "resume the vGPU there: as many as it has, each an index or a UUID" },
        { .name = "criu", .argument = "PROGRAM", .help = "the CRIU to use" },
        { .name = NULL },
};

const struct command command_checkpoint_load = {
        .name = "checkpoint load",
        .usage = "DIRECTORY [--vgpu NAME] [--device DEVICE[,...]] [--criu PROGRAM]",
        .summary = "continue a checkpoint on disk",
        .description =
                "Makes the processes of an image again, with their numbers and their GPU memory,\n"
                "and continues them. With --vgpu, puts GPU memory back into a suspended vGPU, which\n"
                "stays suspended unless --device says where to resume it. The command refuses an\n"
                "image that is incomplete or changed. Whatever fails, the image stays as it is.\n",
        .examples = "vgpu suspend train\n"
                    "vgpu checkpoint dump train ./train-1\n"
                    "vgpu checkpoint load ./train-1 --vgpu train\n",
        .options = load_options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "directory",
        .run = run_load,
};

static const struct option check_options[] = { { .name = NULL } };

const struct command command_checkpoint_check = {
        .name = "checkpoint check",
        .usage = "DIRECTORY",
        .summary = "read a whole checkpoint on disk and compare its checksums",
        .description =
                "Says what an image contains, which other images it needs, and whether all is\n"
                "complete.\n",
        .examples = "vgpu suspend train\n"
                    "vgpu checkpoint dump train ./train-1\n"
                    "vgpu checkpoint check ./train-1\n",
        .options = check_options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "directory",
        .run = run_check,
};
