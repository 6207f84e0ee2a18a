/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_TIME_SHARING_H
#define OPENVGPU_TIME_SHARING_H

/*
 * Time sharing: how vgpud divides the time of a device between its vGPUs, and what each vGPU
 * received.
 *
 * scheduler.h describes the same scheduler through NVML. This header describes it through vgpud: it
 * has shares, it says how turns are enforced and why, and its rules are wider where NVML's are
 * narrow.
 *
 * Units:    nanoseconds, hertz, percent of a device's time.
 * Threads:  see client.h; results may be read by any number of threads.
 * Errors:   those of client.h; a kind that is listed with a function is part of its contract.
 * Source:   docs/control-protocol.md, docs/scheduling.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>
#include <openvgpu/scheduler.h>

VGPU_BEGIN_DECLS

struct vgpu_time_sharing_vgpu {
        const char *name;
        uint32_t id;
        uint32_t share; /* percent; 0: none was given */
        double entitled_percent; /* of the device's time: what the vGPU can count on, whoever has work there */
        double received_seconds; /* GPU time, since the vGPU came to the device and takes turns */
        bool has_work;
        bool waits;       /* the vGPU is held off the device at this moment */
        bool is_enforced; /* false: a process cannot be held off, see @error, or the vGPU is away */
        const char *error;
};

struct vgpu_time_sharing {
        uint32_t device;    /* index */
        const char *mode;   /* "off", "hardware" or "gate" */
        const char *reason; /* why this mode */
        uint32_t policy;    /* enum vgpu_scheduler_policy */
        bool has_arr;
        uint32_t average_factor; /* with ARR */
        uint32_t frequency_hz;   /* with ARR */
        uint64_t timeslice_ns;
        uint64_t n_turns; /* so far */
        bool are_taken;   /* at this moment: more than one vGPU has work */
        size_t n_vgpus;
        const struct vgpu_time_sharing_vgpu *const *vgpus;
};

/**
 * vgpu_time_sharing_lookup() - ask how the time of @device is divided
 * @device:     index, UUID or beginning of a UUID
 * @ret_turns:  the caller owns it and frees it with vgpu_time_sharing_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE.
 */
int vgpu_time_sharing_lookup(struct vgpu_client *client, const char *device,
                             struct vgpu_time_sharing **ret_turns);

/** vgpu_time_sharing_free() - NULL is fine. Returns NULL. */
struct vgpu_time_sharing *vgpu_time_sharing_free(struct vgpu_time_sharing *turns);

/* What to set; begin with VGPU_TIME_SHARING_SETTINGS_INIT, so that the struct can grow. 0: default. */
struct vgpu_time_sharing_settings {
        size_t size; /* of this struct, as the caller was compiled */
        enum vgpu_scheduler_policy policy;
        enum vgpu_scheduler_arr arr;
        uint32_t average_factor; /* with ARR */
        uint32_t frequency_hz;   /* with ARR */
        uint32_t timeslice_ns;   /* without ARR; best effort: of the turns that shares need */
};

/* clang-format off */
#define VGPU_TIME_SHARING_SETTINGS_INIT { sizeof(struct vgpu_time_sharing_settings), \
        VGPU_SCHEDULER_BEST_EFFORT, VGPU_SCHEDULER_ARR_DEFAULT, 0, 0, 0 }
/* clang-format on */

/**
 * vgpu_time_sharing_set() - set how the time of @device is divided, until the driver is loaded
 * again
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE. VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_PERMISSION_DENIED.
 * VGPU_ERROR_NOT_SUPPORTED: processes run in the device's vGPUs.
 */
int vgpu_time_sharing_set(struct vgpu_client *client, const char *device,
                          const struct vgpu_time_sharing_settings *settings);

/**
 * vgpu_time_sharing_set_share() - give the vGPU @name a share of its device's time, at any time
 * @percent:  1 to 100; 0: none
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_NO_ROOM: the shares of
 * the device would add up to more than 100. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_time_sharing_set_share(struct vgpu_client *client, const char *name, uint32_t percent);

struct vgpu_time_sharing_entry {
        uint64_t number;       /* from 0, for as long as the manager lives */
        uint64_t timestamp_ns; /* end of the turn, since the epoch */
        uint32_t id;           /* of the vGPU */
        const char *name;      /* "" when the vGPU is gone */
        uint64_t run_ns, run_total_ns;
        uint64_t target_ns;    /* the length that the turn should have had */
        uint64_t preempted_ns; /* sum of all overruns of the vGPU */
        uint32_t weight;       /* parts of a million */
};

struct vgpu_time_sharing_log {
        uint64_t next; /* the number that the next entry will have */
        size_t n_entries;
        const struct vgpu_time_sharing_entry *const *entries;
};

/**
 * vgpu_time_sharing_lookup_log() - read the last turns, at most 200
 * @from:     only entries with this number or a later number
 * @ret_log:  the caller owns it and frees it with vgpu_time_sharing_log_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE.
 */
int vgpu_time_sharing_lookup_log(struct vgpu_client *client, const char *device, uint64_t from,
                                 struct vgpu_time_sharing_log **ret_log);

/** vgpu_time_sharing_log_free() - NULL is fine. Returns NULL. */
struct vgpu_time_sharing_log *vgpu_time_sharing_log_free(struct vgpu_time_sharing_log *log);

VGPU_END_DECLS

#endif
