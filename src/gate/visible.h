/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_VISIBLE_H
#define GATE_VISIBLE_H

/*
 * Which devices the driver shows to the program: those of its vGPU, by CUDA_VISIBLE_DEVICES.
 *
 * In a vGPU of several devices the driver sees the other devices of the host as well, behind those of the
 * vGPU, and we hide them. A process that the driver has moved to a device can import memory there only if the driver
 * has seen that device when it was initialised (measured on 580.159.04: it answers 3 otherwise). So processes that
 * share memory can be moved.
 */

#include <stdbool.h>

#include "abi/cuda.h"
#include "wire/gate.h"

/*
 * visible_show() - before the driver is initialised
 *
 * The program shall see the vGPU's devices and no others, whatever the guest's scripts have put into the
 * variable ("0" is usual) or taken out of it, and wherever the vGPU has moved since the environment was
 * made. Only a wish for no device at all is left alone. Where the vGPU has several devices, and each entry
 * of the variable names one of them, by its place among them or its UUID, the program sees these, in that
 * order: so launchers give each of their processes one.
 */
void visible_show(const struct gate_welcome *welcome);

/* visible_prepare() - before each call that may initialise the driver: one that has failed was settled as well. */
void visible_prepare(void);

/* visible_settle() - the driver is initialised: what the program starts finds only what it sees itself in the variable. */
void visible_settle(void);

/* visible_has() - may the program see this device, by the driver's number? visible_limit() - how many, of @n that the driver has. */
bool visible_has(CUdevice device);
int visible_limit(int n);

/* visible_tell_seen() - which devices the driver sees, as in JOIN; none: the one of its vGPU. */
void visible_tell_seen(uint32_t ret_seen[GATE_SEEN_MAX]);

#endif
