/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

/*
 * The options of vgpud: the configuration files (base/configuration.h) override the defaults, and
 * the command line overrides both.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/paths.h"
#include "daemon/log.h"

/* The files of the machine's own manager, which root starts for real GPUs. */
#define OPTIONS_CONFIG "/etc/openvgpu/vgpud.conf"

/* What stays in the pool of a vGPU that was resumed. */
enum options_clean_copies {
        OPTIONS_CLEAN_COPIES_KEEP,
        OPTIONS_CLEAN_COPIES_VERIFY, /* compare each byte that is not copied again */
        OPTIONS_CLEAN_COPIES_OFF,
};

struct options {
        int argc; /* the command line, to be read again; borrowed */
        char **argv;
        char config_path[PATHS_MAX];       /* absolute; "": no configuration is read */
        size_t n_config_files;             /* that were read */
        bool is_strict;                    /* processes past the gate are ended */
        bool is_check;                     /* only to say whether it is right */
        const char *simulate;              /* "2xH200:1G", or NULL: the real driver */
        char simulate_text[64];            /* what @simulate points to */
        char scenario_path[PATHS_MAX];     /* absolute, or "" */
        char driver_path[PATHS_MAX];       /* "" until somebody finds it */
        char run_directory[PATHS_MAX];     /* absolute */
        char state_directory[PATHS_MAX];   /* absolute */
        char private_directory[PATHS_MAX]; /* absolute */
        uint64_t pool_limit;               /* bytes, 0: a quarter of RAM */
        uint64_t slab_size;                /* bytes, 0: the pool's default */
        char spill_directory[PATHS_MAX]; /* absolute, or "": nothing goes from the pool to a disk */
        uint64_t spill_limit;            /* bytes, 0: as much as the disk has */
        uint32_t keep_usage_days;        /* 0: for ever */
        bool has_group;                  /* only @group, root and ourselves may ask us */
        gid_t group;
        bool has_watchers, has_stewards; /* docs/security.md */
        gid_t watchers, stewards;
        uint32_t user_vgpus;        /* of one user; 0: no limit */
        uint64_t user_frame_buffer; /* bytes, of all vGPUs of one user; 0: no limit */
        char cdi_path[PATHS_MAX];   /* absolute, or "": no vGPUs for containers */
        uint32_t swap_percent; /* of the time, at most, spent on a vGPU that leaves by itself */
        uint64_t overcommit;   /* a bit for each device that may promise more than it has */
        uint64_t pin_ahead; /* a bit for each device that is made ready for the vGPUs of others */
        uint64_t leave_out; /* a bit for each device that has no vGPUs */
        uint64_t cdi_new;   /* bytes, at most, of a vGPU that a container has made; 0: none is */
        uint32_t cdi_new_share; /* percent, at most, of its device's time */
        enum options_clean_copies clean_copies;
        uint64_t
                refresh_rate; /* bytes a second, at most, for copies of idle vGPUs; 0: none are refreshed */
        bool has_gate_turns; /* turns are taken at the gate, not in hardware */
        enum log_level log_level;
        bool is_log_json;
};

enum options_verdict {
        OPTIONS_RUN,   /* go on */
        OPTIONS_DONE,  /* --help or --version was answered */
        OPTIONS_CHECK, /* --check-config: the keys are right; is there what they name? */
        OPTIONS_BAD,   /* said why on stderr: exit with 2 */
};

/* options_parse() - @options borrows @argv and points into itself, so it must not be copied. */
enum options_verdict options_parse(struct options *options, int argc, char **argv);

#endif
