/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_USAGE_H
#define OPENVGPU_USAGE_H

/*
 * Usage: what vGPUs and their processes use of the devices now, what they have used over their
 * lives, and what to bill. All three come from one measurement and agree with each other.
 *
 * Units:    seconds as real numbers; percent of the physical device; bytes; times in seconds since
 *           the epoch.
 * Threads:  see client.h; results may be read by any number of threads.
 * Errors:   those of client.h; a kind that is listed with a function is part of its contract.
 * Source:   docs/control-protocol.md; docs/metering.md says what is exact and what is estimated.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>
#include <openvgpu/instance.h>

VGPU_BEGIN_DECLS

/* Over about the last quarter of a second. */
struct vgpu_usage_percents {
        uint32_t gpu; /* kernels ran */
        uint32_t memory;
        uint32_t encoder;
        uint32_t decoder;
        uint32_t jpeg;
        uint32_t ofa;
};

/* How long each engine was busy. */
struct vgpu_usage_seconds {
        double gpu;
        double memory;
        double encoder;
        double decoder;
        double jpeg;
        double ofa;
};

/* Now. */

struct vgpu_usage_process {
        int32_t pid;
        const char *name;     /* chosen by the guest: may contain anything but NUL */
        uint64_t memory_used; /* bytes */
        const struct vgpu_usage_percents *percents;
        const struct vgpu_usage_seconds *seconds; /* since the process joined */
        const char
                *container; /* the first 12 letters of its id; "": in none, or vgpud does not say */
        const char *
                container_name; /* as its engine called it when it joined; "": in none, or vgpud does not say */
};

/* Of a vGPU, on one of its devices. */
struct vgpu_usage_part {
        uint32_t id;                /* NVML's vGPU instance id */
        uint32_t device;            /* index */
        uint64_t frame_buffer_used; /* bytes */
        double entitled; /* percent of the device's time that the vGPU can count on, whoever has work there */
        const struct vgpu_usage_percents *percents;
        const struct vgpu_usage_seconds *seconds; /* of the running processes */
        double gpu_seconds_total; /* of its processes since vgpud began; never less */
};

struct vgpu_usage_instance {
        const char *name;
        const char *uuid;
        uint32_t device; /* index, of the first */
        enum vgpu_instance_state state;
        uint64_t frame_buffer;      /* bytes, the quota, of all its devices */
        uint64_t frame_buffer_used; /* bytes */
        double entitled; /* percent of its devices' time that the vGPU can count on, whoever has work there */
        const struct vgpu_usage_percents *percents; /* of all its devices' time */
        const struct vgpu_usage_seconds *seconds;   /* of the running processes; on all of them */
        size_t n_processes;
        const struct vgpu_usage_process *const *processes;
        uint32_t share;      /* the vGPU's share of the device, in percent; 0: none */
        uint32_t id;         /* NVML's vGPU instance id; 0: a vgpud that does not say, as below */
        uint32_t owner;      /* user id */
        uint32_t n_programs; /* that run in it, those included that have not come to CUDA yet */
        double gpu_seconds_total; /* of its processes since vgpud began; never less */
        double idle;        /* seconds that the vGPU has had no work, as in struct vgpu_instance */
        const char *demand; /* as in struct vgpu_instance, and those below */
        const char *demand_reason;
        double idle_after;
        bool idle_keeps_context;
        uint64_t
                host_memory; /* as in struct vgpu_instance, and those below; sums since vgpud began */
        double resident_seconds;
        uint64_t n_swaps; /* times that it left its device, or came back, by itself and by demand */
        uint64_t swapped_bytes;
        uint64_t n_waits;
        double waited_seconds;
        uint32_t demand_percent;
        const char *swap_class;
        const char *container; /* that all of its processes are in; "": none, or different ones */
        size_t n_parts;        /* its devices, as its programs count them; 0: an older vgpud */
        const struct vgpu_usage_part *const *parts;
        uint32_t n_whole, n_unwhole; /* its processes, by the context of struct vgpu_process */
};

struct vgpu_usage_device {
        uint32_t index;
        const char *uuid;
        const char *name;
        const char *source; /* of its GPU time: "turns", "engine", "samples", "none" */
        uint64_t memory_total;
        uint64_t memory_used; /* by vGPUs */
        const struct vgpu_usage_percents *percents;
        uint64_t memory_promised; /* the sum of the vGPUs' quotas; 0: a vgpud that does not say */
        uint64_t memory_swapped;  /* of its vGPUs that are off it, in the pool; 0: likewise */
        bool is_overcommitted;
        uint64_t n_turns; /* that vGPUs have taken, since vgpud began */
        const char *
                turns_mode; /* how turns are enforced: "off", "hardware", "gate"; "": it does not say */
};

struct vgpu_usage_snapshot {
        size_t n_devices;
        const struct vgpu_usage_device *const *devices;
        size_t n_instances;
        const struct vgpu_usage_instance *const *instances;
};

/**
 * vgpu_usage_take_snapshot() - ask what all devices, vGPUs and processes do now
 * @ret_snapshot:  the caller owns it and frees it with vgpu_usage_snapshot_free()
 */
int vgpu_usage_take_snapshot(struct vgpu_client *client, struct vgpu_usage_snapshot **ret_snapshot);

