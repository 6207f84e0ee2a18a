/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table says what an option is called, what it wants and what it is for; getopt's own table
 * and the help text are made from it, so they cannot disagree. The keys of a configuration file are the
 * names of the options in it.
 *
 * The command line is read twice: first alone, as it may say where the configuration is; then over what
 * the configuration says.
 */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/configuration.h"
#include "base/size.h"
#include "base/text.h"
#include "state/state-page.h"

/* A year, and the time to argue about its bill. */
#define KEEP_USAGE_DAYS 400

#define DAYS_MAX 36500

/* The host has so many vGPUs; one user shall not have them all. */
#define USER_VGPUS 64

/* So much of the time is lost at most to vGPUs that come and go, whatever their programs do. */
#define SWAP_PERCENT 10

/*
 * A twelfth of a PCIe 5 bus: neighbours notice nothing, and 10 % of 32 GiB have followed within a second. The
 * slowest bus that we know carries three times as much.
 */
#define REFRESH_RATE (4 * GIB)

enum {
        OPTION_SIMULATE = 256,
        OPTION_SCENARIO,
        OPTION_RUN_DIR,
        OPTION_STATE_DIR,
        OPTION_DRIVER,
        OPTION_POOL_LIMIT,
        OPTION_CLEAN_COPIES,
        OPTION_REFRESH,
        OPTION_SLAB_SIZE,
        OPTION_SPILL,
        OPTION_SPILL_LIMIT,
        OPTION_KEEP_USAGE,
        OPTION_TURNS,
        OPTION_GROUP,
        OPTION_WATCHERS,
        OPTION_STEWARDS,
        OPTION_USER_VGPUS,
        OPTION_USER_FRAME_BUFFER,
        OPTION_CDI,
        OPTION_CDI_NEW,
        OPTION_SWAP_TIME,
        OPTION_OVERCOMMIT,
        OPTION_PIN_AHEAD,
        OPTION_LEAVE_OUT,
        OPTION_STRICT,
        OPTION_LOG_LEVEL,
        OPTION_LOG_FORMAT,
        OPTION_CONFIG, /* this one and what follows stand on the command line alone */
        OPTION_CHECK_CONFIG,
        OPTION_HELP,
        OPTION_VERSION
};

