/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum group { DAILY, TIME, BILLING, HOST, NVML };

static const struct {
        const char *name, *title;
} groups[] = {
        [DAILY] = { "daily", "vGPUs, and programs in them" },
        [TIME] = { "time", "The time of a GPU, and room on it" },
        [BILLING] = { "billing", "What was used" },
        [HOST] = { "host", "The host, and programs outside of vGPUs" },
        [NVML] = { "nvml", "What NVML says" },
};

#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))

static const struct {
        const struct command *command;
        enum group group;
} commands[] = {
#define COMMAND_LIST(group, name) { &command_##name, group },
        COMMANDS(COMMAND_LIST)
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* The second word of "scheduler set"; NULL: there is none. */
static const char *get_second(const struct command *command)
{
        const char *blank = strchr(command->name, ' ');

        return blank ? blank + 1 : NULL;
}

static bool is_pair(const struct command *command, const char *first)
{
        size_t length = strlen(first);

        return strncmp(command->name, first, length) == 0 && command->name[length] == ' ';
}

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
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(commands[i].command->name, name) == 0)
                        return strchr(name, ' ') ? NULL : commands[i].command;
        return command_find_pair("nvml", name); /* what it was called before */
}

const struct command *command_find_pair(const char *first, const char *second)
{
        for (size_t i = 0; second && i < N_COMMANDS; i++)
                if (is_pair(commands[i].command, first) &&
                    strcmp(get_second(commands[i].command), second) == 0)
                        return commands[i].command;
        return NULL;
}

bool command_asks_manager(const struct command *command)
{
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (commands[i].command == command)
                        return (commands[i].group != HOST && commands[i].group != NVML) ||
                               command == &command_info || command == &command_env;
        return false;
}

const char *command_find_similar(const char *name)
{
        const char *best = NULL;
        size_t least = TEXT_LEAST;

        for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
                if (strcmp(synonyms[i].other, name) == 0)
                        return synonyms[i].ours;
        for (size_t i = 0; i < N_COMMANDS; i++) {
                const char *second = get_second(commands[i].command);

                /* "typse" may be meant for "nvml types"; "set" alone is meant for nothing. */
                if ((!second || commands[i].group == NVML) &&
                    text_is_closer(name, second ? second : commands[i].command->name, &least))
                        best = commands[i].command->name;
        }
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
        const char *group = "";

        for (size_t i = 0; command->options[i].name; i++) {
                const struct option *option = &command->options[i];
                const char letter[] = { option->letter, '\0' };

                json_array_append_new(options,
                                      json_pack("{ss ss* ss* ss}", "name", option->name, "letter",
                                                option->letter ? letter : NULL, "argument",
                                                option->argument, "help", option->help));
        }
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (commands[i].command == command)
                        group = groups[commands[i].group].name;
        return json_pack("{ss ss ss ss ss so so}", "name", command->name, "group", group, "usage",
                         command->usage, "summary", command->summary, "description",
                         command->description, "options", options, "examples",
                         list_lines(command->examples));
}

json_t *command_describe(const char *name, const char *second)
{
        const struct command *command = name ? command_find_pair(name, second) : NULL;
        json_t *all;

        if (name)
                return describe(command ? command : command_find(name));
        all = json_array();
        for (size_t i = 0; i < N_COMMANDS; i++)
                json_array_append_new(all, describe(commands[i].command));
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

/* Those of two words that begin with @first. */
static void print_pairs(const char *first)
{
        bool has_title = false;

        for (size_t i = 0; i < N_COMMANDS; i++) {
                if (!is_pair(commands[i].command, first))
                        continue;
                if (!has_title)
                        puts("\nCommands:");
                has_title = true;
                printf("  %-20s %s\n", commands[i].command->name, commands[i].command->summary);
        }
}

void command_print_help(const struct command *command)
{
        static const struct option common[] = {
                { .name = "json", .help = "print one JSON document; errors are JSON as well" },
                { .name = "help", .letter = 'h', .help = "show this" },
        };

        printf("Usage: vgpu %s %s%s[--json]\n\n%s", command->name, command->usage,
               *command->usage ? " " : "", command->description);
        print_pairs(command->name);
        puts("\nOptions:");
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

static void print_group(size_t group)
{
        printf("\n%s:\n", groups[group].title);
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (commands[i].group == group && !get_second(commands[i].command))
                        printf("  %-12s %s\n", commands[i].command->name,
                               commands[i].command->summary);
}

void command_print_all(void)
{
        printf("Usage: vgpu COMMAND [OPTION]...\n"
               "Virtual GPUs that are shared, suspended, resumed and moved while their programs "
               "run.\n");
        for (size_t i = 0; i < N_GROUPS; i++)
                print_group(i);
        printf("\n"
               "'vgpu help COMMAND' explains a command. Every command takes --help, and --json: one\n"
               "JSON document on standard output.\n"
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
               "  4  a program did not come to rest in time, or is stopped, or 'vgpu wait'\n"
               "     waited in vain; nothing has changed\n"
               "  5  no vgpud answers\n"
               "  6  no permission\n"
               "  7  the vGPU is in the wrong state, or busy\n"
               "'vgpu run' ends with the status of the program; 127 if the program was not\n"
               "found, 126 if it could not be executed.\n");
}
