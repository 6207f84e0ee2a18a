/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_ENGINE_H
#define METER_ENGINE_H

/* The engines of a device whose time is metered, in the order of NVML's columns. */

enum meter_engine {
        METER_SM = 0, /* GPU time: kernels ran */
        METER_MEMORY, /* device memory was read or written */
        METER_ENCODER,
        METER_DECODER,
        METER_JPEG,
        METER_OFA,
        METER_ENGINES,
};

#endif
