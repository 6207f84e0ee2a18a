/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CURRENT_H
#define GATE_CURRENT_H

/* What is charged to the device on which the calling thread works. */

#include "abi/cuda.h"

/* current_device() - the device of the current context; 0 without one. */
CUdevice current_device(void);

#endif
