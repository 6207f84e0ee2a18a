/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_VISIBLE_H
#define GATE_VISIBLE_H

/* Which devices the driver shows to the program: those of its vGPU, by CUDA_VISIBLE_DEVICES. */

#include "wire/gate.h"

/*
 * visible_show() - before the driver is initialised
 *
 * The driver shall see the vGPU's devices and no others, whatever the guest's scripts have put into the
 * variable ("0" is usual) or taken out of it, and wherever the vGPU has moved since the environment was
 * made. Only a wish for no device at all is left alone. Where the vGPU has several devices, and each entry
 * of the variable names one of them, by its place among them or its UUID, the program sees these, in that
 * order: so launchers give each of their processes one.
 */
void visible_show(const struct gate_welcome *welcome);

#endif
