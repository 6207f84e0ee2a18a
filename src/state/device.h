/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_DEVICE_H
#define STATE_DEVICE_H

/*
 * The records of the state page for the host, for a device and for its GPU instances (MIG).
 *
 * Most queries read struct state_device, which stays small; rarely used facts are in records of
 * their own at the same index.
 *
 * A site is what vGPUs are placed on: a device as a whole, or one of its GPU instances. Types
 * on offer and schedulers belong to a site.
 */

#include <stdint.h>

#define STATE_DEVICES_MAX       32
#define STATE_GPU_INSTANCES_MAX 256 /* of all devices */
#define STATE_SITES_MAX         (STATE_DEVICES_MAX + STATE_GPU_INSTANCES_MAX)
#define STATE_PROFILES_MAX      18  /* of a device */
#define STATE_OFFERS_MAX        128 /* types of a site */
#define STATE_ENGINES           3   /* with a scheduler of their own */
#define STATE_SCHEDULER_LOG     200

#define STATE_UUID_MAX  48
#define STATE_NAME_MAX  96
#define STATE_TEXT_MAX  128 /* what NVML has 64, 80 or 128 bytes for */
#define STATE_LABEL_MAX 32

/* A number that there is not or that is not known: NVML says "not supported" or "none". */
#define STATE_NONE UINT32_MAX

/* 0, 1, or STATE_NONE: the device has no such thing. */
typedef uint32_t state_switch;

/* A date in GMT; it counts only with status STATE_EXPIRY_VALID. Numbers are NVML's. */
enum state_expiry_status {
        STATE_EXPIRY_NOT_AVAILABLE = 0,
        STATE_EXPIRY_INVALID,
        STATE_EXPIRY_VALID,
        STATE_EXPIRY_NOT_APPLICABLE,
        STATE_EXPIRY_PERMANENT,
};

struct state_expiry {
        uint32_t status; /* enum state_expiry_status */
        uint16_t year, month, day, hour, minute, second;
};

struct state_host {
        /* Versions of what vGPUs move: major << 16 | minor. */
        uint32_t supported_min, supported_max;
        uint32_t current_min, current_max; /* in force; a part of what is supported */
        uint32_t can_mix_sizes;            /* driver capability: heterogeneous vGPUs */
        uint32_t can_warm_update;          /* driver capability */
        uint32_t reserved[2];
        uint64_t changed_ns; /* CLOCK_REALTIME: the last change of a setting */
};

/* Numbers are NVML's. */
enum state_virtualization {
        STATE_VIRTUALIZATION_NONE = 0,
        STATE_VIRTUALIZATION_PASSTHROUGH,
        STATE_VIRTUALIZATION_VGPU,
        STATE_VIRTUALIZATION_HOST_VGPU,
        STATE_VIRTUALIZATION_HOST_VSGA,
};

struct state_device {
        uint32_t index;
        uint32_t pci_domain, pci_bus, pci_device;
        uint32_t pci_device_id; /* device and vendor as NVML shows them, 0x233510de */
        uint32_t pci_subsystem_id;
        uint32_t n_instances;
        uint32_t utilization_gpu;    /* percent; of what runs in vGPUs */
        uint32_t utilization_memory; /* percent */
        uint32_t utilization_encoder, utilization_decoder, utilization_jpeg, utilization_ofa;
        uint32_t driver_version;       /* CUDA, e.g. 13000 */
        uint32_t is_lost;              /* fell off the bus: every question answers GPU_IS_LOST */
        uint32_t virtualization;       /* enum state_virtualization */
        uint32_t is_sriov;             /* host vGPU mode */
        state_switch is_heterogeneous; /* heterogeneous mode; NONE: not supported */
        state_switch mig, mig_pending;
        state_switch ecc, ecc_pending;
        state_switch accounting;
        uint32_t can_migrate;      /* metadata capability */
        uint64_t memory_total;     /* bytes */
        uint64_t memory_used;      /* bytes, by vGPUs */
        uint64_t memory_reserved;  /* bytes, part of the total that no vGPU can have */
        char uuid[STATE_UUID_MAX]; /* "GPU-..." */
        char name[STATE_NAME_MAX]; /* "NVIDIA H200" */
};

