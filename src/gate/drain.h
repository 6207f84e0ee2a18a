/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_DRAIN_H
#define GATE_DRAIN_H

/*
 * Closing and opening the gate, for the agent.
 *
 * After drain_close() no thread of the guest is inside a driver call and none gets in until
 * drain_open(); after drain_finish() the device has no work of the guest left. Both give up at a
 * deadline (CLOCK_MONOTONIC, nanoseconds) and say what they were waiting for.
 */

#include <stdint.h>

#include "abi/cuda.h"

/* drain_prepare() - once, before threads shall be drained. Errors: -ENOTSUP, no membarrier(2). */
int drain_prepare(void);

/*
 * drain_close() - Errors: -ETIMEDOUT: a capture has not ended or a call has not returned, and the
 * gate is open again; @ret_call is the call.
 */
int drain_close(uint64_t deadline_ns, const char **ret_call);

/* drain_finish() - Errors: -ETIMEDOUT, -EIO: the device failed, with @ret_code. */
int drain_finish(uint64_t deadline_ns, const char **ret_call, CUresult *ret_code);

void drain_open(void);

/* drain_forget() - in the child of a fork. */
void drain_forget(void);

#endif
