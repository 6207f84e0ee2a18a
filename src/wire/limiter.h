/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_LIMITER_H
#define WIRE_LIMITER_H

/*
 * vgpu-sampler --limit NVML-LIBRARY GROUP BYTES UUID...: sets the memory limit of the control group on each of these
 * devices, and tells how that went, in one int32_t over the connection that is its descriptor LIMITER_FD: 0,
 * NVML's code of the device that failed, or one of these. BYTES: 2^64 - 1 takes the limit away.
 */

#define LIMITER_OPTION "--limit"
#define LIMITER_FD     3

#define LIMITER_UNKNOWN (-1) /* this NVML has no such function, or its driver none */
#define LIMITER_FAILED  (-2) /* the library cannot be loaded, or is not usable */

#endif
