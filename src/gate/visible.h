/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_VISIBLE_H
#define GATE_VISIBLE_H

/*
 * Which devices the driver sees, and with it the program: those of the vGPU, by CUDA_VISIBLE_DEVICES.
 *
 * Nothing that the driver sees can be hidden from the program: NVIDIA's runtime compares what it is shown with what the
 * driver has, and does not start where they differ (it answers 103).
 *
 * With OPENVGPU_ALL_DEVICES=1 the other devices of the host come behind those of the vGPU. The program can ask what they
 * are, and that is all: what would make something there, or give a right to memory, is refused. It is for programs that
 * share memory with others and are to be moved. A process that the driver has moved to a device can import memory there
 * only if the driver has seen that device when it was initialised (measured on 580.159.04: it answers 3 otherwise).
 */

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "wire/gate.h"

/*
 * visible_show() - before the driver is initialised
 *
 * The driver shall see the vGPU's devices, whatever the guest's scripts have put into the variable ("0" is usual) or
 * taken out of it, and wherever the vGPU has moved since the environment was made. Only a wish for no device at all
 * is fulfilled. Where the vGPU has several devices, and each entry of the variable names one of them, by its place
 * among them or its UUID, it sees these, in that order: so launchers give each of their processes one.
 */
void visible_show(const struct gate_welcome *welcome);

/*
 * visible_prepare() - before each call that may initialise the driver: it sees what visible_show() has chosen, whatever
 * the program has put into the variable since. visible_settle() - behind it: what the program starts finds only the
 * devices that it may use.
 */
void visible_prepare(void);
void visible_settle(void);

/* May the program use this device, by the driver's number? Those that @location or @access name, if they name any? */
bool visible_has(CUdevice device);
bool visible_has_location(const CUmemLocation *location);
bool visible_has_access(const CUmemAccessDesc *access, size_t n);

/*
 * visible_correct() - the driver, initialised, has @n devices: it leaves out what it cannot open, and all behind that.
 */
void visible_correct(int n);

/* visible_tell() - send SEEN. visible_tell_news() - for the agent: if visible_correct() has found another answer. */
int visible_tell(int socket);
int visible_tell_news(int socket);

/* visible_tell_seen() - which devices the driver sees, as in SEEN; none: there is nothing to tell. */
void visible_tell_seen(uint32_t ret_seen[GATE_SEEN_MAX]);

#endif
