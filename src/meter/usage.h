/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_USAGE_H
#define METER_USAGE_H

/* A billed amount of usage, and who is billed for it. */

#include <stdint.h>

#include "meter/engine.h"

struct usage_amount {
        uint64_t busy_ns[METER_ENGINES];
        uint64_t quota_mib_ms; /* MiB * ms of frame buffer that was set aside; vGPUs only */
        uint64_t used_mib_ms;  /* likewise, of frame buffer that was held */
};

/* Who used it: a process of a vGPU on a device. Process 0 is the vGPU itself. */
struct usage_key {
        uint64_t process; /* serial number */
        uint64_t vgpu;    /* serial number */
        uint32_t device;  /* index */
};

void usage_add(struct usage_amount *sum, const struct usage_amount *amount);
_Bool usage_is_zero(const struct usage_amount *amount);

#endif
