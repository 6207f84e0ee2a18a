/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_TURNS_H
#define OPENVGPU_TURNS_H

/*
 * Turns: how vgpud divides the time of a device between its vGPUs, and what each received.
 *
 * This is the scheduler of scheduler.h seen from its own side: with shares, with the way in which turns
 * are enforced and why, and with rules of its own where NVML's are narrower.
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

struct vgpu_turns_vgpu {
        const char *name;
        uint32_t id;
        uint32_t share;          /* percent; 0: none was given */
        double entitled_percent; /* when all vGPUs have work */
        double received_seconds; /* GPU time, since it is on the device and takes turns */
        bool has_work;
        bool waits;       /* it is held off the device just now */
        bool is_enforced; /* false: a process of it cannot be held off, see @error; or it is away */
        const char *error;
};

struct vgpu_turns {
        uint32_t device;    /* index */
        const char *mode;   /* "off", "hardware" or "gate" */
        const char *reason; /* why that one */
        uint32_t policy;    /* enum vgpu_scheduler_policy */
        bool has_arr;
        uint32_t average_factor; /* with ARR */
        uint32_t frequency_hz;   /* with ARR */
        uint64_t timeslice_ns;
        uint64_t n_turns; /* so far */
        bool are_taken;   /* just now: more than one vGPU has work */
        size_t n_vgpus;
        const struct vgpu_turns_vgpu *const *vgpus;
};

/**
 * vgpu_turns_lookup() - how the time of @device is divided
 * @device:     index, UUID or beginning of a UUID
 * @ret_turns:  the caller owns it and frees it with vgpu_turns_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE.
 */
int vgpu_turns_lookup(struct vgpu_client *client, const char *device,
                      struct vgpu_turns **ret_turns);

/** vgpu_turns_free() - NULL is fine. Returns NULL. */
struct vgpu_turns *vgpu_turns_free(struct vgpu_turns *turns);

/* What to set; begin with VGPU_TURNS_SETTINGS_INIT, so that the struct can grow. 0: default. */
struct vgpu_turns_settings {
        size_t size; /* of this struct, as the caller was compiled */
        enum vgpu_scheduler_policy policy;
        enum vgpu_scheduler_arr arr;
        uint32_t average_factor; /* with ARR */
        uint32_t frequency_hz;   /* with ARR */
        uint32_t timeslice_ns;   /* without ARR; best effort: of the turns that shares need */
};

/* clang-format off */
#define VGPU_TURNS_SETTINGS_INIT { sizeof(struct vgpu_turns_settings), \
        VGPU_SCHEDULER_BEST_EFFORT, VGPU_SCHEDULER_ARR_DEFAULT, 0, 0, 0 }
/* clang-format on */

/**
 * vgpu_turns_set() - divide the time of @device so, until the driver is loaded anew
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE. VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_PERMISSION_DENIED.
 * VGPU_ERROR_NOT_SUPPORTED: processes run in its vGPUs.
 */
int vgpu_turns_set(struct vgpu_client *client, const char *device,
                   const struct vgpu_turns_settings *settings);

/**
 * vgpu_turns_set_share() - give the vGPU @name a share of its device's time, at any time
 * @percent:  1 to 100; 0: none
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_INVALID_PARAMETER: with the others' it would be more
 * than 100. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_turns_set_share(struct vgpu_client *client, const char *name, uint32_t percent);

struct vgpu_turns_entry {
        uint64_t number;       /* from 0, for as long as the manager lives */
        uint64_t timestamp_ns; /* of its end, since the epoch */
        uint32_t id;           /* of the vGPU */
        const char *name;      /* "" when it is gone */
        uint64_t run_ns, run_total_ns;
        uint64_t target_ns;    /* what it should have had */
        uint64_t preempted_ns; /* sum of all that it ran too long */
        uint32_t weight;       /* parts of a million */
};

struct vgpu_turns_log {
        uint64_t next; /* the number of the next entry that there will be */
        size_t n_entries;
        const struct vgpu_turns_entry *const *entries;
};

/**
 * vgpu_turns_lookup_log() - the last turns, at most 200
 * @from:     only those with this number or a later one
 * @ret_log:  the caller owns it and frees it with vgpu_turns_log_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE.
 */
int vgpu_turns_lookup_log(struct vgpu_client *client, const char *device, uint64_t from,
                          struct vgpu_turns_log **ret_log);

/** vgpu_turns_log_free() - NULL is fine. Returns NULL. */
struct vgpu_turns_log *vgpu_turns_log_free(struct vgpu_turns_log *log);

VGPU_END_DECLS

#endif
