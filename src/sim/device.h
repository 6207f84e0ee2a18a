/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

/* Devices as the process sees them. */

#include "sim/process.h"

/* device_select() - take the host's devices that @visible (CUDA_VISIBLE_DEVICES) names. */
int device_select(const char *visible);

/* device_host() - what the host says about @device, at the place where it is now. */
const struct host_device *device_host(const struct device *device);

#endif
