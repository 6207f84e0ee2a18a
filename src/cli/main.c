/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/manager-pid.h"
#include "base/paths.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/ended.h"
#include "cli/say.h"

#define START_MS    500
#define START_TRIES 50

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);

/* What is said before it is known which command it is about. */
static struct arguments no_command(int argc, char **argv)
{
        struct arguments arguments = { .command = NULL };

        for (int i = 1; i < argc; i++)
                arguments.is_json |= strcmp(argv[i], "--json") == 0;
        return arguments;
}

static int say_unknown(const struct arguments *arguments, const char *name)
{
        const char *similar = command_find_similar(name);
        char clean[128], hint[128] = "'vgpu --help' lists the commands";

        if (similar)
                snprintf(hint, sizeof(hint), "did you mean 'vgpu %s'?", similar);
        return say_usage(arguments, hint, "unknown command '%s'",
                         text_clean(clean, sizeof(clean), name));
}

static int help(const struct arguments *arguments, const char *name, const char *second)
{
        const struct command *command = name ? command_find(name) : NULL;

        if (name && second && command_find_pair(name, second))
                command = command_find_pair(name, second);
        if (!name || strcmp(name, "help") == 0)
                command_print_all();
        else if (command)
                command_print_help(command);
        else
                return say_unknown(arguments, name);
        return 0;
}

/* 'vgpu help [COMMAND] [--json]'; of --help it is the help as well. */
static int help_words(const struct arguments *arguments, int argc, char **argv)
{
        const char *words[2] = { NULL, NULL };
        size_t n = 0;

        for (int i = 0; i < argc; i++) {
                if (strcmp(argv[i], "--json") == 0)
                        continue;
                if (argv[i][0] == '-' && strcmp(argv[i], "--help") != 0 &&
                    strcmp(argv[i], "-h") != 0)
                        return say_usage(arguments, "vgpu help COMMAND", "unknown option '%s'",
                                         argv[i]);
                if (argv[i][0] != '-' && n < 2)
                        words[n++] = argv[i];
        }
        if (arguments->is_json && (!words[0] || command_find(words[0])))
                return document_print(arguments, command_describe(words[0], words[1]));
        return help(arguments, words[0], words[1]);
}

/* The socket of a vgpud that was killed is still there; its process is not. */
static bool has_ended(const char *directory)
{
        char path[PATHS_MAX];
        FILE *file;
        int pid = 0;

        if (paths_join(path, directory, MANAGER_PID_FILE) < 0)
                return false;
        file = fopen(path, "re");
        if (!file)
                return false;
        if (fscanf(file, "%d", &pid) != 1)
                pid = 0;
        (void)fclose(file);
        return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

/*
 * Typed right behind "vgpud &", a command may come before vgpud has so much as looked at its folder. From
 * then on the library waits for it.
 */
static void wait_for_socket(void)
{
        char directory[PATHS_MAX], path[PATHS_MAX];

        for (int i = 0; i < START_TRIES; i++) {
                if (paths_run_client(directory) < 0 ||
                    paths_join(path, directory, PATHS_CONTROL_SOCKET) < 0 ||
                    (access(path, F_OK) == 0 && !has_ended(directory)))
                        return;
                (void)usleep(START_MS * 1000 / START_TRIES);
        }
}

static int run_command(const struct command *command, int argc, char **argv)
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

        if (command_asks_manager(command)) {
                wait_for_socket();
                if (!arguments.is_json)
                        ended_say_own();
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
        const struct arguments arguments = no_command(argc, argv);
        const struct command *command;

        if (argc < 2) {
                command_print_all();
                return EXIT_CODE_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
                return help(&arguments, NULL, NULL);
        if (strcmp(argv[1], "help") == 0)
                return help_words(&arguments, argc - 2, argv + 2);
        if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
                printf("vgpu %s\n", vgpu_get_version());
                return 0;
        }
        if (argv[1][0] == '-')
                return say_usage(&arguments, "vgpu ls --json", "the command comes first, then '%s'",
                                 argv[1]);
        command = command_find_pair(argv[1], argv[2]);
        if (command)
                return run_command(command, argc - 3, argv + 3);
        command = command_find(argv[1]);
        return command ? run_command(command, argc - 2, argv + 2)
                       : say_unknown(&arguments, argv[1]);
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
