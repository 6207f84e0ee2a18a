/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_START_H
#define SIM_START_H

/* Starts the simulated driver in this process. */

#include "abi/cuda.h"

/* start_process() - do what cuInit() does, once with success. Errors: those of cuInit(). */
CUresult start_process(void);

#endif
