/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const struct command *const commands[] = {
        &command_devices,
        &command_create,
        &command_apply,
        &command_run,
        &command_ls,
        &command_suspend,
        &command_resume,
        &command_migrate,
        &command_rename,
        &command_resize,
        &command_rm,
        &command_checkpoint,
        &command_top,
        &command_accounting,
        &command_usage,
        &command_logs,
        &command_info,
        &command_env,
        &command_simulate,
        &command_show,
        &command_types,
        &command_utilization,
        &command_sessions,
        &command_licence,
        &command_metadata,
        &command_placements,
        &command_heterogeneous,
        &command_capabilities,
        &command_version_range,
        &command_share,
        &command_idle,
        &command_class,
        &command_scheduler,
        &command_cdi,
        NULL,
};

static const struct command *const pairs[] = {
        &command_checkpoint_dump,
        &command_checkpoint_load,
        &command_checkpoint_check,
        &command_scheduler_show,
        &command_scheduler_set,
        &command_scheduler_log,
        NULL,
};

/* What other tools call it; behind "vgpu". */
static const struct {
        const char *other, *ours;
} synonyms[] = {
        { "list", "ls" },
        { "ps", "ls" },
        { "status", "ls" },
        { "get", "ls" },
        { "delete", "rm" },
        { "del", "rm" },
        { "remove", "rm" },
        { "destroy", "rm" },
        { "kill", "rm --force" },
        { "new", "create" },
        { "add", "create" },
        { "exec", "run" },
        { "start", "run" },
        { "pause", "suspend" },
        { "freeze", "suspend" },
        { "stop", "suspend" },
        { "move", "migrate" },
        { "thaw", "resume" },
        { "unpause", "resume" },
        { "watch", "top" },
        { "monitor", "top" },
        { "stats", "top" },
        { "bill", "usage" },
        { "billing", "usage" },
        { "account", "accounting" },
        { "log", "logs" },
        { "events", "logs" },
        { "history", "logs" },
        { "gpus", "devices" },
        { "version", "--version" },
        { "license", "licence" },
        { "profiles", "types" },
        { "inspect", "show" },
        { "describe", "show" },
};

const struct command *command_find(const char *name)
{
        for (size_t i = 0; commands[i]; i++)
                if (strcmp(commands[i]->name, name) == 0)
                        return commands[i];
        return NULL;
}

const struct command *command_find_pair(const char *first, const char *second)
{
        size_t length = strlen(first);

        for (size_t i = 0; second && pairs[i]; i++)
                if (strncmp(pairs[i]->name, first, length) == 0 && pairs[i]->name[length] == ' ' &&
                    strcmp(pairs[i]->name + length + 1, second) == 0)
                        return pairs[i];
        return NULL;
}

const char *command_find_similar(const char *name)
{
        const char *best = NULL;
        size_t least = TEXT_LEAST;

        for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
                if (strcmp(synonyms[i].other, name) == 0)
                        return synonyms[i].ours;
        for (size_t i = 0; commands[i]; i++)
                if (text_is_closer(name, commands[i]->name, &least))
                        best = commands[i]->name;
        return text_is_closer(name, "help", &least) ? "help" : best;
}

static json_t *list_lines(const char *text)
{
        json_t *lines = json_array();

        for (; *text; text += strcspn(text, "\n") + 1)
                json_array_append_new(lines, json_stringn(text, strcspn(text, "\n")));
        return lines;
}

static json_t *describe(const struct command *command)
{
        json_t *options = json_array();

        for (size_t i = 0; command->options[i].name; i++) {
                const struct option *option = &command->options[i];
                const char letter[] = { option->letter, '\0' };

                json_array_append_new(options,
                                      json_pack("{ss ss* ss* ss}", "name", option->name, "letter",
                                                option->letter ? letter : NULL, "argument",
                                                option->argument, "help", option->help));
        }
        return json_pack("{ss ss ss ss so so}", "name", command->name, "usage", command->usage,
                         "summary", command->summary, "description", command->description,
                         "options", options, "examples", list_lines(command->examples));
}

json_t *command_describe(const char *name, const char *second)
{
        const struct command *command = name ? command_find_pair(name, second) : NULL;
        json_t *all;

        if (name)
                return describe(command ? command : command_find(name));
        all = json_array();
        for (size_t i = 0; commands[i]; i++)
                json_array_append_new(all, describe(commands[i]));
        for (size_t i = 0; pairs[i]; i++)
                json_array_append_new(all, describe(pairs[i]));
        return json_pack("{so}", "commands", all);
}

static void print_option(const struct option *option)
{
        char left[40];
        int n = option->letter ? snprintf(left, sizeof(left), "-%c, ", option->letter) : 0;

        snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
        printf("  %-18s  %s\n", left, option->help);
}

void command_print_help(const struct command *command)
{
        static const struct option common[] = {
                { .name = "json", .help = "print one JSON document; errors are JSON as well" },
                { .name = "help", .letter = 'h', .help = "show this" },
        };

        printf("Usage: vgpu %s %s%s[--json]\n\n%s\nOptions:\n", command->name, command->usage,
               *command->usage ? " " : "", command->description);
        for (size_t i = 0; command->options[i].name; i++)
                print_option(&command->options[i]);
        for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
                print_option(&common[i]);
        puts("\nExamples:");
        for (const char *line = command->examples; *line; line += strcspn(line, "\n") + 1) {
                fputs("  ", stdout);
                (void)fwrite(line, 1, strcspn(line, "\n") + 1, stdout);
        }
}

void command_print_all(void)
{
        printf("Usage: vgpu COMMAND [OPTION]...\n"
               "Virtual GPUs that are shared, suspended, resumed and moved while their programs "
               "run.\n"
               "\n"
               "Commands:\n");
        for (size_t i = 0; commands[i]; i++)
                printf("  %-14s %s\n", commands[i]->name, commands[i]->summary);
        printf("  %-14s %s\n"
               "\n"
               "Every command takes --help, and --json: one JSON document on standard output.\n"
               "\n"
               "To begin (without a GPU: vgpud --simulate 2xH200 &):\n"
               "  sudo vgpud &\n"
               "  vgpu create train --fb 40G\n"
               "  vgpu run --vgpu train -- python3 train.py\n"
               "\n"
               "Exit status:\n"
               "  0  done\n"
               "  1  refused as things are now, or failed; what was begun is undone\n"
               "  2  the command line or a value in it is wrong, whatever vGPUs there are\n"
               "  3  no such vGPU or device\n"
               "  4  a program did not come to rest in time, or is stopped; nothing has changed\n"
               "  5  no vgpud answers\n"
               "  6  no permission\n"
               "  7  the vGPU is in the wrong state, or busy\n"
               "'vgpu run' ends with the status of the program; 127 if the program was not\n"
               "found, 126 if it could not be executed.\n",
               "help", "explain a command: vgpu help COMMAND");
}
