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

/* module_unload_all() - unload all modules of a context that ends. */
void module_unload_all(CUcontext context);

#endif
