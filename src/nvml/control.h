/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_CONTROL_H
#define NVML_CONTROL_H

/*
 * Sends a change to the manager over its control socket (docs/control-protocol.md). The manager
 * sees who calls, and decides who may change what.
 *
 * A connection lives for one call. It uses no thread and no signal, and never waits for ever. Any
 * thread may call.
 */

#include "abi/nvml.h"

/*
 * control_call() - call @method with @parameters, a JSON object without its braces, as a format of
 * printf(); nothing in it is escaped. Returns the code for the manager's answer, or UNKNOWN if no
 * intelligible answer came in time.
 */
nvmlReturn_t control_call(const char *method, const char *parameters, ...)
        __attribute__((format(printf, 2, 3)));

/* control_call_for() - do the same for a method that makes something, and get its id from the answer. */
nvmlReturn_t control_call_for(const char *method, unsigned int *ret_id, const char *parameters, ...)
        __attribute__((format(printf, 3, 4)));

#endif
