/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_VGPU_TYPE_H
#define NVML_VGPU_TYPE_H

/*
 * vGPU types: the sizes in which a device can be cut.
 *
 * They are derived from the device. For boards that we know, the types are those for
 * compute that NVIDIA documents for the board, with its names ("NVIDIA H200-35C": a quarter); other
 * boards are cut in 1, 2, 4, 8, 16 and 32, named after the device and the size in GiB.
 * A type carries a frame buffer:
 *
 *     frame buffer = memory of the device / most instances, rounded down to 512 MiB;
 *     the type of one instance has all of it
 *
 * so that the most instances always fit, whatever part of the memory the board's
 * driver keeps. The type of a vGPU is the smallest of its device that holds its
 * quota: quotas are free, types are what NVML's clients know.
 *
 * The id of a type is PCI device << 8 | most instances: the same on every host and in every run.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvml-vgpu.h"
#include "board/board.h"

/* At most so many types a device. */
#define VGPU_TYPES_MAX 16

struct vgpu_type {
        nvmlVgpuTypeId_t id;
        uint32_t max_instances;
        uint32_t gigabytes;    /* as in the name */
        uint64_t frame_buffer; /* bytes */
};

/* vgpu_type_list() - the types of @device, largest first, into VGPU_TYPES_MAX places. */
uint32_t vgpu_type_list(struct vgpu_type *types, const struct board_device *device);

/* vgpu_type_find() - by id. */
bool vgpu_type_find(struct vgpu_type *ret_type, const struct board_device *device,
                    nvmlVgpuTypeId_t id);

/* vgpu_type_of_quota() - the smallest type of @device that holds @quota bytes, else the largest. */
nvmlVgpuTypeId_t vgpu_type_of_quota(const struct board_device *device, uint64_t quota);

/* vgpu_type_format_name() - "NVIDIA H200-35C" into @text of NVML_VGPU_NAME_BUFFER_SIZE bytes. */
void vgpu_type_format_name(char *text, const struct vgpu_type *type,
                           const struct board_device *device);

#endif
