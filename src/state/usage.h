/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_USAGE_H
#define STATE_USAGE_H

/*
 * Use of devices: processes, encoder and capture sessions, samples over time, and
 * the accounts of processes that run or ran.
 *
 * Entries of a ring (state_sample, state_account, state_turn) are numbered from 0 on, for ever;
 * only the last ones can still be read. An entry names its owner: an entry of another instance or
 * process than the one asked for is an older one.
 */

#include "state/device.h"

#define STATE_PROCESSES_MAX        32768
#define STATE_ENCODER_SESSIONS_MAX 1024
#define STATE_CAPTURE_SESSIONS_MAX 1024
#define STATE_SAMPLES_MAX          128
#define STATE_ACCOUNTS_MAX         4000

enum state_process_kind { STATE_COMPUTE = 1, STATE_GRAPHICS = 2 }; /* bits */

struct state_process {
        uint32_t pid;      /* that a guest knows */
        uint32_t instance; /* id */
        uint32_t device;
        uint32_t utilization_gpu; /* percent of the device */
        uint32_t utilization_memory, utilization_encoder, utilization_decoder, utilization_jpeg,
                utilization_ofa;
        uint32_t kind;        /* bits: enum state_process_kind; 0: compute */
        uint64_t memory_used; /* bytes */
        uint64_t start_ns;    /* CLOCK_REALTIME */
        char name[STATE_NAME_MAX];
};

/* One period of a device (instance 0), an instance (pid 0) or a process; percent of the device. */
struct state_sample {
        uint64_t timestamp_us; /* CLOCK_REALTIME, the end of the period */
        uint32_t instance, pid;
        uint32_t gpu, memory, encoder, decoder, jpeg, ofa;
};

/* The life of a process. Those that ended come in the order of their ends. */
struct state_account {
        uint32_t instance, pid;
        uint32_t is_running;
        uint32_t utilization_gpu, utilization_memory; /* averages, percent; NONE: not known */
        uint32_t n_samples;
        uint64_t sum_gpu, sum_memory; /* of the samples */
        uint64_t max_memory;          /* bytes */
        uint64_t time_ms;             /* active; 0 while it runs */
        uint64_t start_us;            /* CLOCK_REALTIME */
};

struct state_encoder_session {
        uint32_t instance, device;
        uint32_t id, pid;
        uint32_t codec; /* NVML's: 0 H.264, 1 HEVC, 2 AV1, 255 unknown */
        uint32_t width, height;
        uint32_t fps, latency; /* averages of a second; us */
        uint32_t reserved;
        uint64_t start_us;
};

struct state_capture_session {
        uint32_t instance, device;
        uint32_t id, pid;
        uint32_t display;
        uint32_t kind;  /* NVML's: 0 unknown, 1 system memory, 2 CUDA, 3 video, 4 encoder */
        uint32_t flags; /* NVML's bits */
        uint32_t max_width, max_height;
        uint32_t width, height; /* 0 before the first frame, as the following */
        uint32_t fps, latency;
        uint32_t reserved;
        uint64_t start_us;
};

#endif
