/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_TYPE_H
#define OPENVGPU_TYPE_H

/*
 * vGPU type: a profile into which devices are cut, as NVML knows it. A number names a type
 * (host.h); device.h has the types of a device.
 *
 * Units:    bytes.
 * Threads:  see host.h.
 * Errors:   those of host.h; every function can fail with VGPU_ERROR_NO_SUCH_TYPE.
 */

#include <stdbool.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

enum vgpu_type_capability {
        VGPU_TYPE_NVLINK_P2P = 0,
        VGPU_TYPE_GPUDIRECT = 1,
        VGPU_TYPE_MULTI_VGPU_EXCLUSIVE = 2, /* a VM may combine it only with its own type */
        VGPU_TYPE_EXCLUSIVE_TYPE = 3,       /* no other type on its device */
        VGPU_TYPE_EXCLUSIVE_SIZE = 4,       /* no other size on its device */
};

#define VGPU_TYPE_CAPABILITY_COUNT 5

/* vgpu_type_get_name() - "NVIDIA H200-141C". vgpu_type_get_class() - "Compute". vgpu_free(). */
int vgpu_type_get_name(struct vgpu_host *host, uint32_t type, char **ret_name);
int vgpu_type_get_class(struct vgpu_host *host, uint32_t type, char **ret_class);

/**
 * vgpu_type_get_licence() - get the editions that permit it: "name,version", joined by ";"
 * @ret_licence:  the caller frees it with vgpu_free()
 */
int vgpu_type_get_licence(struct vgpu_host *host, uint32_t type, char **ret_licence);

/** vgpu_type_get_profile_id() - get the profile of GPU instances (MIG); VGPU_UNKNOWN: time-sliced. */
int vgpu_type_get_profile_id(struct vgpu_host *host, uint32_t type, uint32_t *ret_profile);

/** vgpu_type_get_device_id() - get the PCI numbers that a guest sees: device << 16 | vendor. */
int vgpu_type_get_device_id(struct vgpu_host *host, uint32_t type, uint32_t *ret_device_id,
                            uint32_t *ret_subsystem_id);

/** vgpu_type_get_frame_buffer() - get the bytes of frame buffer. */
int vgpu_type_get_frame_buffer(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_heads() - get the number of virtual displays. */
int vgpu_type_get_heads(struct vgpu_host *host, uint32_t type, uint32_t *ret_heads);

/**
 * vgpu_type_get_resolution() - get the largest resolution of one display
 * @head:  from 0
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, the type has fewer heads.
 */
int vgpu_type_get_resolution(struct vgpu_host *host, uint32_t type, uint32_t head,
                             uint32_t *ret_width, uint32_t *ret_height);

/**
 * vgpu_type_get_frame_rate_limit() - get the limit in frames a second
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, there is no limit.
 */
int vgpu_type_get_frame_rate_limit(struct vgpu_host *host, uint32_t type, uint32_t *ret_fps);

/** vgpu_type_get_max_instances() - ask how many vGPUs fit on @device. */
int vgpu_type_get_max_instances(struct vgpu_host *host, uint32_t device, uint32_t type,
                                uint32_t *ret_count);

/** vgpu_type_get_max_instances_per_vm() - ask how many vGPUs one VM may own. */
int vgpu_type_get_max_instances_per_vm(struct vgpu_host *host, uint32_t type, uint32_t *ret_count);

/**
 * vgpu_type_get_max_instances_per_gpu_instance() - ask how many vGPUs fit in a GPU instance
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, the type is time-sliced.
 */
int vgpu_type_get_max_instances_per_gpu_instance(struct vgpu_host *host, uint32_t type,
                                                 uint32_t *ret_count);

/** vgpu_type_get_bar1() - get the bytes of BAR1. */
int vgpu_type_get_bar1(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_gsp_heap() - get the bytes that the firmware takes for each vGPU. */
int vgpu_type_get_gsp_heap(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_reservation() - get the bytes of frame buffer set aside for each vGPU. */
int vgpu_type_get_reservation(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_capability() - ask whether the type has a capability. */
int vgpu_type_get_capability(struct vgpu_host *host, uint32_t type,
                             enum vgpu_type_capability capability, bool *ret_is_there);

/** vgpu_type_capability_get_name() - "nvlink-p2p"; "unknown" for others. Never freed. */
const char *vgpu_type_capability_get_name(enum vgpu_type_capability capability);

VGPU_END_DECLS

#endif
