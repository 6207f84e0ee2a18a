/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

/* Modules, and the functions in them. Call these with the process' lock held. */

#include "sim/context.h"
#include "sim/kernel.h"

struct CUfunc_st {
        struct object object;
        CUmodule module;
        const struct kernel *kernel;
};

/* So many bytes of the device does the code of each module take from the first launch of one of its kernels on. */
#define MODULE_CODE_VARIABLE "OPENVGPU_SIM_CODE"

/* module_load_code() - take them. Errors: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult module_load_code(CUmodule module);

/* module_unload_all() - unload all modules of a context that ends. */
void module_unload_all(CUcontext context);

#endif
