/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_MONITOR_H
#define STATE_MONITOR_H

/*
 * The records of the state page for monitoring: what the manager knows of itself, of devices, vGPUs and
 * processes, and NVML has no question for. Whoever reads them asks the manager nothing.
 *
 * What grows with the clock alone (how long a vGPU has been idle) is told by its beginning, so that a
 * record is written only when something has happened.
 */

#include <stdint.h>

#include "state/device.h"

#define STATE_WORD_MAX       16 /* a word of ours, or the beginning of a container's id */
#define STATE_OPERATIONS_MAX 16 /* kinds of operations, times results */
#define STATE_BUCKETS_MAX    16

struct state_percents { /* of the device, in the last period */
        uint32_t gpu, memory, encoder, decoder, jpeg, ofa;
};

/* Bytes; as in struct vgpu_pool (openvgpu/manager.h). */
struct state_pool {
        uint64_t limit, size, ready, used, held, spare, saved, spilled, spill_limit;
};

/* In use once vgpud has put in order what a former one left. */
struct state_manager {
        uint64_t started_ns; /* CLOCK_REALTIME */
        struct state_pool pool;
        uint64_t descriptors_used, descriptors_limit;
        uint32_t cuda_driver_version;
        uint32_t is_ledger_working;
        uint32_t n_buckets, n_byte_buckets;
        double bucket[STATE_BUCKETS_MAX]; /* bounds: seconds that an operation took; bytes */
        uint64_t byte_bucket[STATE_BUCKETS_MAX];
        char version[STATE_LABEL_MAX];
};

/* The operations of one kind that ended in one way, since the manager began. */
struct state_operation {
        uint64_t n, ns, bytes;
        uint64_t bucket[STATE_BUCKETS_MAX]; /* that took no longer than the bound */
        uint64_t byte_bucket[STATE_BUCKETS_MAX];
        uint64_t last_ns, last_bytes, last_at_ns; /* CLOCK_REALTIME */
        uint64_t n_ahead, n_ahead_rounds, ahead_bytes, ahead_ns, ahead_stopped_ns; /* pre-copies */
        char kind[STATE_WORD_MAX];
        char result[STATE_WORD_MAX];
        char last_vgpu[STATE_NAME_MAX]; /* "": there was none yet */
};

/* Of a device that is not only a scenario's: beside struct state_device. */
struct state_device_use {
        uint64_t memory_used, memory_promised, memory_swapped; /* bytes */
        uint64_t n_turns;
        struct state_percents percent;
        uint32_t is_overcommitted;
        uint32_t reserved;
        char source[STATE_WORD_MAX];     /* of its GPU time */
        char turns_mode[STATE_WORD_MAX]; /* how turns are enforced */
};

/* A vGPU as a whole, in the slot of its first instance; a scenario's has none. */
struct state_vgpu {
        uint32_t id;
        uint32_t device; /* index of the one on which it is shown */
        uint32_t
                state; /* enum state_instance_state; RUNNING: also before its program came to CUDA */
        uint32_t owner; /* user id */
        uint32_t share; /* percent; 0: none */
        uint32_t n_programs;
        uint32_t is_waiting;           /* for memory of its device */
        uint32_t n_parts;              /* of it, each on a device of its own */
        uint32_t n_whole, n_unwhole;   /* processes: of enum instance_page_whole */
        struct state_percents percent; /* of all its devices' time, as the next */
        double entitled;
        uint64_t frame_buffer, frame_buffer_used, host_memory;
        uint64_t gpu_ns;           /* since the manager began, as all sums */
        uint64_t idle_since_ns;    /* CLOCK_MONOTONIC; 0: it has work, or may not leave */
        uint64_t resident_ns;      /* its time on devices; while it is on one 0, and as if it had */
        uint64_t present_since_ns; /* been there without a break since then, CLOCK_MONOTONIC */
        uint64_t n_swaps, swapped_bytes, n_waits, waited_ns;
        char swap_class[STATE_WORD_MAX];
        char container[STATE_WORD_MAX]; /* that all of its processes are in; "": none */
        char uuid[STATE_UUID_MAX];
        char name[STATE_NAME_MAX];
};

/* What a vGPU has of one of its devices: in the slot of that instance. */
struct state_vgpu_part {
        uint32_t vgpu; /* slot of the table of vGPUs */
        uint32_t vgpu_id;
        uint32_t number; /* from 0 on, as its programs count its devices */
        uint32_t id;     /* NVML's vGPU instance id */
        uint32_t device; /* index */
        uint32_t reserved;
        struct state_percents percent;
        double entitled; /* percent of the device's time */
        uint64_t frame_buffer_used;
        uint64_t gpu_ns;
};

/* Beside struct state_process, in the slot that the process has of its first device. */
struct state_process_use {
        uint32_t vgpu; /* slot of the table of vGPUs */
        uint32_t vgpu_id;
        uint32_t utilization_gpu; /* percent of the time of all its devices */
        uint32_t reserved;
        uint64_t gpu_ns;      /* since it joined */
        uint64_t memory_used; /* bytes, of all devices */
        char container[STATE_WORD_MAX];
};

#endif
