/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_INTERNAL_H
#define MANAGER_VIRTUAL_INTERNAL_H

/* A scenario that is being played. For virtual*.c, and for who reserves its slots. */

#include <stdbool.h>
#include <stdint.h>

#include "state/state-page.h"

struct manager;
struct scenario;

struct virtual_process {
        bool is_running, has_account;
        uint64_t start_us; /* CLOCK_REALTIME */
        uint64_t memory_used;
        uint64_t account_number; /* in the ring */
        struct state_account account;
};

struct virtual_vgpu {
        bool is_there;
        uint32_t encoder_capacity;
        uint32_t vgpu_version; /* agreed on when it came: the highest of what was in force */
        uint32_t first_process, first_encoder_session, first_capture_session; /* slots */
        struct virtual_process *processes;
        uint64_t run_total_ns; /* for the scheduler's log */
};

/* Sums of what is there now. */
struct virtual_device {
        struct state_sample sum;
        uint64_t used;
        uint32_t n_instances;
};

/* Of the scenario, in each table of the state page. */
struct virtual_count {
        uint32_t vgpus, processes, encoder_sessions, capture_sessions;
};

struct virtual_stage {
        struct manager *manager;
        struct state_page *state_page;
        const struct scenario *scenario;
        uint64_t start_ns;  /* CLOCK_MONOTONIC */
        uint64_t start_us;  /* CLOCK_REALTIME */
        uint64_t now_us;    /* CLOCK_REALTIME */
        uint64_t period_ns; /* since the last time */
        double at;          /* seconds since the start */
        struct virtual_count count;
        struct virtual_vgpu *vgpus;
        struct virtual_device devices[STATE_DEVICES_MAX];
        uint32_t next_gpu_instance, next_compute_instance; /* slots that are tried first */
        double *next_event[STATE_DEVICES_MAX]; /* seconds, of each of a device's; INFINITY: none */
};

#endif