/* Which capability is at which place of state_device_detail.capability: NVML's numbers. */
enum state_capability {
        STATE_CAN_FRACTIONAL = 0,
        STATE_CAN_MIX_PROFILES,
        STATE_CAN_MIX_SIZES,
        STATE_CAN_READ_BANDWIDTH,  /* MB/s */
        STATE_CAN_WRITE_BANDWIDTH, /* MB/s */
        STATE_CAN_STREAM,
        STATE_CAN_MINI_QUARTER,         /* can be set */
        STATE_CAN_COMPUTE_MEDIA_ENGINE, /* can be set */
        STATE_CAN_WARM_UPDATE,
        STATE_CAN_HOMOGENEOUS_PLACEMENTS,
        STATE_CAN_MIG_TIME_SLICING,
        STATE_CAN_MIG_TIME_SLICING_ENABLED, /* can be set */
        STATE_CAPABILITIES,
        STATE_CAPABILITIES_MAX = 16,
};

struct state_scheduler_limits {
        uint32_t policy[3];                      /* that the graphics engine can have; 0: none */
        uint32_t time_slice_min, time_slice_max; /* ns */
        uint32_t can_arr;
        uint32_t frequency_min, frequency_max; /* Hz */
        uint32_t averaging_min, averaging_max;
};

/* What hardly anybody asks, and what changes at most when a setting does. */
struct state_device_detail {
        uint32_t capability[STATE_CAPABILITIES_MAX]; /* 0: no; else yes, or a number */
        struct state_scheduler_limits scheduler;
        uint32_t brand, architecture; /* NVML's numbers; NONE: by the PCI id */
        uint32_t compute_major, compute_minor;
        uint32_t n_cores, memory_bus_width, minor_number, max_mig_devices;
        uint32_t irq; /* number of its interrupt; 0: not known */
        uint32_t reserved;
        uint64_t bar1_total;
        char metadata_text[2 *
                           STATE_TEXT_MAX]; /* equal on two hosts: vGPUs can move between them */
        char serial[STATE_LABEL_MAX];
        char vbios[STATE_LABEL_MAX];
        char part_number[STATE_LABEL_MAX];
};

/* Sensors; only of devices that a scenario made: a real one is asked itself. */
struct state_sensors {
        uint32_t temperature, temperature_slowdown, temperature_shutdown; /* Celsius */
        uint32_t fan, fan_rpm;                                            /* percent */
        uint32_t power, power_limit, power_limit_min, power_limit_max;    /* mW */
        uint32_t clock_graphics, clock_sm, clock_memory, clock_video;     /* MHz */
        uint32_t clock_graphics_max, clock_sm_max, clock_memory_max, clock_video_max;
        uint32_t performance_state;
        uint32_t pcie_generation, pcie_generation_max, pcie_width, pcie_width_max;
        uint32_t pcie_tx, pcie_rx;                                /* KB/s */
        uint64_t energy;                                          /* mJ since the start */
        uint64_t ecc_corrected_volatile, ecc_corrected_aggregate; /* errors */
        uint64_t ecc_uncorrected_volatile, ecc_uncorrected_aggregate;
        /* For how long clocks were held down, and why; microseconds. */
        uint64_t throttled_power, throttled_thermal, throttled_sync_boost;
        uint64_t throttled_hw_thermal, throttled_power_brake;
};

/* NVLinks; only of devices that a scenario made. All links of a device are of one version. */
#define STATE_LINKS_MAX 18

/* NVML's numbers of what is at the other end of a link, and of the errors that a link counts. */
enum state_link_peer { STATE_LINK_TO_DEVICE = 0, STATE_LINK_TO_SWITCH = 2 };
enum state_link_error {
        STATE_LINK_REPLAY = 0,
        STATE_LINK_RECOVERY,
        STATE_LINK_CRC_FLIT,
        STATE_LINK_CRC_DATA,
        STATE_LINK_ERRORS
};

/* The registration of a device with the switches; numbers and bits are NVML's. */
struct state_fabric {
        uint32_t state, clique, health, summary;
        uint8_t cluster[16];
};

struct state_links {
        uint32_t n;
        uint32_t version; /* NVML's number */
        uint32_t speed;   /* of a link, MB/s */
        uint32_t active;  /* bits */
        uint32_t peer;    /* enum state_link_peer */
        uint32_t reserved;
        uint64_t tx, rx;                    /* KiB since the start, of all active links */
        uint64_t tx_rate, rx_rate;          /* KiB/s, of all active links */
        uint64_t errors[STATE_LINK_ERRORS]; /* of each active link */
        uint8_t peers[24]; /* by link: index of the device, or number of the switch */
        struct state_fabric fabric;
};

/* What happened to a device, for those who wait for it. */
#define STATE_EVENTS_MAX 64

/* What a GPU operational event (R615) tells, in NVML's numbers. */
struct state_operational {
        char module[16]; /* who reports it; not always with a NUL */
        uint32_t severity;
        uint32_t log_level;
        uint32_t category;
        uint32_t code; /* of the module */
};

