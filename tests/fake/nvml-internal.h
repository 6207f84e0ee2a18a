/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_NVML_INTERNAL_H
#define FAKE_NVML_INTERNAL_H

/* What the files of the fake NVML share. */

#include "abi/nvml-vgpu.h"
#include "fake/nvml.h"

extern struct fake_nvml fake_nvml;

struct fake_instance {
        unsigned int id, device, type, gpu_instance, placement;
        const char *uuid;
        bool has_guest;
};

struct fake_type {
        unsigned int id;
        const char *name;
        unsigned long long frame_buffer;
        unsigned int profile, maximum, fps;
};

/* The test's wish for @function, else what the handle deserves. */
nvmlReturn_t fake_begin(const char *function);
nvmlReturn_t fake_begin_device(const char *function, nvmlDevice_t device);
nvmlReturn_t fake_begin_part(const char *function, nvmlGpuInstance_t part);
nvmlReturn_t fake_begin_instance(const char *function, nvmlVgpuInstance_t id,
                                 const struct fake_instance **ret_instance);
nvmlReturn_t fake_begin_type(const char *function, nvmlVgpuTypeId_t id,
                             const struct fake_type **ret_type);

/* @n items into the caller's room; a caller who asks with a count of 0 gets @on_zero. */
nvmlReturn_t fake_give(const void *from, unsigned int n, size_t size, void *to, unsigned int *count,
                       nvmlReturn_t on_zero);

nvmlReturn_t fake_text(char *to, unsigned int size, const char *from);

#endif
