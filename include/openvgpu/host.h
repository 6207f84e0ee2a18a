/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_HOST_H
#define OPENVGPU_HOST_H

/*
 * Host: what NVML, the management library of NVIDIA's driver, knows of vGPUs on this machine.
 *
 * The same functions work over NVIDIA's library on one of its vGPU hosts, where no vgpud is needed,
 * and over ours, which shows what vgpud has. A client (client.h) asks vgpud and can do more; a host
 * asks NVML and knows more. Both mean the same vGPU by the same number: an instance's id.
 *
 * Things are named by NVML's numbers: a device by its index, a vGPU by its id, a type by its id, a
 * GPU instance (MIG) by its device and its id. A number that is not valid any more is no danger, only
 * an error. Where a function takes a @device and a @gpu_instance, VGPU_WHOLE_DEVICE for the latter
 * means the device itself.
 *
 * Making a host opens nothing. The first call that needs it looks for the library:
 *
 *     1. the path given to vgpu_host_new(), else the one in $OPENVGPU_NVML: that and no other;
 *     2. the library of the vgpud that runs, if that is root's or the caller's own;
 *     3. libnvidia-ml.so.1 where the dynamic linker finds it.
 *
 * A driver need not have all functions. What it lacks fails with VGPU_ERROR_NOT_IN_DRIVER, and the
 * message says from which driver on it is there; where an older function says the same, that one is
 * asked, and what it does not tell is VGPU_UNKNOWN.
 *
 * Results:  plain values are written to the caller's variables, and only if the call succeeds.
 *           Everything else is one piece of memory that the caller frees with vgpu_free(); texts and
 *           arrays inside of it are part of it. What the host itself owns says so.
 * Units:    bytes, percent, microseconds, nanoseconds: stated with each.
 * Threads:  a host belongs to one thread at a time; make one for each thread, they share nothing but
 *           NVML, which is made for threads.
 * Errors:   0 or a negative errno; then vgpu_host_get_error() has the kind, a message and a hint. A
 *           kind that is listed with a function is part of its contract. Any function can fail with
 *           VGPU_ERROR_NO_LIBRARY, VGPU_ERROR_NOT_LOADED (the host's driver),
 *           VGPU_ERROR_NOT_IN_DRIVER, VGPU_ERROR_DRIVER_FAILED and VGPU_ERROR_OUT_OF_MEMORY; one that
 *           is about a device with VGPU_ERROR_NO_SUCH_DEVICE, VGPU_ERROR_DEVICE_LOST and, on a device
 *           that does not host vGPUs, VGPU_ERROR_NOT_SUPPORTED; one about a vGPU with
 *           VGPU_ERROR_NO_SUCH_VGPU; one about a type with VGPU_ERROR_NO_SUCH_TYPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/error.h>

VGPU_BEGIN_DECLS

struct vgpu_host;

/* In the place of a GPU instance: the device itself; and what a time-sliced vGPU answers. */
#define VGPU_WHOLE_DEVICE UINT32_MAX

/* A number that this driver does not tell. */
#define VGPU_UNKNOWN UINT32_MAX

/* Numbers, of types or of vGPUs, in the driver's order. */
struct vgpu_number_list {
        size_t n_numbers;
        const uint32_t *numbers;
};

/* Versions of what is moved between hosts: major << 16 | minor, compared as numbers. */
struct vgpu_host_versions {
        uint32_t supported_minimum, supported_maximum; /* what the host is able to */
        uint32_t current_minimum, current_maximum;     /* what it offers now */
};

enum vgpu_host_capability {
        VGPU_HOST_HETEROGENEOUS_MULTI_VGPU = 0, /* a VM may own vGPUs of several types */
        VGPU_HOST_WARM_UPDATE = 1,              /* the driver can be replaced below running vGPUs */
};

#define VGPU_HOST_CAPABILITY_COUNT 2

/**
 * vgpu_host_new() - make a host; opens nothing
 * @ret_host:      the caller owns it and frees it with vgpu_host_free()
 * @library_path:  of the NVML library; copied. NULL: see above
 *
 * Errors: -ENOMEM.
 */
int vgpu_host_new(struct vgpu_host **ret_host, const char *library_path);

/** vgpu_host_free() - let the library go; results stay valid. NULL is fine. Returns NULL. */
struct vgpu_host *vgpu_host_free(struct vgpu_host *host);

/**
 * vgpu_host_get_error() - why the last call with @host failed
 *
 * Never NULL; the kind is VGPU_ERROR_NONE when it succeeded. Borrowed: valid until the next call
 * with @host.
 */
const struct vgpu_error *vgpu_host_get_error(const struct vgpu_host *host);

/** vgpu_host_get_library_path() - of the library in use; borrowed, valid as long as @host. */
int vgpu_host_get_library_path(struct vgpu_host *host, const char **ret_path);

/** vgpu_host_get_driver_version() - "580.159.04"; borrowed, valid as long as @host. */
int vgpu_host_get_driver_version(struct vgpu_host *host, const char **ret_version);

/** vgpu_host_get_capability() - can the driver do it? Errors: VGPU_ERROR_NOT_SUPPORTED. */
int vgpu_host_get_capability(struct vgpu_host *host, enum vgpu_host_capability capability,
                             bool *ret_is_there);

/** vgpu_host_capability_get_name() - "warm-update"; "unknown" for others. Never freed. */
const char *vgpu_host_capability_get_name(enum vgpu_host_capability capability);

/**
 * vgpu_host_lookup_versions() - which vGPU versions guests may have
 * @ret_versions:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED.
 */
int vgpu_host_lookup_versions(struct vgpu_host *host, struct vgpu_host_versions **ret_versions);

/**
 * vgpu_host_set_version_range() - offer only the versions from @minimum to @maximum, until the driver
 * is loaded anew
 *
 * When a guest's driver loads, it takes the highest version that it knows of those that are offered.
 * If it knows none of them, it does not load: its vGPU has no driver and no licence. So a narrow range
 * keeps guests able to move to older hosts, and keeps guests with other drivers out.
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, not within what is supported. VGPU_ERROR_BUSY, a vGPU is
 * active. VGPU_ERROR_PERMISSION_DENIED. VGPU_ERROR_NOT_SUPPORTED.
 */
int vgpu_host_set_version_range(struct vgpu_host *host, uint32_t minimum, uint32_t maximum);

VGPU_END_DECLS

#endif