/* What to take; begin with VGPU_USAGE_SNAPSHOT_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_usage_snapshot_options {
        size_t size;               /* of this struct, as the caller was compiled */
        bool is_without_processes; /* only devices and vGPUs: a tenth of the work */
};

/* clang-format off */
#define VGPU_USAGE_SNAPSHOT_OPTIONS_INIT { sizeof(struct vgpu_usage_snapshot_options), false }
/* clang-format on */

/** vgpu_usage_take_snapshot_with() - the same with @options; NULL: the defaults. */
int vgpu_usage_take_snapshot_with(struct vgpu_client *client,
                                  const struct vgpu_usage_snapshot_options *options,
                                  struct vgpu_usage_snapshot **ret_snapshot);

/** vgpu_usage_snapshot_free() - NULL is fine. Returns NULL. */
struct vgpu_usage_snapshot *vgpu_usage_snapshot_free(struct vgpu_usage_snapshot *snapshot);

/* Over the life of a process: its account. */

struct vgpu_usage_account {
        uint64_t id; /* never used again for another process */
        int32_t pid;
        const char *name; /* chosen by the guest: may contain anything but NUL */
        bool is_running;
        double started;              /* since the epoch */
        double life;                 /* seconds so far, or in all */
        uint32_t gpu_utilization;    /* percent of its life */
        uint32_t memory_utilization; /* likewise */
        uint64_t memory_peak;        /* bytes */
        const struct vgpu_usage_seconds *seconds;
};

struct vgpu_usage_account_list {
        size_t n_accounts;
        const struct vgpu_usage_account *const
                *accounts; /* ended processes by their ends, then running ones */
};

/**
 * vgpu_usage_lookup_accounts() - ask for the accounts of the processes that run and ran in vGPU
 * @name
 * @ret_list:  the caller owns it and frees it with vgpu_usage_account_list_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_PERMISSION_DENIED: another user owns the vGPU.
 */
int vgpu_usage_lookup_accounts(struct vgpu_client *client, const char *name,
                               struct vgpu_usage_account_list **ret_list);

/** vgpu_usage_account_list_free() - NULL is fine. Returns NULL. */
struct vgpu_usage_account_list *vgpu_usage_account_list_free(struct vgpu_usage_account_list *list);

/**
 * vgpu_usage_clear_accounts() - forget the ended processes of vGPU @name; bills do not change
 * @ret_cleared:  number of forgotten accounts; may be NULL
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_PERMISSION_DENIED, the caller is not root.
 */
int vgpu_usage_clear_accounts(struct vgpu_client *client, const char *name, uint32_t *ret_cleared);

/* From the ledger: what to bill. */

enum vgpu_usage_group {
        VGPU_USAGE_BY_VGPU = 0,
        VGPU_USAGE_BY_TENANT = 1,
        VGPU_USAGE_BY_PROCESS = 2,
        VGPU_USAGE_BY_DEVICE = 3,
        VGPU_USAGE_BY_JOB = 4, /* of Slurm: vGPUs whose names are job-JOB-STEP, and no others */
        VGPU_USAGE_BY_CONTAINER = 5, /* programs in containers that their engines name */
        VGPU_USAGE_BY_PART = 6,      /* a vGPU on one of its devices */
};

/* The sum to make; begin with VGPU_USAGE_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_usage_options {
        size_t size;  /* of this struct, as the caller was compiled */
        double since; /* since the epoch; whole minutes count */
        double until; /* 0: now */
        enum vgpu_usage_group group;
};

/* clang-format off */
#define VGPU_USAGE_OPTIONS_INIT { sizeof(struct vgpu_usage_options), 0, 0, VGPU_USAGE_BY_VGPU }
/* clang-format on */

/* The group decides which members a row has; the others are 0 and "". */
struct vgpu_usage_row {
        uint32_t tenant; /* user id; not by device */
        const char *vgpu;
        const char *vgpu_uuid;
        int32_t pid;
        const char *name; /* of the process */
        double started;
        double ended; /* 0: the process runs */
        const char *device_uuid;
        const char *device_name;
        const struct vgpu_usage_seconds *seconds;
        double quota_gib_hours; /* frame buffer that was set aside */
        double used_gib_hours;  /* frame buffer that was held */
        const char *job;        /* its number; by job */
        uint64_t memory_peak;   /* bytes, of the process that held most; by job and by container */
        const char *container;  /* the first 12 letters of its id; by container */
        const char *container_name; /* as its engine calls it; by container */
};

struct vgpu_usage_list {
        size_t n_rows;
        const struct vgpu_usage_row *const *rows;
};

/**
 * vgpu_usage_lookup() - sum up the ledger; users other than root see their own usage
 * @ret_list:  the caller owns it and frees it with vgpu_usage_list_free()
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER.
 */
int vgpu_usage_lookup(struct vgpu_client *client, const struct vgpu_usage_options *options,
                      struct vgpu_usage_list **ret_list);

/** vgpu_usage_list_free() - NULL is fine. Returns NULL. */
struct vgpu_usage_list *vgpu_usage_list_free(struct vgpu_usage_list *list);

VGPU_END_DECLS

#endif