static const struct {
        const char *name, *argument, *help;
        int value;
} table[] = {
        { "simulate", "NxNAME[:SIZE]",
          "simulate GPUs, e.g. 2xH200 or 2xH200:1G; needs neither a GPU nor root",
          OPTION_SIMULATE },
        { "scenario", "FILE",
          "simulate the GPUs that FILE describes, and vGPUs that only NVML shows",
          OPTION_SCENARIO },
        { "run-dir", "DIR",
          "sockets and state page (default: $OPENVGPU_RUN, /run/openvgpu for root)",
          OPTION_RUN_DIR },
        { "state-dir", "DIR",
          "folder for databases (default: $OPENVGPU_STATE, /var/lib/openvgpu for root)",
          OPTION_STATE_DIR },
        { "driver", "FILE", "the libcuda.so.1 to use (default: the system's)", OPTION_DRIVER },
        { "pool-limit", "SIZE", "most host memory for suspended vGPUs (default: a quarter of RAM)",
          OPTION_POOL_LIMIT },
        { "clean-copies", "HOW",
          "what the pool has of resumed vGPUs: keep (default), verify (each byte) or off",
          OPTION_CLEAN_COPIES },
        { "refresh", "RATE",
          "how fast, in bytes a second, they follow idle vGPUs at most (default: 4G; 0: not)",
          OPTION_REFRESH },
        { "slab-size", "SIZE", "size of the pool's pieces, a multiple of 2M (default: 256M)",
          OPTION_SLAB_SIZE },
        { "spill", "DIR",
          "where memory of suspended vGPUs goes when the pool is full (default: nowhere)",
          OPTION_SPILL },
        { "spill-limit", "SIZE", "most of it there (default: what the disk has)",
          OPTION_SPILL_LIMIT },
        { "keep-usage", "DAYS", "how long the ledger remembers (default: 400; 0: for ever)",
          OPTION_KEEP_USAGE },
        { "turns", "HOW", "how vGPUs take turns: hardware (default) or gate, the fallback",
          OPTION_TURNS },
        { "group", "GROUP", "restrict vgpud to root and the members of GROUP (default: everybody)",
          OPTION_GROUP },
        { "watchers", "GROUP", "let the members of GROUP see the usage and events of all users",
          OPTION_WATCHERS },
        { "stewards", "GROUP", "let them also suspend, resume and move all vGPUs, and set shares",
          OPTION_STEWARDS },
        { "user-vgpus", "N", "most vGPUs of one user other than root (default: 64; 0: no limit)",
          OPTION_USER_VGPUS },
        { "user-frame-buffer", "SIZE",
          "most frame buffer of one user other than root (default: no limit)",
          OPTION_USER_FRAME_BUFFER },
        { "cdi", "FILE", "keep FILE for container engines, e.g. /var/run/cdi/openvgpu.json",
          OPTION_CDI },
        { "cdi-new", "SIZE[:SHARE]",
          "let a container have a vGPU made, at most so large (default: none is made)",
          OPTION_CDI_NEW },
        { "swap-time", "PERCENT",
          "most time that a vGPU that leaves by itself is on its way (default: 10)",
          OPTION_SWAP_TIME },
        { "overcommit", "DEVICES",
          "GPUs that may promise more than they have: all, none (default) or 0,2,...",
          OPTION_OVERCOMMIT },
        { "pin-ahead", "DEVICES",
          "GPUs to make ready for vGPUs of other GPUs: all, none (default) or 0,2,...",
          OPTION_PIN_AHEAD },
        { "leave-out", "DEVICES", "GPUs for others, with no vGPUs: none (default) or 0,2,...",
          OPTION_LEAVE_OUT },
        { "strict", "WHAT",
          "end processes of vGPUs that use a GPU past the gate: on or off (default)",
          OPTION_STRICT },
        { "log-level", "LEVEL", "error, warning, notice, info (default) or debug",
          OPTION_LOG_LEVEL },
        { "log-format", "FORMAT", "text (default) or json, an object for each line",
          OPTION_LOG_FORMAT },
        { "config", "FILE",
          "read FILE and FILE.d/*.conf first (default for root: /etc/openvgpu/vgpud.conf)",
          OPTION_CONFIG },
        { "check-config", NULL, "say whether the configuration is right, and exit",
          OPTION_CHECK_CONFIG },
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
        printf("\nSizes: 512M, 1.5G, 40GiB. Talk to it with `vgpu`.\n"
               "For users other than root, the default of --run-dir is $XDG_RUNTIME_DIR/openvgpu, or /tmp/openvgpu-UID, and that of\n"
               "--state-dir is $XDG_STATE_HOME/openvgpu, or ~/.local/state/openvgpu.\n");
}

static void complain(const struct configuration_place *place, const char *message, void *userdata)
{
        char where[CONFIGURATION_WHERE_MAX];
        (void)userdata;

        fprintf(stderr, "vgpud: %s: %s\n", configuration_where(where, place), message);
}

static bool bad(const struct configuration_place *place, const char *value, const char *wanted)
{
        configuration_complain(place, "'%s' is not %s", value, wanted);
        return false;
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

static bool set_path(char *path, const struct configuration_place *place, const char *value)
{
        /* A path in a file does not mean wherever vgpud happens to be started. */
        if (*value == '\0' || (place->file && *value != '/') || make_absolute(path, value) < 0)
                return bad(place, value, place->file ? "an absolute path" : "a usable path");
        return true;
}

static bool set_size(uint64_t *size, const struct configuration_place *place, const char *value)
{
        if (size_parse(size, value) < 0 || *size == 0 || size_lacks_unit(value))
                return bad(place, value, "a size such as 32G");
        return true;
}

static bool set_slab_size(struct options *options, const struct configuration_place *place,
                          const char *value)
{
        if (size_parse(&options->slab_size, value) < 0 || options->slab_size == 0 ||
            options->slab_size % (2 * MIB) != 0)
                return bad(place, value, "a multiple of 2M");
        return true;
}

static bool set_number(uint32_t *number, const struct configuration_place *place, const char *value,
                       unsigned long max, const char *wanted)
{
        char *end;
        unsigned long given = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end || given > max)
                return bad(place, value, wanted);
        *number = (uint32_t)given;
        return true;
}

