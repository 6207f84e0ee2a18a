/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table says what an option is called, what it wants and what it is for; getopt's own table
 * and the help text are made from it, so they cannot disagree.
 */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "board/board.h"

/* A year, and the time to argue about its bill. */
#define KEEP_USAGE_DAYS 400

#define DAYS_MAX 36500

/* The host has so many vGPUs; one user shall not have them all. */
#define USER_VGPUS 64

enum {
        OPTION_SIMULATE = 256,
        OPTION_SCENARIO,
        OPTION_RUN_DIR,
        OPTION_STATE_DIR,
        OPTION_DRIVER,
        OPTION_POOL_LIMIT,
        OPTION_SLAB_SIZE,
        OPTION_KEEP_USAGE,
        OPTION_TURNS,
        OPTION_GROUP,
        OPTION_USER_VGPUS,
        OPTION_USER_FRAME_BUFFER,
        OPTION_LOG_LEVEL,
        OPTION_HELP,
        OPTION_VERSION
};

static const struct {
        const char *name, *argument, *help;
        int value;
} table[] = {
        { "simulate", "NxNAME[:SIZE]",
          "simulate GPUs, e.g. 2xH200 or 2xH200:1G; needs no GPU, no root", OPTION_SIMULATE },
        { "scenario", "FILE", "simulate what FILE describes: GPUs, and vGPUs that only NVML shows",
          OPTION_SCENARIO },
        { "run-dir", "DIR", "sockets and board (default: $OPENVGPU_RUN, /run/openvgpu for root)",
          OPTION_RUN_DIR },
        { "state-dir", "DIR",
          "what must last (default: $OPENVGPU_STATE, /var/lib/openvgpu for root)",
          OPTION_STATE_DIR },
        { "driver", "FILE", "the libcuda.so.1 to use (default: the system's)", OPTION_DRIVER },
        { "pool-limit", "SIZE", "host memory for suspended vGPUs (default: a quarter of RAM)",
          OPTION_POOL_LIMIT },
        { "slab-size", "SIZE", "the pool grows in pieces of this, a multiple of 2M (default: 256M)",
          OPTION_SLAB_SIZE },
        { "keep-usage", "DAYS", "how long the ledger remembers (default: 400; 0: for ever)",
          OPTION_KEEP_USAGE },
        { "turns", "HOW", "how vGPUs take turns: hardware (default) or gate, the fallback",
          OPTION_TURNS },
        { "group", "GROUP", "only its members may use vgpud, besides root (default: everybody)",
          OPTION_GROUP },
        { "user-vgpus", "N", "as many vGPUs one user may have, but root (default: 64; 0: no limit)",
          OPTION_USER_VGPUS },
        { "user-frame-buffer", "SIZE", "and of frame buffer, all together (default: no limit)",
          OPTION_USER_FRAME_BUFFER },
        { "log-level", "LEVEL", "error, warning, notice, info (default) or debug",
          OPTION_LOG_LEVEL },
        { "help", NULL, "show this and exit", OPTION_HELP },
        { "version", NULL, "show the version and exit", OPTION_VERSION },
};

#define N_OPTIONS (sizeof(table) / sizeof(table[0]))

static void print_help(void)
{
        printf("Usage: vgpud [OPTION]...\n"
               "The OpenVGPU manager: shares, meters, suspends, resumes and moves virtual GPUs.\n\n");
        for (size_t i = 0; i < N_OPTIONS; i++) {
                char left[40];

                snprintf(left, sizeof(left), "--%s%s%s", table[i].name,
                         table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
                printf("  %-26s %s\n", left, table[i].help);
        }
        printf("\nSizes: 512M, 1.5G, 40GiB. Talk to it with `vgpu`.\n");
}

static enum options_verdict bad(const char *option, const char *value, const char *wanted)
{
        fprintf(stderr, "vgpud: --%s: '%s' is not %s\n", option, value, wanted);
        return OPTIONS_BAD;
}

static int make_absolute(char *path, const char *given)
{
        char here[PATHS_MAX];

        if (given[0] == '/')
                return snprintf(path, PATHS_MAX, "%s", given) < PATHS_MAX ? 0 : -ENAMETOOLONG;
        if (!getcwd(here, sizeof(here)))
                return -errno;
        return paths_join(path, here, given);
}

static enum options_verdict set_path(char *path, const char *option, const char *value)
{
        if (*value == '\0' || make_absolute(path, value) < 0)
                return bad(option, value, "a usable path");
        return OPTIONS_RUN;
}

static enum options_verdict set_size(uint64_t *size, const char *option, const char *value)
{
        if (size_parse(size, value) < 0 || *size == 0)
                return bad(option, value, "a size such as 32G");
        return OPTIONS_RUN;
}

static enum options_verdict set_slab_size(struct options *options, const char *value)
{
        if (size_parse(&options->slab_size, value) < 0 || options->slab_size == 0 ||
            options->slab_size % (2 * MIB) != 0)
                return bad("slab-size", value, "a multiple of 2M");
        return OPTIONS_RUN;
}

static enum options_verdict set_number(uint32_t *number, const char *option, const char *value,
                                       unsigned long max, const char *wanted)
{
        char *end;
        unsigned long given = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end || given > max)
                return bad(option, value, wanted);
        *number = (uint32_t)given;
        return OPTIONS_RUN;
}

