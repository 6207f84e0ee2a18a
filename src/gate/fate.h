/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FATE_H
#define GATE_FATE_H

/* The driver's answers after which this process can take no part in a suspend or resume. */

#include "abi/cuda.h"
#include "wire/gate.h"

enum gate_fate fate_of(CUresult code);

#endif