static bool set_group(bool *has_group, gid_t *gid, const struct configuration_place *place,
                      const char *value)
{
        const struct group *group = getgrnam(value);

        if (!group)
                return bad(place, value, "a group of this machine");
        *has_group = true;
        *gid = group->gr_gid;
        return true;
}

static bool set_turns(struct options *options, const struct configuration_place *place,
                      const char *value)
{
        options->has_gate_turns = strcmp(value, "gate") == 0;
        if (!options->has_gate_turns && strcmp(value, "hardware") != 0)
                return bad(place, value, "hardware or gate");
        return true;
}

static bool set_clean_copies(struct options *options, const struct configuration_place *place,
                             const char *value)
{
        static const char *const names[] = { [OPTIONS_CLEAN_COPIES_KEEP] = "keep",
                                             [OPTIONS_CLEAN_COPIES_VERIFY] = "verify",
                                             [OPTIONS_CLEAN_COPIES_OFF] = "off" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                if (strcmp(value, names[i]) != 0)
                        continue;
                options->clean_copies = (enum options_clean_copies)i;
                return true;
        }
        return bad(place, value, "keep, verify or off");
}

static bool set_refresh(struct options *options, const struct configuration_place *place,
                        const char *value)
{
        uint64_t rate;

        if (size_parse(&rate, value) < 0 || (rate > 0 && rate < MIB))
                return bad(place, value, "a size such as 4G, 1M at least, or 0");
        options->refresh_rate = rate;
        return true;
}

static bool set_log_level(struct options *options, const struct configuration_place *place,
                          const char *value)
{
        if (log_level_parse(&options->log_level, value) < 0)
                return bad(place, value, "error, warning, notice, info or debug");
        return true;
}

static bool set_log_format(struct options *options, const struct configuration_place *place,
                           const char *value)
{
        options->is_log_json = strcmp(value, "json") == 0;
        if (!options->is_log_json && strcmp(value, "text") != 0)
                return bad(place, value, "text or json");
        return true;
}

/* Takes "0,2" apart; false: it is something else. */
static bool parse_devices(uint64_t *devices, const char *text)
{
        *devices = 0;
        for (;;) {
                char *end;
                unsigned long index = strtoul(text, &end, 10);

                if (*text < '0' || *text > '9' || index >= STATE_DEVICES_MAX)
                        return false;
                *devices |= 1ull << index;
                if (*end == '\0')
                        return true;
                if (*end != ',')
                        return false;
                text = end + 1;
        }
}

static bool set_devices(uint64_t *devices, const struct configuration_place *place,
                        const char *value)
{
        if (strcmp(value, "all") == 0)
                *devices = UINT64_MAX;
        else if (strcmp(value, "none") == 0)
                *devices = 0;
        else if (!parse_devices(devices, value))
                return bad(place, value, "all, none, or the indices of devices, such as 0,2");
        return true;
}

static bool set_strict(struct options *options, const struct configuration_place *place,
                       const char *value)
{
        options->is_strict = strcmp(value, "on") == 0;
        return options->is_strict || strcmp(value, "off") == 0 || bad(place, value, "on or off");
}

static bool set_swap_time(struct options *options, const struct configuration_place *place,
                          const char *value)
{
        static const char wanted[] = "a percentage, 1 to 100";

        if (!set_number(&options->swap_percent, place, value, 100, wanted))
                return false;
        return options->swap_percent > 0 || bad(place, value, wanted);
}

