/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_PARTS_H
#define SCENARIO_PARTS_H

/* The structs that a scenario consists of. */

#include "catalog/catalog.h"
#include "scenario/curve.h"
#include "state/state-page.h"

#define SCENARIO_VERSION       1
#define SCENARIO_PROCESSES_MAX 1024 /* of all vGPUs */
#define SCENARIO_VGPUS_MAX     128
#define SCENARIO_LEAST_ID      1000        /* smaller ones are live vGPUs' */
#define SCENARIO_FIRST_ID      3251634000u /* of the vGPUs that were given none */
#define SCENARIO_NOTHING       UINT32_MAX  /* a number that was not given */

/* When something is there: from @from on, until @until (0: for ever). Seconds. */
struct scenario_life {
        double from, until;
};

struct scenario_utilization {
        struct curve gpu, memory, encoder, decoder, jpeg, ofa; /* percent of the device */
};

struct scenario_process {
        uint32_t pid;
        uint32_t kind; /* STATE_COMPUTE, STATE_GRAPHICS */
        char name[STATE_NAME_MAX];
        struct scenario_life life;
        struct curve memory; /* bytes */
        struct scenario_utilization utilization;
};

struct scenario_encoder_session {
        struct state_encoder_session record;
        struct scenario_life life;
        struct curve fps, latency;
};

struct scenario_capture_session {
        struct state_capture_session record;
        struct scenario_life life;
        struct curve fps, latency;
};

struct scenario_scheduler {
        uint32_t engine, policy, arr; /* arr: 0 or 1; NOTHING */
        uint32_t averaging_factor, frequency, time_slice;
};

struct scenario_vgpu {
        uint32_t device;
        uint32_t id;
        char name[STATE_NAME_MAX];
        char uuid[STATE_UUID_MAX];
        char type_name[STATE_TEXT_MAX];
        struct state_type type; /* that it has */
        uint32_t gpu_instance;
        uint32_t placement;
        uint32_t state; /* enum state_instance_state */
        uint32_t owner;
        struct scenario_life life;
        struct state_vm vm;
        uint32_t guest_driver;
        uint32_t licence;
        uint32_t frame_rate_limit, encoder_capacity;
        state_switch ecc, accounting, can_migrate;
        uint64_t runtime_state_size;
        struct curve memory; /* bytes, besides its processes' */
        struct scenario_utilization utilization;
        struct scenario_process *processes;
        size_t n_processes;
        struct scenario_encoder_session *encoder_sessions;
        size_t n_encoder_sessions;
        struct scenario_capture_session *capture_sessions;
        size_t n_capture_sessions;
        struct state_account *accounts; /* of processes that ended before the scenario began */
        size_t n_accounts;
};

struct scenario_compute_instance {
        uint32_t id;        /* NOTHING: the first that is free */
        uint32_t placement; /* likewise */
        char profile_name[STATE_LABEL_MAX];
        char uuid[STATE_UUID_MAX]; /* "": made up */
        struct state_compute_instance record;
};

struct scenario_gpu_instance {
        uint32_t id;
        uint32_t placement;
        state_switch is_heterogeneous;
        char profile_name[STATE_LABEL_MAX];
        struct state_gpu_instance record;
        struct scenario_scheduler *schedulers;
        size_t n_schedulers;
        struct scenario_compute_instance *compute_instances;
        size_t n_compute_instances;
};

/* What happens to a device. */
struct scenario_event {
        double at, every; /* seconds; @every 0: once */
        uint32_t kind;    /* NVML's bit; 0: operational */
        uint32_t data;
        struct state_operational operational;
};

/* Sensors that were not given are not supported; the names are state_sensors'. */
#define SCENARIO_SENSORS(S)     \
        S(temperature)          \
        S(temperature_slowdown) \
        S(temperature_shutdown) \
        S(fan)                  \
        S(fan_rpm)              \
        S(power)                \
        S(power_limit)          \
        S(power_limit_min)      \
        S(power_limit_max)      \
        S(clock_graphics)       \
        S(clock_sm)             \
        S(clock_memory)         \
        S(clock_video)          \
        S(clock_graphics_max)   \
        S(clock_sm_max)         \
        S(clock_memory_max)     \
        S(clock_video_max)      \
        S(performance_state)    \
        S(pcie_generation)      \
        S(pcie_generation_max)  \
        S(pcie_width)           \
        S(pcie_width_max)       \
        S(pcie_tx)              \
        S(pcie_rx)

/* Counters: uint64_t. */
#define SCENARIO_COUNTERS(C)         \
        C(ecc_corrected_volatile)    \
        C(ecc_corrected_aggregate)   \
        C(ecc_uncorrected_volatile)  \
        C(ecc_uncorrected_aggregate) \
        C(throttled_power)           \
        C(throttled_thermal)         \
        C(throttled_sync_boost)      \
        C(throttled_hw_thermal)      \
        C(throttled_power_brake)

struct scenario_sensors {
#define SENSOR(name) struct curve name;
        SCENARIO_SENSORS(SENSOR)
        SCENARIO_COUNTERS(SENSOR)
#undef SENSOR
};

/* NVLinks. */
struct scenario_fabric {
        uint32_t state; /* NOTHING: as the board */
        uint32_t clique;
        char cluster[STATE_UUID_MAX];
        uint32_t has_degraded_bandwidth, has_route_recovery, has_unhealthy_route;
        uint32_t has_access_timeout_recovery, misconfiguration;
};

struct scenario_links {
        uint32_t n;          /* NOTHING: as the board */
        uint32_t inactive;   /* bits */
        uint32_t peers;      /* bits: devices that they lead to; 0: to switches */
        struct curve tx, rx; /* KiB/s, of all links */
        struct curve errors[STATE_LINK_ERRORS]; /* of each link */
};

struct scenario_device {
        char kind[STATE_LABEL_MAX]; /* of the simulated GPU: "H200" */
        uint64_t memory;            /* bytes; 0: as the real board */
        uint32_t count;
        uint32_t series; /* bits: enum catalog_series */
        state_switch ecc, ecc_pending, mig, is_heterogeneous, accounting, can_migrate;
        uint32_t is_sriov;
        uint32_t capability[STATE_CAPABILITIES];
        struct state_scheduler_limits limits;
        struct state_device_detail texts; /* serial, vbios, part number */
        double lost_at;                   /* seconds; negative: never */
        struct scenario_sensors sensors;
        struct scenario_scheduler *schedulers;
        size_t n_schedulers;
        struct catalog_type *types; /* beside those of the board */
        size_t n_types;
        struct scenario_gpu_instance *gpu_instances;
        size_t n_gpu_instances;
        struct state_features features;
        struct scenario_event *events;
        size_t n_events;
        uint32_t irq; /* 0: made up */
        struct scenario_links links;
        struct scenario_fabric fabric;

        struct state_device record; /* what follows for the board: ids, name, memory */
};

struct scenario {
        char description[512];
        char driver_version[STATE_NAME_MAX];
        struct state_host host;
        struct scenario_device *devices; /* each once, in the order of their indices */
        size_t n_devices;
        struct scenario_vgpu *vgpus;
        size_t n_vgpus;
};

#endif
