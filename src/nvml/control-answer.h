/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_CONTROL_ANSWER_H
#define NVML_CONTROL_ANSWER_H

/* What an answer of the manager means in NVML's terms. */

#include "abi/nvml.h"

/*
 * control_answer_get_code() - SUCCESS for an object without `error`; else the code for the error's
 * name; UNKNOWN for a name without one, and for what is no object.
 */
nvmlReturn_t control_answer_get_code(const char *answer);

#endif
