/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FAILURE_H
#define SIM_FAILURE_H

/*
 * Failures on demand: OPENVGPU_SIM_FAIL="cuMemCreate@3=2,cuMemMap@1=999" makes the third call of
 * cuMemCreate in this process answer 2 and the first of cuMemMap 999, without doing anything.
 * Names are those of the exports: cuMemAlloc_v2. With cuMemMap@1=+999 the call does what it should, and
 * answers 999 all the same.
 *
 * OPENVGPU_SIM_FAIL_FILE names a file that need not be there yet. Once it is, with one such entry in
 * it (written elsewhere and moved there), each process counts from then on, and the first that comes
 * to the N-th call removes the file and fails.
 */

#include "abi/cuda.h"
#include "sim-entries.h"

#define FAILURE_VARIABLE      "OPENVGPU_SIM_FAIL"
#define FAILURE_FILE_VARIABLE "OPENVGPU_SIM_FAIL_FILE"

/*
 * After one of the codes that end a driver (4) or break a context (700, 710, 719) all calls of the process answer that code.
 */

/*
 * failure_next() - the code that this call of @name shall answer, or CUDA_SUCCESS
 * @ret_late:  the same, for after it has done what it should
 */
CUresult failure_next(enum call_name name, CUresult *ret_late);

#endif
