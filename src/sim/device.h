/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

/* Devices as the process sees them. */

#include "sim/process.h"

/* device_select() - take the host's devices that @visible (CUDA_VISIBLE_DEVICES) names. */
int device_select(const char *visible);

#endif
