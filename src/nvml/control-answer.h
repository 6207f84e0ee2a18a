/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_CONTROL_ANSWER_H
#define NVML_CONTROL_ANSWER_H

/* Turns answers of the manager into NVML's codes. */

#include <stdbool.h>

#include "abi/nvml.h"

/*
 * control_answer_get_code() - return SUCCESS for an object without `error`, else the code for the error's
 * name. Return UNKNOWN for a name without a code, and for anything that is no object.
 */
nvmlReturn_t control_answer_get_code(const char *answer);

/* control_answer_get_id() - get the number `id` of its `parameters`; false: there is none. */
bool control_answer_get_id(const char *answer, unsigned int *ret_id);

#endif
