/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_LICENCE_H
#define OPENVGPU_LICENCE_H

/*
 * Licence: whether a vGPU has a licence, and how long.
 *
 * Threads:  see host.h.
 * Errors:   those of host.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

enum vgpu_licence_state {
        VGPU_LICENCE_UNKNOWN = 0, /* also if the driver does not say (before R510) */
        VGPU_LICENCE_UNINITIALIZED = 1,
        VGPU_LICENCE_UNLICENSED_UNRESTRICTED = 2, /* not licensed yet, but not slowed down */
        VGPU_LICENCE_UNLICENSED_RESTRICTED = 3,   /* not licensed, and slowed down */
        VGPU_LICENCE_UNLICENSED = 4,
        VGPU_LICENCE_LICENSED = 5,
};

enum vgpu_licence_expiry {
        VGPU_LICENCE_EXPIRY_NOT_AVAILABLE = 0,
        VGPU_LICENCE_EXPIRY_INVALID = 1,
        VGPU_LICENCE_EXPIRY_VALID = 2, /* the only kind with a date */
        VGPU_LICENCE_EXPIRY_NOT_APPLICABLE = 3,
        VGPU_LICENCE_EXPIRY_PERMANENT = 4,
};

struct vgpu_licence {
        bool is_licensed;
        enum vgpu_licence_state state;
        enum vgpu_licence_expiry expiry;
        int64_t expiry_seconds;  /* since the epoch; 0 without a date */
        const char *expiry_text; /* "2026-11-23 05:02:12 GMT", or "" */
};

/* "licensed", "permanent"; "unknown" for any other number. Never freed. */
const char *vgpu_licence_state_get_name(enum vgpu_licence_state state);
const char *vgpu_licence_expiry_get_name(enum vgpu_licence_expiry expiry);

/** vgpu_licence_get_status() - ask whether the vGPU has a licence */
int vgpu_licence_get_status(struct vgpu_host *host, uint32_t instance, bool *ret_is_licensed);

/**
 * vgpu_licence_lookup() - ask which licence the vGPU has, and how long
 * @ret_licence:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_LOADED, the guest's driver does not run.
 */
int vgpu_licence_lookup(struct vgpu_host *host, uint32_t instance,
                        struct vgpu_licence **ret_licence);

VGPU_END_DECLS

#endif
