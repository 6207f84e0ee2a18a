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
        char letter;     /* the short form, or 0 */
        bool may_repeat; /* at most one option of a command */
};

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

/* 'vgpu checkpoint ...' that are commands of their own. */
extern const struct command command_checkpoint_check, command_checkpoint_dump,
        command_checkpoint_load;

extern const struct command command_accounting, command_apply, command_capabilities, command_cdi,
        command_checkpoint, command_create, command_devices, command_env, command_heterogeneous,
        command_class, command_idle, command_info, command_licence, command_logs, command_ls,
        command_metadata, command_migrate, command_placements, command_rename, command_resize,
        command_resume, command_rm, command_run, command_sessions, command_show, command_simulate,
        command_suspend, command_top, command_types, command_usage, command_utilization,
        command_version_range;

/* 'vgpu scheduler ...' and the share of a vGPU. */
extern const struct command command_scheduler, command_scheduler_set, command_scheduler_show,
        command_scheduler_log, command_share;

/* All of them, in the order of the help; ends with NULL. */
extern const struct command *const commands[];

/* command_find() - by its whole name; NULL for none. */
const struct command *command_find(const char *name);

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
