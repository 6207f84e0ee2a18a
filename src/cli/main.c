/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/say.h"

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);

static int say_unknown(const char *name)
{
        const struct command *similar = command_find_similar(name);
        char clean[128];

        fprintf(stderr, "vgpu: unknown command '%s'\n", text_clean(clean, sizeof(clean), name));
        if (similar)
                fprintf(stderr, "hint: did you mean 'vgpu %s'?\n", similar->name);
        else
                fprintf(stderr, "hint: 'vgpu --help' lists the commands\n");
        return EXIT_CODE_USAGE;
}

static int help(const char *name, const char *second)
{
        const struct command *command = name ? command_find(name) : NULL;

        if (name && second && command_find_pair(name, second))
                command = command_find_pair(name, second);
        if (!name || strcmp(name, "help") == 0)
                command_print_all();
        else if (command)
                command_print_help(command);
        else
                return say_unknown(name);
        return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        struct arguments arguments;
        int r;

        r = arguments_parse(&arguments, command, argc, argv);
        if (r != 0)
                return r;
        if (arguments.wants_help) {
                command_print_help(command);
                return 0;
        }

        r = vgpu_client_new(&client, NULL);
        if (r < 0)
                return say_failure(&arguments, EXIT_CODE_USAGE, "Usage",
                                   "set OPENVGPU_RUN to a shorter one", "the run directory: %s",
                                   strerrordesc_np(-r));
        return command->run(&arguments, client);
}

static int dispatch(int argc, char **argv)
{
        const struct command *command;

        if (argc < 2) {
                command_print_all();
                return EXIT_CODE_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
                return help(NULL, NULL);
        if (strcmp(argv[1], "help") == 0)
                return help(argv[2], argc > 3 ? argv[3] : NULL);
        if (strcmp(argv[1], "--version") == 0) {
                printf("vgpu %s\n", vgpu_get_version());
                return 0;
        }
        if (argv[1][0] == '-') {
                fprintf(stderr,
                        "vgpu: the command comes first, then '%s'\n"
                        "hint: vgpu ls --json\n",
                        argv[1]);
                return EXIT_CODE_USAGE;
        }
        command = command_find_pair(argv[1], argv[2]);
        if (command)
                return run(command, argc - 3, argv + 3);
        command = command_find(argv[1]);
        return command ? run(command, argc - 2, argv + 2) : say_unknown(argv[1]);
}

int main(int argc, char **argv)
{
        int code = dispatch(argc, argv);

        /* A full disk must not look like an empty list. */
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "vgpu: cannot write to standard output: %s\n",
                        strerrordesc_np(errno));
                return code ? code : EXIT_CODE_FAILED;
        }
        return code;
}
