/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FINISH_H
#define GATE_FINISH_H

/* Waits for the guest's work on the device, for the drain. */

#include <stdint.h>

#include "abi/cuda.h"

/*
 * finish_all() - wait until the work of all contexts is done. Errors: -ETIMEDOUT at @until_ns
 * (CLOCK_MONOTONIC); -EIO, the device failed, with @ret_code. @ret_call is the driver's call.
 */
int finish_all(uint64_t until_ns, const char **ret_call, CUresult *ret_code);

/*
 * finish_stop() - the gate opens: a wait that timed out, and goes on for the context that it is at,
 * is to wait for no other. It would ruin captures that begin there.
 */
void finish_stop(void);

#endif
