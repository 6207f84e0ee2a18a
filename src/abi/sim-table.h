/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_SIM_TABLE_H
#define ABI_SIM_TABLE_H

/*
 * What the simulated driver tells its own runtime, past whatever stands before it: a table of
 * cuGetExportTable(), as NVIDIA's runtime has them of NVIDIA's driver.
 */

#include <stddef.h>

#include "abi/cuda.h"

struct sim_table {
        size_t size; /* of this struct */
        CUresult (*get_device_count)(int *ret_count);
};

/* No UUID of NVIDIA's: those are random. */
#define SIM_TABLE_ID "OpenVGPU sim: 1"

_Static_assert(sizeof(SIM_TABLE_ID) == sizeof(CUuuid), "it is one");

#endif
