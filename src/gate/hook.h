/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_HOOK_H
#define GATE_HOOK_H

/* What the wrappers of driver calls share; the wrappers themselves are declared by entry.h. */

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "gate/memory.h"

/* An ordinary allocation of the driver's, and its end: charged, not movable by us. */
CUresult hook_allocate_of_driver(CUdeviceptr *pointer, size_t size);
CUresult hook_free_of_driver(CUdeviceptr pointer);

/* hook_register_view() - there is a dma-buf of what the application has mapped there. False: nothing. */
bool hook_register_view(CUdeviceptr address, uint64_t size);

/* hook_find_opened() - the allocation of another process, opened by legacy IPC, that @address lies in. */
bool hook_find_opened(CUdeviceptr address, struct memory_info *ret_info);

#endif
