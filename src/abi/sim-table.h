/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_SIM_TABLE_H
#define ABI_SIM_TABLE_H

/*
 * What the simulated driver tells its own runtime, past whatever stands before it, and the gate: a table of
 * cuGetExportTable(), as NVIDIA's runtime has them of NVIDIA's driver.
 */

#include <stddef.h>

#include "abi/cuda.h"

/*
 * What became of contexts that were restored. A real driver has rings for that (gate/whole.h), the simulated one
 * has none: so it is asked.
 */
enum sim_mend {
        SIM_MEND_NOTHING, /* none was restored since */
        SIM_MEND_DONE,    /* they are whole again */
        SIM_MEND_REFUSED, /* they stay as they are: OPENVGPU_SIM_WHOLE=0 */
};

struct sim_table {
        size_t size; /* of this struct */
        CUresult (*get_device_count)(int *ret_count);
        enum sim_mend (*mend_contexts)(void);
};

/* No UUID of NVIDIA's: those are random. */
#define SIM_TABLE_ID "OpenVGPU sim: 2"

_Static_assert(sizeof(SIM_TABLE_ID) == sizeof(CUuuid), "it is one");

#endif