static enum options_verdict set_group(struct options *options, const char *value)
{
        const struct group *group = getgrnam(value);

        if (!group)
                return bad("group", value, "a group of this machine");
        options->has_group = true;
        options->group = group->gr_gid;
        return OPTIONS_RUN;
}

static enum options_verdict set_turns(struct options *options, const char *value)
{
        options->has_gate_turns = strcmp(value, "gate") == 0;
        if (!options->has_gate_turns && strcmp(value, "hardware") != 0)
                return bad("turns", value, "hardware or gate");
        return OPTIONS_RUN;
}

static enum options_verdict set_log_level(struct options *options, const char *value)
{
        if (log_level_parse(&options->log_level, value) < 0)
                return bad("log-level", value, "error, warning, notice, info or debug");
        return OPTIONS_RUN;
}

static enum options_verdict set_option(struct options *options, int value, const char *argument)
{
        switch (value) {
        case OPTION_SIMULATE:
                options->simulate = argument;
                return OPTIONS_RUN;
        case OPTION_SCENARIO:
                return set_path(options->scenario_path, "scenario", argument);
        case OPTION_RUN_DIR:
                return set_path(options->run_directory, "run-dir", argument);
        case OPTION_STATE_DIR:
                return set_path(options->state_directory, "state-dir", argument);
        case OPTION_DRIVER:
                return set_path(options->driver_path, "driver", argument);
        case OPTION_POOL_LIMIT:
                return set_size(&options->pool_limit, "pool-limit", argument);
        case OPTION_SLAB_SIZE:
                return set_slab_size(options, argument);
        case OPTION_KEEP_USAGE:
                return set_number(&options->keep_usage_days, "keep-usage", argument, DAYS_MAX,
                                  "a number of days, 0 to 36500");
        case OPTION_TURNS:
                return set_turns(options, argument);
        case OPTION_GROUP:
                return set_group(options, argument);
        case OPTION_USER_VGPUS:
                return set_number(&options->user_vgpus, "user-vgpus", argument, BOARD_INSTANCES_MAX,
                                  "a number of vGPUs, 0 to 4096");
        case OPTION_USER_FRAME_BUFFER:
                return set_size(&options->user_frame_buffer, "user-frame-buffer", argument);
        case OPTION_LOG_LEVEL:
                return set_log_level(options, argument);
        case OPTION_HELP:
                print_help();
                return OPTIONS_DONE;
        case OPTION_VERSION:
                printf("vgpud %s\n", OPENVGPU_VERSION);
                return OPTIONS_DONE;
        }
        fprintf(stderr, "Try 'vgpud --help'.\n"); /* getopt has named the bad option */
        return OPTIONS_BAD;
}

static enum options_verdict set_defaults(struct options *options)
{
        char run[PATHS_MAX], state[PATHS_MAX], private[PATHS_MAX];

        *options = (struct options){ .log_level = LOG_LEVEL_INFO,
                                     .keep_usage_days = KEEP_USAGE_DAYS,
                                     .user_vgpus = USER_VGPUS };
        if (paths_run(run) < 0 || make_absolute(options->run_directory, run) < 0 ||
            paths_state(state) < 0 || make_absolute(options->state_directory, state) < 0 ||
            paths_private(private) < 0 || make_absolute(options->private_directory, private) < 0) {
                fprintf(stderr, access("/proc/self/exe", R_OK) < 0
                                        ? "vgpud: /proc is not mounted\nhint: mount -t proc proc "
                                          "/proc\n"
                                        : "vgpud: a path in $OPENVGPU_RUN, _STATE or _LIB is too "
                                          "long\n");
                return OPTIONS_BAD;
        }
        return OPTIONS_RUN;
}

enum options_verdict options_parse(struct options *options, int argc, char **argv)
{
        struct option longs[N_OPTIONS + 1] = { 0 };
        enum options_verdict verdict = set_defaults(options);

        for (size_t i = 0; i < N_OPTIONS; i++)
                longs[i] = (struct option){ table[i].name,
                                            table[i].argument ? required_argument : no_argument,
                                            NULL, table[i].value };
        optind = 0;
        while (verdict == OPTIONS_RUN) {
                int value = getopt_long(argc, argv, "", longs, NULL);

                if (value < 0)
                        break;
                verdict = set_option(options, value, optarg);
        }
        if (verdict == OPTIONS_RUN && optind < argc) {
                fprintf(stderr, "vgpud: unexpected '%s'\nTry 'vgpud --help'.\n", argv[optind]);
                return OPTIONS_BAD;
        }
        if (verdict == OPTIONS_RUN && options->simulate && options->driver_path[0]) {
                fprintf(stderr, "vgpud: --simulate and --driver exclude each other\n");
                return OPTIONS_BAD;
        }
        if (verdict == OPTIONS_RUN && options->scenario_path[0] &&
            (options->simulate || options->driver_path[0])) {
                fprintf(stderr, "vgpud: --scenario and --%s exclude each other\n",
                        options->simulate ? "simulate" : "driver");
                return OPTIONS_BAD;
        }
        return verdict;
}
