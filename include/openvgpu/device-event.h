/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_DEVICE_EVENT_H
#define OPENVGPU_DEVICE_EVENT_H

/*
 * Device event: what happens to a device, as NVML tells it to those who wait: XID errors, ECC errors, changes
 * of the performance state and of clocks. NVML keeps nothing: an event that happened before
 * vgpu_device_watch_new() is not told.
 *
 * Threads:  a watch belongs to the thread of its host; make a host for each thread that waits.
 * Errors:   those of host.h.
 */

#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

/* NVML's numbers; several of them are added up to a mask. */
enum vgpu_device_event_kind {
        VGPU_DEVICE_EVENT_ECC_CORRECTED = 1,
        VGPU_DEVICE_EVENT_ECC_UNCORRECTED = 2,
        VGPU_DEVICE_EVENT_PERFORMANCE_STATE = 4,
        VGPU_DEVICE_EVENT_XID =
                8, /* the driver reports an error; see NVIDIA's list of XID errors */
        VGPU_DEVICE_EVENT_CLOCK = 16,
};

struct vgpu_device_event {
        uint32_t device; /* index */
        uint32_t kind;   /* enum vgpu_device_event_kind; a newer driver may have others */
        uint64_t data;   /* VGPU_DEVICE_EVENT_XID: the number of the error; else 0 */
};

struct vgpu_device_watch;

/**
 * vgpu_device_watch_new() - begin to watch all devices
 * @host:   borrowed; it must outlive the watch
 * @kinds:  mask of enum vgpu_device_event_kind. A device that lacks some of them is watched for the others
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, no device tells any of @kinds.
 */
int vgpu_device_watch_new(struct vgpu_device_watch **ret_watch, struct vgpu_host *host,
                          uint32_t kinds);

/** vgpu_device_watch_free() - NULL is fine. Returns NULL. */
struct vgpu_device_watch *vgpu_device_watch_free(struct vgpu_device_watch *watch);

/**
 * vgpu_device_watch_wait() - wait for the next event
 * @ret_event:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_TIMED_OUT, nothing happened in @timeout_ms. VGPU_ERROR_DEVICE_LOST, a device that
 * is watched fell off the bus; this answer comes at once from then on.
 */
int vgpu_device_watch_wait(struct vgpu_device_watch *watch, uint32_t timeout_ms,
                           struct vgpu_device_event **ret_event);

VGPU_END_DECLS

#endif