static bool set_simulate(struct options *options, const struct configuration_place *place,
                         const char *value)
{
        if (snprintf(options->simulate_text, sizeof(options->simulate_text), "%s", value) >=
            (int)sizeof(options->simulate_text))
                return bad(place, value, "such as 2xH200 or 2xH200:1G");
        options->simulate = options->simulate_text;
        return true;
}

/* "20G", or "20G:25" with percent. */
static bool set_cdi_new(struct options *options, const struct configuration_place *place,
                        const char *value)
{
        static const char wanted[] = "a size such as 20G, or with percent of the time, as 20G:25";
        const char *colon = strchr(value, ':');
        char size[32];

        snprintf(size, sizeof(size), "%.*s", (int)(colon ? colon - value : 31), value);
        options->cdi_new_share = 0;
        if (size_parse(&options->cdi_new, size) < 0 || options->cdi_new == 0 ||
            size_lacks_unit(size))
                return bad(place, value, wanted);
        return !colon || set_number(&options->cdi_new_share, place, colon + 1, 100, wanted);
}

/* Where the path that an option says is kept; NULL: it says something else. */
static char *get_path(struct options *options, int value)
{
        switch (value) {
        case OPTION_SCENARIO:
                return options->scenario_path;
        case OPTION_RUN_DIR:
                return options->run_directory;
        case OPTION_STATE_DIR:
                return options->state_directory;
        case OPTION_DRIVER:
                return options->driver_path;
        case OPTION_SPILL:
                return options->spill_directory;
        case OPTION_CDI:
                return options->cdi_path;
        case OPTION_CONFIG:
                return options->config_path;
        }
        return NULL;
}

static bool set_option(struct options *options, const struct configuration_place *place, int value,
                       const char *argument)
{
        char *path = get_path(options, value);

        if (path)
                return set_path(path, place, argument);
        switch (value) {
        case OPTION_SIMULATE:
                return set_simulate(options, place, argument);
        case OPTION_POOL_LIMIT:
                return set_size(&options->pool_limit, place, argument);
        case OPTION_CLEAN_COPIES:
                return set_clean_copies(options, place, argument);
        case OPTION_REFRESH:
                return set_refresh(options, place, argument);
        case OPTION_SLAB_SIZE:
                return set_slab_size(options, place, argument);
        case OPTION_SPILL_LIMIT:
                return set_size(&options->spill_limit, place, argument);
        case OPTION_KEEP_USAGE:
                return set_number(&options->keep_usage_days, place, argument, DAYS_MAX,
                                  "a number of days, 0 to 36500");
        case OPTION_TURNS:
                return set_turns(options, place, argument);
        case OPTION_GROUP:
                return set_group(&options->has_group, &options->group, place, argument);
        case OPTION_WATCHERS:
                return set_group(&options->has_watchers, &options->watchers, place, argument);
        case OPTION_STEWARDS:
                return set_group(&options->has_stewards, &options->stewards, place, argument);
        case OPTION_USER_VGPUS:
                return set_number(&options->user_vgpus, place, argument, STATE_INSTANCES_MAX,
                                  "a number of vGPUs, 0 to 4096");
        case OPTION_USER_FRAME_BUFFER:
                return set_size(&options->user_frame_buffer, place, argument);
        case OPTION_CDI_NEW:
                return set_cdi_new(options, place, argument);
        case OPTION_SWAP_TIME:
                return set_swap_time(options, place, argument);
        case OPTION_OVERCOMMIT:
                return set_devices(&options->overcommit, place, argument);
        case OPTION_PIN_AHEAD:
                return set_devices(&options->pin_ahead, place, argument);
        case OPTION_LEAVE_OUT:
                return set_devices(&options->leave_out, place, argument);
        case OPTION_STRICT:
                return set_strict(options, place, argument);
        case OPTION_LOG_LEVEL:
                return set_log_level(options, place, argument);
        case OPTION_LOG_FORMAT:
                return set_log_format(options, place, argument);
        case OPTION_CHECK_CONFIG:
                options->is_check = true;
                return true;
        }
        return false;
}

