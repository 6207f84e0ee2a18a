/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_PLACEMENT_H
#define OPENVGPU_PLACEMENT_H

/*
 * Placement: where in a device's frame buffer vGPUs of a type may begin.
 *
 * The frame buffer is divided into slots. A vGPU covers as many consecutive slots as its type says,
 * and the first of them is its placement id. In heterogeneous mode, vGPUs of several sizes share a
 * device and have fewer possible placements.
 *
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

enum vgpu_placement_mode {
        VGPU_PLACEMENT_HETEROGENEOUS = 0, /* several sizes on a device */
        VGPU_PLACEMENT_HOMOGENEOUS = 1,   /* one size; drivers before R570 do not say */
};

struct vgpu_placement_list {
        uint32_t slots; /* number of slots that a vGPU covers */
        size_t n_placements;
        const uint32_t *placements; /* ids, in the driver's order */
};

/**
 * vgpu_placement_lookup_possible() - get the placements that vGPUs of @type may have on @device
 * @ret_list:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_placement_lookup_possible(struct vgpu_host *host, uint32_t device, uint32_t type,
                                   enum vgpu_placement_mode mode,
                                   struct vgpu_placement_list **ret_list);

/**
 * vgpu_placement_lookup_creatable() - get the placements at which a vGPU could start now
 * @gpu_instance:  VGPU_WHOLE_DEVICE, or a GPU instance if @mode is heterogeneous
 * @ret_list:      the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_placement_lookup_creatable(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                    uint32_t type, enum vgpu_placement_mode mode,
                                    struct vgpu_placement_list **ret_list);

/** vgpu_placement_get_heterogeneous() - ask whether heterogeneous mode is on */
int vgpu_placement_get_heterogeneous(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                     bool *ret_is_on);

/**
 * vgpu_placement_set_heterogeneous() - switch heterogeneous mode, until the driver is loaded again
 *
 * Errors: VGPU_ERROR_BUSY, the device has a vGPU. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_placement_set_heterogeneous(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                     bool is_on);

VGPU_END_DECLS

#endif
