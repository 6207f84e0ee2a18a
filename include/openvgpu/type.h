/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_TYPE_H
#define OPENVGPU_TYPE_H

/*
 * vGPU type: a profile in which devices are cut, as NVML knows it. Of a number: see host.h; device.h
 * has the types of a device.
 *
 * Units:    bytes.
 * Threads:  see host.h.
 * Errors:   those of host.h, VGPU_ERROR_NO_SUCH_TYPE from all.
 */

#include <stdbool.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

enum vgpu_type_capability {
        VGPU_TYPE_NVLINK_P2P = 0,
        VGPU_TYPE_GPUDIRECT = 1,
        VGPU_TYPE_MULTI_VGPU_EXCLUSIVE = 2, /* a VM that has one may have more only of this type */
        VGPU_TYPE_EXCLUSIVE_TYPE = 3,       /* no other type on its device */
        VGPU_TYPE_EXCLUSIVE_SIZE = 4,       /* no other size on its device */
};

#define VGPU_TYPE_CAPABILITY_COUNT 5

/* vgpu_type_get_name() - "NVIDIA H200-141C". vgpu_type_get_class() - "Compute". vgpu_free(). */
int vgpu_type_get_name(struct vgpu_host *host, uint32_t type, char **ret_name);
int vgpu_type_get_class(struct vgpu_host *host, uint32_t type, char **ret_class);

/**
 * vgpu_type_get_licence() - the editions that permit it: "name,version", joined by ";"
 * @ret_licence:  the caller frees it with vgpu_free()
 */
int vgpu_type_get_licence(struct vgpu_host *host, uint32_t type, char **ret_licence);

/** vgpu_type_get_profile_id() - of GPU instances (MIG); VGPU_UNKNOWN: the type is time-sliced. */
int vgpu_type_get_profile_id(struct vgpu_host *host, uint32_t type, uint32_t *ret_profile);

/** vgpu_type_get_device_id() - PCI numbers that a guest sees: device << 16 | vendor. */
int vgpu_type_get_device_id(struct vgpu_host *host, uint32_t type, uint32_t *ret_device_id,
                            uint32_t *ret_subsystem_id);

/** vgpu_type_get_frame_buffer() - bytes. */
int vgpu_type_get_frame_buffer(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_heads() - virtual displays. */
int vgpu_type_get_heads(struct vgpu_host *host, uint32_t type, uint32_t *ret_heads);

/**
 * vgpu_type_get_resolution() - the largest of one display
 * @head:  from 0
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, it has fewer heads.
 */
int vgpu_type_get_resolution(struct vgpu_host *host, uint32_t type, uint32_t head,
                             uint32_t *ret_width, uint32_t *ret_height);

/**
 * vgpu_type_get_frame_rate_limit() - frames a second
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, there is no limit.
 */
int vgpu_type_get_frame_rate_limit(struct vgpu_host *host, uint32_t type, uint32_t *ret_fps);

/** vgpu_type_get_max_instances() - how many fit on @device. */
int vgpu_type_get_max_instances(struct vgpu_host *host, uint32_t device, uint32_t type,
                                uint32_t *ret_count);

/** vgpu_type_get_max_instances_per_vm() - how many one VM may own. */
int vgpu_type_get_max_instances_per_vm(struct vgpu_host *host, uint32_t type, uint32_t *ret_count);

/**
 * vgpu_type_get_max_instances_per_gpu_instance() - how many fit in a GPU instance
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, the type is time-sliced.
 */
int vgpu_type_get_max_instances_per_gpu_instance(struct vgpu_host *host, uint32_t type,
                                                 uint32_t *ret_count);

/** vgpu_type_get_bar1() - bytes. */
int vgpu_type_get_bar1(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_gsp_heap() - bytes that the firmware takes for each vGPU. */
int vgpu_type_get_gsp_heap(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_reservation() - bytes of frame buffer that are set aside for each vGPU. */
int vgpu_type_get_reservation(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes);

/** vgpu_type_get_capability() - can it? */
int vgpu_type_get_capability(struct vgpu_host *host, uint32_t type,
                             enum vgpu_type_capability capability, bool *ret_is_there);

/** vgpu_type_capability_get_name() - "nvlink-p2p"; "unknown" for others. Never freed. */
const char *vgpu_type_capability_get_name(enum vgpu_type_capability capability);

VGPU_END_DECLS

#endif