static enum options_verdict set_defaults(struct options *options)
{
        char run[PATHS_MAX], state[PATHS_MAX], private[PATHS_MAX];

        *options = (struct options){ .argc = options->argc,
                                     .argv = options->argv,
                                     .log_level = LOG_LEVEL_INFO,
                                     .keep_usage_days = KEEP_USAGE_DAYS,
                                     .user_vgpus = USER_VGPUS,
                                     .refresh_rate = REFRESH_RATE,
                                     .swap_percent = SWAP_PERCENT };
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

/* The command line. */

static size_t find_option(int value)
{
        size_t i = 0;

        while (table[i].value != value)
                i++;
        return i;
}

/* Of those whose values are less than @end. */
static const char *find_similar(const char *name, int end)
{
        const char *similar = NULL;
        size_t least = TEXT_LEAST;

        for (size_t i = 0; i < N_OPTIONS; i++)
                if (table[i].value < end && text_is_closer(name, table[i].name, &least))
                        similar = table[i].name;
        return similar;
}

/* getopt has named the bad option already. */
static void suggest(const char *word)
{
        const char *similar = NULL;
        char name[64];

        if (strncmp(word, "--", 2) == 0) {
                snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
                similar = find_similar(name, INT_MAX);
        }
        if (similar && strcmp(similar, name) != 0)
                fprintf(stderr, "hint: did you mean '--%s'?\n", similar);
        else
                fprintf(stderr, "Try 'vgpud --help'.\n");
}

static enum options_verdict take_word(struct options *options, int value, const char *argument)
{
        static const struct configuration_kind words = { .complain = complain };
        struct configuration_place place = { .kind = &words };

        switch (value) {
        case OPTION_HELP:
                print_help();
                return OPTIONS_DONE;
        case OPTION_VERSION:
                printf("vgpud %s\n", OPENVGPU_VERSION);
                return OPTIONS_DONE;
        case '?':
                suggest(options->argv[optind - 1]);
                return OPTIONS_BAD;
        }
        place.key = table[find_option(value)].name;
        return set_option(options, &place, value, argument) ? OPTIONS_RUN : OPTIONS_BAD;
}

static enum options_verdict take_words(struct options *options)
{
        struct option longs[N_OPTIONS + 1] = { 0 };
        enum options_verdict verdict = OPTIONS_RUN;

