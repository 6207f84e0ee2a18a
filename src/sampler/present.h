/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_PRESENT_H
#define SAMPLER_PRESENT_H

/* The present memory and sessions of processes on a device, in contrast to use over time. */

#include <stdbool.h>

#include "abi/nvml.h"

/* Per device; zeroed at first. What it can't tell is not asked for again. */
struct present {
        bool lacks_processes, lacks_encoders, lacks_captures;
};

/* present_tell() - all of it. Errors: -EPIPE, the manager has hung up. */
int present_tell(struct present *present, nvmlDevice_t handle, uint32_t device);

#endif
