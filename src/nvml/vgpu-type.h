/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_VGPU_TYPE_H
#define NVML_VGPU_TYPE_H

/*
 * vGPU types as a device offers them. What they are is the manager's to say: it is on the board.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvml-vgpu.h"
#include "board/board.h"

/* At most so many types a device. */
#define VGPU_TYPES_MAX BOARD_OFFERS_MAX

struct vgpu_type {
        nvmlVgpuTypeId_t id;
        uint32_t max_instances; /* on that device */
        uint64_t frame_buffer;  /* bytes */
};

/* vgpu_type_list() - the types of @device, largest first, into VGPU_TYPES_MAX places. */
uint32_t vgpu_type_list(struct vgpu_type *types, const struct board_device *device);

/* vgpu_type_find() - by id. */
bool vgpu_type_find(struct vgpu_type *ret_type, const struct board_device *device,
                    nvmlVgpuTypeId_t id);

#endif
