/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_USE_H
#define SAMPLER_USE_H

/*
 * The use of a device by its processes over time.
 *
 * The library averages over all samples of a process since the time that it is told, and each
 * process has samples at times of its own (driver 580: one that shares the device lags by up to some
 * hundred milliseconds). So the question goes back to the process that was seen longest ago, and
 * what is told of each process is for the time since its own last sample: percent times period,
 * summed up, is the time that the engine was busy. Asking since the newest sample of all lost a
 * sixth of the time of two busy processes.
 */

#include <stddef.h>
#include <stdint.h>

#include "abi/nvml.h"

/* More processes than this use no device at a time. */
#define USE_PROCESSES_MAX 4096

struct use {
        unsigned long long seen_us; /* CLOCK_REALTIME of the newest sample of all */
        nvmlReturn_t error;         /* told; 0: none */
        size_t n_seen;
        struct {
                unsigned int pid;
                unsigned long long us; /* until when its samples were told */
        } seen[USE_PROCESSES_MAX];
};

/* use_tell() - what is new since the last time. Errors: -EPIPE, the manager has hung up. */
int use_tell(struct use *use, nvmlDevice_t handle, uint32_t device);

/* use_tell_error() - that there is none, once. Errors: as above. */
int use_tell_error(struct use *use, uint32_t device, nvmlReturn_t error);

#endif
