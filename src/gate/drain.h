/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_DRAIN_H
#define GATE_DRAIN_H

/*
 * Closes and opens the gate, for the agent.
 *
 * After drain_close() no thread of the guest is inside a driver call, none gets in until drain_open(), and
 * the device has no work of the guest left.
 */

#include <stdint.h>

#include "abi/cuda.h"

/* drain_prepare() - call once, before the first drain. Errors: -ENOTSUP, there is no membarrier(2). */
int drain_prepare(void);

/*
 * drain_close() - gives up at the deadline (CLOCK_MONOTONIC). Errors: -ETIMEDOUT, a capture has not ended, a
 * call has not returned or work is not done; -EIO, the device failed, with @ret_code. @ret_call is the
 * call, with -ETIMEDOUT one of the program's, and the gate is open again.
 */
int drain_close(uint64_t deadline_ns, const char **ret_call, CUresult *ret_code);

/*
 * drain_step() - the gate is closed: let threads make @n_launches launches, or as many as they want to
 * until @until_ns, and close it again. Errors as for drain_close(); the gate is open then.
 * @ret_n_launches: those that were made
 */
int drain_step(uint32_t n_launches, uint64_t until_ns, uint64_t deadline_ns,
               uint32_t *ret_n_launches, const char **ret_call, CUresult *ret_code);

void drain_open(void);

#endif
