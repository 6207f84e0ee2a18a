/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_PLACEMENT_H
#define OPENVGPU_PLACEMENT_H

/*
 * Placement: where in a device's frame buffer vGPUs of a type may begin.
 *
 * The frame buffer is divided in slots. A vGPU covers as many consecutive slots as its type says,
 * and its placement id is the first of them. In heterogeneous mode vGPUs of several sizes share a
 * device, and have fewer places to choose from.
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
        VGPU_PLACEMENT_HOMOGENEOUS = 1,   /* one size; drivers before R570 do not tell */
};

struct vgpu_placement_list {
        uint32_t slots; /* that one vGPU covers */
        size_t n_placements;
        const uint32_t *placements; /* ids, in the driver's order */
};

/**
 * vgpu_placement_lookup_possible() - where vGPUs of @type may ever be on @device
 * @ret_list:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_placement_lookup_possible(struct vgpu_host *host, uint32_t device, uint32_t type,
                                   enum vgpu_placement_mode mode,
                                   struct vgpu_placement_list **ret_list);

/**
 * vgpu_placement_lookup_creatable() - where one could be started now
 * @gpu_instance:  VGPU_WHOLE_DEVICE, or one in which @mode is heterogeneous
 * @ret_list:      the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_placement_lookup_creatable(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                    uint32_t type, enum vgpu_placement_mode mode,
                                    struct vgpu_placement_list **ret_list);

/** vgpu_placement_get_heterogeneous() - is the mode on? */
int vgpu_placement_get_heterogeneous(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                     bool *ret_is_on);

/**
 * vgpu_placement_set_heterogeneous() - switch the mode, until the driver is loaded anew
 *
 * Errors: VGPU_ERROR_BUSY, a vGPU is there. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_placement_set_heterogeneous(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                     bool is_on);

VGPU_END_DECLS

#endif