        for (size_t i = 0; i < N_OPTIONS; i++)
                longs[i] = (struct option){ table[i].name,
                                            table[i].argument ? required_argument : no_argument,
                                            NULL, table[i].value };
        optind = 0;
        while (verdict == OPTIONS_RUN) {
                int value = getopt_long(options->argc, options->argv, "", longs, NULL);

                if (value < 0)
                        break;
                verdict = take_word(options, value, optarg);
        }
        if (verdict == OPTIONS_RUN && optind < options->argc) {
                fprintf(stderr, "vgpud: unexpected '%s'\nTry 'vgpud --help'.\n",
                        options->argv[optind]);
                return OPTIONS_BAD;
        }
        return verdict;
}

/* What GPUs there are is said once. */
static bool check_source(const struct options *options)
{
        const char *first = options->scenario_path[0] ? "scenario" : "simulate";
        const char *second = options->driver_path[0] ? "driver" : "simulate";

        if (!!options->simulate + !!options->driver_path[0] + !!options->scenario_path[0] < 2)
                return true;
        fprintf(stderr, "vgpud: --%s and --%s exclude each other\n", first, second);
        return false;
}

static bool check_spill(const struct options *options)
{
        if (options->spill_directory[0] || options->spill_limit == 0)
                return true;
        fprintf(stderr, "vgpud: --spill-limit needs --spill, which says where\n");
        return false;
}

static bool check_cdi(const struct options *options)
{
        if (options->cdi_path[0] || options->cdi_new == 0)
                return true;
        fprintf(stderr, "vgpud: --cdi-new needs --cdi, which says where container engines read of "
                        "it, as /var/run/cdi/openvgpu.json\n");
        return false;
}

static bool has_source(const struct options *options)
{
        return options->simulate || options->driver_path[0] || options->scenario_path[0];
}

/* Files. */

struct reading {
        struct options *options;
        const char *file; /* which @lines are of */
        unsigned int lines[N_OPTIONS];
};

static bool complain_unknown(const struct configuration_place *place)
{
        const char *similar = find_similar(place->key, OPTION_CONFIG);
        struct configuration_place line = *place;

        line.key = NULL;
        configuration_complain(&line,
                               similar ? "unknown key '%s'; did you mean '%s'?"
                                       : "unknown key '%s'; see vgpud.conf(5)",
                               place->key, similar);
        return false;
}

static bool take_setting(const struct configuration_place *place, const char *value, void *userdata)
{
        struct reading *reading = userdata;
        size_t i = 0;

        if (reading->file != place->file)
                *reading = (struct reading){ .options = reading->options, .file = place->file };
        while (i < N_OPTIONS &&
               (strcmp(table[i].name, place->key) != 0 || table[i].value >= OPTION_CONFIG))
                i++;
        if (i == N_OPTIONS)
                return complain_unknown(place);
        if (reading->lines[i]) {
                configuration_complain(place, "given twice, first in line %u", reading->lines[i]);
                return false;
        }
        reading->lines[i] = place->line;
        return set_option(reading->options, place, table[i].value, value);
}

/*
 * What root starts for real GPUs, where clients look, is the manager of the machine, and has its
 * configuration. Any other is somebody's trial and has none, unless it is named.
 */
static bool is_of_machine(const struct options *options)
{
        return geteuid() == 0 && !options->simulate && !options->scenario_path[0] &&
               strcmp(options->run_directory, "/run/openvgpu") == 0;
}

static enum options_verdict configure(struct options *options)
{
        static const struct configuration_kind files = { .set = take_setting,
                                                         .complain = complain };
        bool is_named = options->config_path[0], is_check = options->is_check;
        char path[PATHS_MAX];
        struct reading reading = { .options = options };
        size_t n = 0;

        if (!is_named && !is_check && !is_of_machine(options))
                return OPTIONS_RUN;
        snprintf(path, sizeof(path), "%s", is_named ? options->config_path : OPTIONS_CONFIG);
        if (set_defaults(options) != OPTIONS_RUN ||
            !configuration_read(path, !is_named, &files, &reading, &n) || !check_source(options))
                return OPTIONS_BAD;
        snprintf(options->config_path, sizeof(options->config_path), "%s", path);
        options->n_config_files = n;
        return is_check ? OPTIONS_CHECK : OPTIONS_RUN;
}

/* Over what the configuration says. Whoever names GPUs here does not mean the others as well. */
static enum options_verdict take_words_again(struct options *options, bool names_source)
{
        if (names_source) {
                options->simulate = NULL;
                options->driver_path[0] = options->scenario_path[0] = '\0';
        }
        return take_words(options);
}

enum options_verdict options_parse(struct options *options, int argc, char **argv)
{
        enum options_verdict verdict = set_defaults(options);
        bool names_source;

        options->argc = argc;
        options->argv = argv;
        if (verdict == OPTIONS_RUN)
                verdict = take_words(options);
        if (verdict == OPTIONS_RUN && !check_source(options))
                verdict = OPTIONS_BAD;
        names_source = has_source(options);
        if (verdict == OPTIONS_RUN)
                verdict = configure(options);
        if (verdict == OPTIONS_RUN && options->config_path[0])
                verdict = take_words_again(options, names_source);
        if ((verdict == OPTIONS_RUN || verdict == OPTIONS_CHECK) &&
            !(check_spill(options) && check_cdi(options)))
                verdict = OPTIONS_BAD;
        return verdict;
}