struct state_event {
        uint64_t timestamp_us; /* CLOCK_REALTIME */
        uint64_t kind;         /* NVML's bit of the kind of event; 0: an operational event */
        uint64_t data;         /* XID error: its number; operational: the number of the XID, or 0 */
        struct state_operational operational;
};

/* Licensable features of a device. */
#define STATE_FEATURES_MAX 3

struct state_feature {
        uint32_t code;        /* NVML's NVML_GRID_LICENSE_FEATURE_CODE_* */
        uint32_t is_licensed; /* now */
        uint32_t is_enabled;
        struct state_expiry expiry;
        char product[STATE_TEXT_MAX];
        char licence[STATE_TEXT_MAX];
};

struct state_features {
        uint32_t is_supported;
        uint32_t n;
        struct state_feature feature[STATE_FEATURES_MAX];
        uint64_t reserved;
};

/* GPU instances. */
struct state_gpu_instance {
        uint32_t device;
        uint32_t id; /* NVML's, unique on its device */
        uint32_t profile_id;
        uint32_t placement_start, placement_size; /* slices of memory */
        state_switch is_heterogeneous;
        uint32_t n_instances;
        uint32_t reserved;
        uint64_t memory_total; /* bytes */
};

/* Compute instances of GPU instances: what programs see as a device. */
#define STATE_COMPUTE_INSTANCES_MAX 512 /* of all devices */

struct state_compute_instance {
        uint32_t device;
        uint32_t gpu_instance; /* id, and its slot */
        uint32_t gpu_instance_slot;
        uint32_t id;                              /* NVML's, unique in its GPU instance */
        uint32_t profile;                         /* number and id: state/compute.h */
        uint32_t placement_start, placement_size; /* slices of multiprocessors */
        uint32_t reserved;
        _Alignas(uint64_t) char uuid[STATE_UUID_MAX]; /* "MIG-..." */
};

/* Limits of control groups to the memory of a scenario's device. */
#define STATE_MEMORY_LIMITS_MAX 64
#define STATE_PATH_MAX          512

struct state_memory_limit {
        uint32_t device;
        uint32_t reserved;
        uint64_t soft, hard; /* bytes; UINT64_MAX: none */
        char path[STATE_PATH_MAX];
};

/* By the number of the profile (NVML_GPU_INSTANCE_PROFILE_*), which is not its id. */
struct state_profile {
        uint32_t id;
        uint32_t slices;
        uint32_t max_instances;
        uint32_t n_multiprocessors, n_copy_engines, n_decoders, n_encoders, n_jpegs, n_ofas;
        uint32_t can_p2p, can_graphics;
        uint32_t n_left;            /* that could be created now */
        uint32_t memory_slices;     /* that one takes */
        uint32_t starts;            /* bits: slices of memory at which one can begin */
        uint64_t memory_size;       /* bytes */
        char name[STATE_LABEL_MAX]; /* "1g.18gb" */
};

/* The types that a site can host, largest first. @type is a slot of the table of types. */
struct state_offer {
        uint16_t type;
        uint16_t max_instances; /* on this site, of this type alone */
        uint16_t n_creatable;   /* that could be created now; 0: none */
        uint16_t reserved;
};

struct state_offers {
        _Alignas(uint64_t) uint32_t n;
        uint32_t reserved;
        struct state_offer offer[STATE_OFFERS_MAX];
};

/* Schedulers. Engine numbers, policies and modes are NVML's. */
enum state_engine { STATE_ENGINE_GRAPHICS = 1, STATE_ENGINE_NVENC1, STATE_ENGINE_NVENC0 };
enum state_policy {
        STATE_POLICY_BEST_EFFORT = 1,
        STATE_POLICY_EQUAL_SHARE,
        STATE_POLICY_FIXED_SHARE
};
enum state_arr { STATE_ARR_DEFAULT = 0, STATE_ARR_DISABLED, STATE_ARR_ENABLED };

struct state_scheduler {
        uint32_t policy;           /* enum state_policy */
        uint32_t arr;              /* enum state_arr: adaptive round robin */
        uint32_t averaging_factor; /* in force: never 0 under equal and fixed share with ARR */
        uint32_t frequency;        /* Hz */
        uint32_t time_slice;       /* ns */
        uint32_t reserved;
        uint64_t changed_ns; /* CLOCK_REALTIME */
};

/* One turn of one vGPU; times are ns. */
struct state_turn {
        uint64_t timestamp; /* of its end, CLOCK_REALTIME */
        uint64_t run;       /* the turn */
        uint64_t run_total; /* of this vGPU */
        uint64_t target;    /* its time slice after deductions */
        uint64_t preempted; /* sum of all that it ran over */
        uint32_t run_list;  /* the vGPU's id */
        uint32_t weight;
};

#endif
