/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LIBRARY_H
#define SAMPLER_LIBRARY_H

/* The functions of NVIDIA's NVML that the sampler uses. */

#include "abi/nvml.h"

struct library {
        nvmlReturn_t (*init)(void);
        nvmlReturn_t (*find)(const char *uuid, nvmlDevice_t *device);

        /* At least one of the two is there. */
        nvmlReturn_t (*sample)(nvmlDevice_t device, nvmlProcessesUtilizationInfo_v1_t *info);
        nvmlReturn_t (*sample_before_550)(nvmlDevice_t device,
                                          nvmlProcessUtilizationSample_t *samples,
                                          unsigned int *count, unsigned long long last_seen_us);

        /* NULL where the library lacks them. */
        nvmlReturn_t (*list_processes)(nvmlDevice_t device, unsigned int *count,
                                       nvmlProcessInfo_t *processes);
        nvmlReturn_t (*list_encoders)(nvmlDevice_t device, unsigned int *count,
                                      nvmlEncoderSessionInfo_t *sessions);
        nvmlReturn_t (*list_captures)(nvmlDevice_t device, unsigned int *count,
                                      nvmlFBCSessionInfo_t *sessions);
};

extern struct library library;

/* library_load() - for once and all. Errors: -ENOENT, -ENOSYS; it has said why. */
int library_load(const char *path);

#endif
