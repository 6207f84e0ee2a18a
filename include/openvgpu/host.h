/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_HOST_H
#define OPENVGPU_HOST_H

/*
 * Host: the vGPUs of this machine as NVML, the management library of NVIDIA's driver, knows them.
 *
 * The same functions work with NVIDIA's library on NVIDIA's vGPU hosts, where no vgpud is needed,
 * and with our library, which shows the vGPUs of vgpud. A client (client.h) asks vgpud and can do
 * more; a host asks NVML and knows more. Both name a vGPU by the same number: an instance's id.
 *
 * NVML's numbers name everything: a device by its index, a vGPU by its id, a type by its id, a GPU
 * instance (MIG) by its device and its id. A number that is no longer valid causes only an error.
 * Where a function takes a @device and a @gpu_instance, VGPU_WHOLE_DEVICE as @gpu_instance means
 * the device itself.
 *
 * vgpu_host_new() opens nothing. The first call that needs the library looks for it:
 *
 *     1. at the path given to vgpu_host_new(), or without one in $OPENVGPU_NVML, and nowhere else;
 *     2. in the installation of a running vgpud that belongs to root or to the caller;
 *     3. as libnvidia-ml.so.1, where the dynamic linker finds it.
 *
 * A driver need not have all functions. A function that the driver lacks fails with
 * VGPU_ERROR_NOT_IN_DRIVER, and the message names the first driver that has the function. If an
 * older function gives the same answer, the library calls it; a value that it does not tell is
 * VGPU_UNKNOWN.
 *
 * Results:  plain values are written to the caller's variables, and only if the call succeeds.
 *           Every other result is one piece of memory, texts and arrays included, which the caller
 *           frees with vgpu_free(). A comment says so where the host owns the result.
 * Units:    bytes, percent, microseconds, nanoseconds: stated with each value.
 * Threads:  a host belongs to one thread at a time; make one for each thread. Hosts share only
 *           NVML, which is safe for threads.
 * Errors:   0 or a negative errno; then vgpu_host_get_error() has the kind, a message and a hint. A
 *           kind that is listed with a function is part of its contract. Any function can fail with
 *           VGPU_ERROR_NO_LIBRARY, VGPU_ERROR_NOT_LOADED (the host's driver),
 *           VGPU_ERROR_NOT_IN_DRIVER, VGPU_ERROR_DRIVER_FAILED and VGPU_ERROR_OUT_OF_MEMORY. A
 *           function that takes a device can fail with VGPU_ERROR_NO_SUCH_DEVICE,
 *           VGPU_ERROR_DEVICE_LOST and, if the device does not host vGPUs,
 *           VGPU_ERROR_NOT_SUPPORTED; one that takes a vGPU with VGPU_ERROR_NO_SUCH_VGPU; one that
 *           takes a type with VGPU_ERROR_NO_SUCH_TYPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/error.h>

VGPU_BEGIN_DECLS

struct vgpu_host;

/* As a GPU instance: the device itself. A time-sliced vGPU also has this GPU instance. */
#define VGPU_WHOLE_DEVICE UINT32_MAX

/* A number that this driver does not tell. */
#define VGPU_UNKNOWN UINT32_MAX

/* Numbers, of types or of vGPUs, in the driver's order. */
struct vgpu_number_list {
        size_t n_numbers;
        const uint32_t *numbers;
};

/* Versions of the data that moves between hosts: major << 16 | minor, compared as numbers. */
struct vgpu_host_versions {
        uint32_t supported_minimum, supported_maximum; /* what the host supports */
        uint32_t current_minimum, current_maximum;     /* what the host offers now */
};

enum vgpu_host_capability {
        VGPU_HOST_HETEROGENEOUS_MULTI_VGPU = 0, /* a VM may own vGPUs of several types */
        VGPU_HOST_WARM_UPDATE = 1,              /* the driver can be replaced below running vGPUs */
};

#define VGPU_HOST_CAPABILITY_COUNT 2

/**
 * vgpu_host_new() - make a host; opens nothing
 * @ret_host:      the caller owns it and frees it with vgpu_host_free()
 * @library_path:  path of the NVML library; copied. NULL: see above
 *
 * Errors: -ENOMEM.
 */
int vgpu_host_new(struct vgpu_host **ret_host, const char *library_path);

/** vgpu_host_free() - close the library; results stay valid. NULL is fine. Returns NULL. */
struct vgpu_host *vgpu_host_free(struct vgpu_host *host);

/**
 * vgpu_host_get_error() - get the reason why the last call with @host failed
 *
 * Never NULL; the kind is VGPU_ERROR_NONE after a success. Borrowed: valid until the next call
 * with @host.
 */
const struct vgpu_error *vgpu_host_get_error(const struct vgpu_host *host);

/** vgpu_host_get_library_path() - get the path of the library in use; borrowed, valid as long as @host. */
int vgpu_host_get_library_path(struct vgpu_host *host, const char **ret_path);

/** vgpu_host_get_driver_version() - get "580.159.04"; borrowed, valid as long as @host. */
int vgpu_host_get_driver_version(struct vgpu_host *host, const char **ret_version);

/** vgpu_host_get_capability() - ask whether the driver can. Errors: VGPU_ERROR_NOT_SUPPORTED. */
int vgpu_host_get_capability(struct vgpu_host *host, enum vgpu_host_capability capability,
                             bool *ret_is_there);

/** vgpu_host_capability_get_name() - "warm-update"; "unknown" for others. Never freed. */
const char *vgpu_host_capability_get_name(enum vgpu_host_capability capability);

/**
 * vgpu_host_lookup_versions() - ask which vGPU versions guests may have
 * @ret_versions:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED.
 */
int vgpu_host_lookup_versions(struct vgpu_host *host, struct vgpu_host_versions **ret_versions);

/**
 * vgpu_host_set_version_range() - offer only the versions from @minimum to @maximum, until the
 * driver is loaded again
 *
 * When a guest's driver loads, it takes the highest offered version that it knows. If it knows no
 * offered version, it does not load: its vGPU has no driver and no licence. A narrow range
 * therefore lets guests move to older hosts, and keeps out guests with other drivers.
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, not within the supported range. VGPU_ERROR_BUSY, a vGPU is
 * active. VGPU_ERROR_PERMISSION_DENIED. VGPU_ERROR_NOT_SUPPORTED.
 */
int vgpu_host_set_version_range(struct vgpu_host *host, uint32_t minimum, uint32_t maximum);

VGPU_END_DECLS

#endif
