/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_SCHEDULER_H
#define OPENVGPU_SCHEDULER_H

/*
 * Scheduler: how NVML says that a device, or a GPU instance of it, divides an engine's time between
 * its vGPUs. time-sharing.h describes the same scheduler through vgpud.
 *
 * With adaptive round robin (ARR), @frequency_hz sets the length of a slice. The overrun of earlier
 * slices shortens a slice, spread over @average_factor turns. Without ARR, @timeslice_ns sets the
 * length of a slice. From R595 on, ARR is always on.
 *
 * Units:    nanoseconds, hertz.
 * Threads:  see host.h.
 * Errors:   those of host.h; VGPU_ERROR_NOT_SUPPORTED also where MIG is on and no GPU instance is
 *           named.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

enum vgpu_scheduler_policy {
        VGPU_SCHEDULER_UNKNOWN = 0,
        VGPU_SCHEDULER_BEST_EFFORT = 1, /* a vGPU that has work runs */
        VGPU_SCHEDULER_EQUAL_SHARE = 2, /* all running vGPUs get the same */
        VGPU_SCHEDULER_FIXED_SHARE = 3, /* one part of the type's maximum of vGPUs */
};

enum vgpu_scheduler_engine {
        VGPU_SCHEDULER_GRAPHICS = 1, /* the only engine before R590 */
        VGPU_SCHEDULER_NVENC1 = 2,
        VGPU_SCHEDULER_NVENC0 = 3,
};

enum vgpu_scheduler_arr {
        VGPU_SCHEDULER_ARR_DEFAULT = 0,
        VGPU_SCHEDULER_ARR_DISABLED = 1,
        VGPU_SCHEDULER_ARR_ENABLED = 2,
};

/* "best-effort", "graphics"; "unknown" for any other number. Never freed. */
const char *vgpu_scheduler_policy_get_name(enum vgpu_scheduler_policy policy);
const char *vgpu_scheduler_engine_get_name(enum vgpu_scheduler_engine engine);

struct vgpu_scheduler_capabilities {
        size_t n_policies;
        const enum vgpu_scheduler_policy *policies; /* of the graphics engine */
        uint32_t timeslice_min_ns, timeslice_max_ns;
        bool has_arr;
        uint32_t frequency_min_hz, frequency_max_hz;
        uint32_t average_factor_min, average_factor_max;
};

/* Under best effort, nothing but @policy has a meaning. */
struct vgpu_scheduler_state {
        enum vgpu_scheduler_engine engine;
        enum vgpu_scheduler_policy policy;
        enum vgpu_scheduler_arr arr;
        uint32_t average_factor; /* 0 without ARR */
        uint32_t timeslice_ns;
};

struct vgpu_scheduler_log_entry {
        uint64_t time_ns;             /* when the run ended */
        uint64_t run_ns;              /* length of the run */
        uint64_t run_total_ns;        /* since the vGPU began */
        uint64_t target_timeslice_ns; /* length that the run should have had */
        uint64_t preemption_total_ns; /* what preempting the vGPU has cost */
        uint32_t run_list;            /* number of the software's run list */
        uint32_t weight;              /* VGPU_UNKNOWN before R595 */
};

struct vgpu_scheduler_log {
        const struct vgpu_scheduler_state *state; /* when the log was read; part of the log */
        size_t n_entries; /* at most 200: read five times a second to miss none */
        const struct vgpu_scheduler_log_entry *const *entries;
};

/* What to set; begin with VGPU_SCHEDULER_SETTINGS_INIT, so that the struct can grow. 0: default. */
struct vgpu_scheduler_settings {
        size_t size; /* of this struct, as the caller was compiled */
        enum vgpu_scheduler_policy policy;
        enum vgpu_scheduler_engine engine;
        enum vgpu_scheduler_arr arr; /* from R595 on, disabled is refused */
        uint32_t average_factor;     /* with ARR */
        uint32_t frequency_hz;       /* with ARR */
        uint32_t timeslice_ns;       /* without ARR */
};

/* clang-format off */
#define VGPU_SCHEDULER_SETTINGS_INIT { sizeof(struct vgpu_scheduler_settings), \
        VGPU_SCHEDULER_BEST_EFFORT, VGPU_SCHEDULER_GRAPHICS, VGPU_SCHEDULER_ARR_DEFAULT, 0, 0, 0 }
/* clang-format on */

/** vgpu_scheduler_lookup_capabilities() - ask what can be set. Free it with vgpu_free(). */
int vgpu_scheduler_lookup_capabilities(struct vgpu_host *host, uint32_t device,
                                       struct vgpu_scheduler_capabilities **ret_capabilities);

/** vgpu_scheduler_lookup_state() - ask what is set. Free it with vgpu_free(). */
int vgpu_scheduler_lookup_state(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                enum vgpu_scheduler_engine engine,
                                struct vgpu_scheduler_state **ret_state);

/** vgpu_scheduler_lookup_log() - ask what ran. Free it with vgpu_free(). */
int vgpu_scheduler_lookup_log(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                              enum vgpu_scheduler_engine engine,
                              struct vgpu_scheduler_log **ret_log);

/**
 * vgpu_scheduler_set_state() - set the state while the device has no vGPU, until the driver is
 * loaded again
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, also while the device has a vGPU. VGPU_ERROR_INVALID_PARAMETER:
 * the error's parameter is the member of @settings that is out of its range, and the message has
 * the range. VGPU_ERROR_PERMISSION_DENIED. VGPU_ERROR_RESET_REQUIRED.
 */
int vgpu_scheduler_set_state(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                             const struct vgpu_scheduler_settings *settings);

VGPU_END_DECLS

#endif
