/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_GPU_INSTANCE_H
#define OPENVGPU_GPU_INSTANCE_H

/*
 * GPU instance (MIG): a part of a device with memory and engines of its own. A GPU instance backs
 * one vGPU, or several vGPUs in time slices.
 *
 * Functions that work on a device and on a GPU instance are in the headers of their nouns
 * (device.h, placement.h, scheduler.h), and take the GPU instance's id.
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
        uint32_t profile; /* id of the profile, as vgpu_type_get_profile_id() returns it */
        uint32_t start;   /* the first memory slice */
        uint32_t slices;  /* memory slices */
};

struct vgpu_gpu_instance_list {
        size_t n_gpu_instances;
        const struct vgpu_gpu_instance *const *gpu_instances;
};

/**
 * vgpu_gpu_instance_lookup_all() - get all GPU instances of a device
 * @ret_list:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_gpu_instance_lookup_all(struct vgpu_host *host, uint32_t device,
                                 struct vgpu_gpu_instance_list **ret_list);

VGPU_END_DECLS

#endif
