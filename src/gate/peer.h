/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_PEER_H
#define GATE_PEER_H

/*
 * Peer access: cuCtxEnablePeerAccess() has no effect on memory of the virtual-memory calls, where
 * each mapping says which devices may use it. The gate therefore remembers which device may use
 * whose memory, and sets this for each of its mappings.
 */

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"

#define PEER_DEVICES_MAX 64

/* peer_mask() - return a bit for each other device that may use memory of @device. */
uint64_t peer_mask(CUdevice device);

/*
 * peer_access() - list the devices that may use memory of @device, itself first; @more have a bit in that.
 * Returns how many.
 */
size_t peer_access(CUmemAccessDesc access[static PEER_DEVICES_MAX], CUdevice device, uint64_t more);

/* peer_allow(), peer_deny() - permit or forbid @device to use memory of @owner. */
void peer_allow(CUdevice owner, CUdevice device);
void peer_deny(CUdevice owner, CUdevice device);

#endif
