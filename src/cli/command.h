/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/*
 * A command of vgpu: one file each, which describes it in a struct command and runs it.
 *
 * Help, usage errors and the parsing all come from that description, so they cannot disagree.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/client.h>

struct arguments;

/* --json and --help are everyone's and not listed. */
struct option {
        const char *name;     /* without the dashes; NULL ends a list */
        const char *argument; /* as the help calls it; NULL: takes none */
        const char *help;
        char letter;         /* the short form, or 0 */
        bool may_repeat;     /* at most one option of a command */
        const char *same_as; /* another name for this option, which stands before it */
};

/* A quota is memory, whatever NVIDIA calls it. */
#define COMMAND_OPTION_MEMORY                                                                     \
        {                                                                                         \
                .name = "memory", .argument = "SIZE", .same_as = "fb", .help = "the same as --fb" \
        }

#define COMMAND_OPTIONS_MAX 16
#define COMMAND_REPEATS_MAX 32
#define COMMAND_WORDS_ANY   SIZE_MAX

struct command {
        const char *name;
        const char *usage;       /* what follows the name */
        const char *summary;     /* for the list of commands */
        const char *description; /* the rest of the help: lines that end with \n */
        const char *examples;    /* one to three lines that work as typed, one after the other */
        const struct option *options; /* at most COMMAND_OPTIONS_MAX */
        size_t n_words_min;           /* what is no option: names */
        size_t n_words_max;           /* COMMAND_WORDS_ANY: no limit */
        const char *word;             /* what the first of them is, for messages */
        bool takes_program;           /* the first word and all that follows are a program */
        int (*run)(const struct arguments *arguments, struct vgpu_client *client);
};

/*
 * All commands, in the order of the help: the group, and NAME of command_NAME. This line, the file and its
 * line in meson.build are all that a new command needs: help, 'help --json', completion and the synopsis of
 * the man page (tools/gen-synopsis.py) follow.
 */
#define COMMANDS(COMMAND)               \
        COMMAND(DAILY, devices)         \
        COMMAND(DAILY, create)          \
        COMMAND(DAILY, apply)           \
        COMMAND(DAILY, run)             \
        COMMAND(DAILY, ls)              \
        COMMAND(DAILY, show)            \
        COMMAND(DAILY, top)             \
        COMMAND(DAILY, logs)            \
        COMMAND(DAILY, wait)            \
        COMMAND(DAILY, suspend)         \
        COMMAND(DAILY, resume)          \
        COMMAND(DAILY, migrate)         \
        COMMAND(DAILY, rename)          \
        COMMAND(DAILY, resize)          \
        COMMAND(DAILY, rm)              \
        COMMAND(TIME, share)            \
        COMMAND(TIME, scheduler)        \
        COMMAND(TIME, scheduler_show)   \
        COMMAND(TIME, scheduler_set)    \
        COMMAND(TIME, scheduler_log)    \
        COMMAND(TIME, idle)             \
        COMMAND(TIME, class)            \
        COMMAND(BILLING, usage)         \
        COMMAND(BILLING, accounting)    \
        COMMAND(HOST, info)             \
        COMMAND(HOST, env)              \
        COMMAND(HOST, cdi)              \
        COMMAND(HOST, simulate)         \
        COMMAND(HOST, checkpoint)       \
        COMMAND(HOST, checkpoint_dump)  \
        COMMAND(HOST, checkpoint_load)  \
        COMMAND(HOST, checkpoint_check) \
        COMMAND(NVML, nvml)             \
        COMMAND(NVML, types)            \
        COMMAND(NVML, utilization)      \
        COMMAND(NVML, sessions)         \
        COMMAND(NVML, licence)          \
        COMMAND(NVML, metadata)         \
        COMMAND(NVML, placements)       \
        COMMAND(NVML, heterogeneous)    \
        COMMAND(NVML, capabilities)     \
        COMMAND(NVML, version_range)

/* clang-format off */
#define COMMAND_DECLARE(group, name) extern const struct command command_##name;
COMMANDS(COMMAND_DECLARE)
/* clang-format on */

/* command_find() - by its name of one word; NULL for none. What is now 'nvml NAME' is found as NAME, too. */
const struct command *command_find(const char *name);

/* command_asks_manager() - is it no use at all without a vgpud? The others find out by themselves. */
bool command_asks_manager(const struct command *command);

/* command_find_pair() - one whose name is two words; NULL for none. */
const struct command *command_find_pair(const char *first, const char *second);

/* command_find_similar() - what stands behind "vgpu" if @name is meant for it; NULL: nothing is like it. */
const char *command_find_similar(const char *name);

/*
 * command_describe() - as a document: one command, or with NULL all of them. NULL: out of memory.
 */
json_t *command_describe(const char *name, const char *second);

void command_print_help(const struct command *command);
void command_print_all(void);

#endif
