/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_EVENT_H
#define OPENVGPU_EVENT_H

/*
 * Events: what happened to vGPUs. vgpud keeps the latest events of each owner, also those of vGPUs that
 * are gone, and keeps them when it is started again.
 *
 * Units:    bytes; seconds as real numbers; times in seconds since the epoch.
 * Threads:  see client.h; results may be read by any number of threads.
 * Errors:   those of client.h; a kind that is listed with a function is part of its contract.
 * Source:   docs/control-protocol.md.
 */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

struct vgpu_event {
        uint64_t id; /* rises; never used again */
        double time;
        const char *vgpu; /* the name that the vGPU had then */
        const char *vgpu_uuid;
        uint32_t owner;      /* user id */
        const char *event;   /* "created", "process-began", ...; there may be new ones */
        uint32_t device;     /* index, after the event; of a vGPU of several, the first */
        int32_t pid;         /* of the process that it is about; 0: it is about no process */
        uint64_t bytes;      /* that were moved, or set aside */
        double seconds;      /* that it took */
        const char *message; /* the same in words; may contain what a guest chose */
        /* Parts of @seconds, of an operation: until its programs were at rest, copies, the driver's work on
         * contexts. The last two happen at the same time. */
        double drain_seconds;
        double copy_seconds;
        double context_seconds;
        const char
                *devices; /* indices of all, after the event, as its programs count them: "0,1" */
};

struct vgpu_event_list {
        size_t n_events;
        const struct vgpu_event *const *events; /* the earliest first */
};

/* Which events; begin with VGPU_EVENT_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_event_options {
        size_t size;      /* of this struct, as the caller was compiled */
        const char *name; /* of a vGPU that is or was there, or its UUID; NULL: all vGPUs */
        uint64_t after;   /* only events with a greater id: the last one that is known */
        double since;     /* only events from then on */
};

/* clang-format off */
#define VGPU_EVENT_OPTIONS_INIT { sizeof(struct vgpu_event_options), NULL, 0, 0 }
/* clang-format on */

/**
 * vgpu_event_lookup() - ask what happened; users other than root learn of their own vGPUs
 * @ret_list:  the caller owns it and frees it with vgpu_event_list_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_PERMISSION_DENIED: another user owns the vGPU.
 */
int vgpu_event_lookup(struct vgpu_client *client, const struct vgpu_event_options *options,
                      struct vgpu_event_list **ret_list);

/** vgpu_event_list_free() - NULL is fine. Returns NULL. */
struct vgpu_event_list *vgpu_event_list_free(struct vgpu_event_list *list);

VGPU_END_DECLS

#endif
