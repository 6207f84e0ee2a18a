/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes the program in this process, so that nothing stands between the program and its parent:
 * signals, exit status and terminal are as without vgpu.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openvgpu/guest.h>

#include "cli/arguments.h"
#include "cli/instance.h"
#include "cli/interpreter.h"
#include "cli/say.h"

DEFINE_CLEANUP(char **, vgpu_guest_environment_free);

/* The options that make a vGPU for this program alone. */
static const char *const making[] = { "fb", "name", "device", "devices" };

static int check(const struct arguments *arguments)
{
        bool has_name = arguments_get(arguments, "vgpu") != NULL;

        for (size_t i = 0; has_name && i < sizeof(making) / sizeof(making[0]); i++)
                if (arguments_get(arguments, making[i]))
                        return say_usage(arguments,
                                         "--vgpu names an existing vGPU, --fb creates a new one",
                                         "--vgpu and --%s exclude each other", making[i]);
        if (!has_name && !arguments_get(arguments, "fb"))
                return say_usage(
                        arguments,
                        "--vgpu NAME runs the program in an existing vGPU, --fb 20G in a new one",
                        "in which vGPU?");
        return 0;
}

static int create(const struct arguments *arguments, struct vgpu_client *client,
                  struct vgpu_instance **ret_instance)
{
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        int r;

        r = arguments_get_size(arguments, "fb", &options.frame_buffer);
        if (r != 0)
                return r;
        options.name = arguments_get(arguments, "name");
        options.device = arguments_get(arguments, "device");
        r = arguments_get_devices(arguments, &options.n_devices);
        if (r != 0)
                return r;
        options.is_transient = true;
        return vgpu_instance_create(client, &options, ret_instance) < 0
                       ? say_error(arguments, client)
                       : 0;
}

/* One that is suspended refuses at first, so that the program is not thought to hang. */
static int become(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                  char ***ret_environment)
{
        const struct vgpu_error *error;
        int r = vgpu_guest_become(client, name, VGPU_GUEST_NO_WAIT, environ, ret_environment);

        if (r == 0 || arguments_get(arguments, "no-wait"))
                return r;
        error = vgpu_client_get_error(client);
        if (error->kind != VGPU_ERROR_WRONG_STATE)
                return r;
        if (!arguments->is_json)
                fprintf(stderr,
                        "vgpu: run: %s: the program's first CUDA call waits until 'vgpu resume "
                        "%s'\n",
                        error->message, name);
        return vgpu_guest_become(client, name, 0, environ, ret_environment);
}

/* Returns only if it fails. */
static int execute(const struct arguments *arguments, struct vgpu_client *client, const char *name)
{
        CLEANUP(vgpu_guest_environment_freep) char **environment = NULL;
        const char *program = arguments->words[0];
        int error;

        if (become(arguments, client, name, &environment) < 0)
                return say_error(arguments, client);

        execvpe(program, arguments->words, environment);
        error = errno;
        return say_failure(
                arguments, error == ENOENT ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CANNOT_EXECUTE,
                "CannotExecute", "", "cannot execute '%s': %s", program, strerrordesc_np(error));
}

/* What would be seen much later, if at all: that the program has no quota and is not suspended. */
static int check_program(const struct arguments *arguments)
{
        const char *program = arguments->words[0];
        enum interpreter interpreter = interpreter_find(program);

        if (interpreter == INTERPRETER_MUSL)
                return say_failure(
                        arguments, EXIT_CODE_CANNOT_EXECUTE, "CannotExecute",
                        "take one that is built for glibc",
                        "'%s' is linked with musl, and vGPUs need a glibc (2.17 or newer)",
                        program);
        if (interpreter == INTERPRETER_NONE && !arguments->is_json)
                fprintf(stderr,
                        "vgpu: run: '%s' is linked statically: it runs outside of the vGPU, without a "
                        "quota; programs that it starts are in it\n",
                        program);
        if (interpreter == INTERPRETER_PRIVILEGED && !arguments->is_json)
                fprintf(stderr,
                        "vgpu: run: '%s' runs with other rights than yours (set-user-id): it runs outside "
                        "of the vGPU, and so does what it starts\n"
                        "hint: let it start vgpu: %s vgpu run ...\n",
                        program, program);
        return 0;
}

static int run_program(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *transient = NULL;
        const char *name = arguments_get(arguments, "vgpu");
        int r;

        r = check(arguments);
        if (r == 0)
                r = check_program(arguments);
        if (r == 0 && !name)
                r = create(arguments, client, &transient);
        if (r != 0)
                return r;

        r = execute(arguments, client, name ? name : transient->name);
        if (transient) /* the manager would do so, but later than the next command may look */
                (void)vgpu_instance_remove(client, transient->name, NULL);
        return r;
}

static const struct option options[] = {
        { .name = "vgpu", .argument = "NAME", .help = "run the program in this vGPU" },
        { .name = "fb",
          .argument = "SIZE",
          .help = "run it in a new vGPU that lives as long as the program" },
        COMMAND_OPTION_MEMORY,
        { .name = "name", .argument = "NAME", .help = "the name of the new vGPU" },
        { .name = "device", .argument = "DEVICE", .help = "the GPU of the new vGPU; several: 0,1" },
        { .name = "devices", .argument = "N", .help = "so many GPUs, with --fb on each" },
        { .name = "no-wait", .help = "refuse if the vGPU is suspended" },
        { .name = NULL },
};

const struct command command_run = {
        .name = "run",
        .usage = "(--vgpu NAME [--no-wait] | --fb SIZE [--device DEVICE[,DEVICE...] | "
                 "--devices N] [--name NAME]) [--] PROGRAM [ARGUMENT]...",
        .summary = "run a program in a vGPU",
        .description =
                "Runs a program, and all programs that it starts, in a vGPU. The program sees the\n"
                "GPU of the vGPU (of a vGPU of several devices, each of them) with as much memory\n"
                "as the quota. With OPENVGPU_ALL_DEVICES=1 it also sees the other GPUs of the host,\n"
                "and cannot use them. Any number of programs can share a vGPU.\n"
                "\n"
                "vgpu run replaces CUDA_VISIBLE_DEVICES. To see fewer GPUs of a vGPU of several:\n"
                "vgpu run --vgpu NAME -- env CUDA_VISIBLE_DEVICES=1 PROGRAM.\n"
                "\n"
                "In a suspended vGPU, the program waits in its first CUDA call until the vGPU is\n"
                "resumed; a line on standard error says so.\n"
                "\n"
                "The exit status is that of the program; 127 if the program was not found, 126 if it\n"
                "could not be executed, also because it is linked with musl. A program that is\n"
                "set-user-id or linked statically runs outside of the vGPU; a line on standard\n"
                "error says so.\n",
        .examples = "vgpu run --vgpu train -- python3 infer.py\n"
                    "vgpu run --fb 20G -- python3 infer.py\n",
        .options = options,
        .n_words_min = 1,
        .word = "program",
        .takes_program = true,
        .run = run_program,
};
