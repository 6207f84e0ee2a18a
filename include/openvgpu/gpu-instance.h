/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_GPU_INSTANCE_H
#define OPENVGPU_GPU_INSTANCE_H

/*
 * GPU instance (MIG): a part of a device with memory and engines of its own. vGPUs can be backed by
 * one each, or share one in time slices.
 *
 * What can be asked of a device and of a GPU instance alike is with its noun (device.h, placement.h,
 * scheduler.h) and takes the GPU instance's id.
 *
 * Threads:  see host.h.
 * Errors:   those of host.h; VGPU_ERROR_NOT_SUPPORTED: the device has no MIG or it is off.
 */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

struct vgpu_gpu_instance {
        uint32_t id;
        uint32_t profile; /* its id: what vgpu_type_get_profile_id() answers */
        uint32_t start;   /* the first memory slice */
        uint32_t slices;  /* of memory */
};

struct vgpu_gpu_instance_list {
        size_t n_gpu_instances;
        const struct vgpu_gpu_instance *const *gpu_instances;
};

/**
 * vgpu_gpu_instance_lookup_all() - of a device
 * @ret_list:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_gpu_instance_lookup_all(struct vgpu_host *host, uint32_t device,
                                 struct vgpu_gpu_instance_list **ret_list);

VGPU_END_DECLS

#endif
