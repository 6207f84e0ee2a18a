/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_HOOK_H
#define GATE_HOOK_H

/* The wrappers of driver calls share these functions; entry.h declares the wrappers. */

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "gate/memory.h"

/* An ordinary allocation of the driver's, and its end: charged, not movable by us. */
CUresult hook_allocate_of_driver(CUdeviceptr *pointer, size_t size);
CUresult hook_free_of_driver(CUdeviceptr pointer);

/* hook_register_view() - note a dma-buf of memory that the application has mapped. False: there is none. */
bool hook_register_view(CUdeviceptr address, uint64_t size);

/* hook_looks_ordinary() - is at @address what must look like ordinary memory: is it the gate's, or opened by legacy IPC? */
bool hook_looks_ordinary(CUdeviceptr address);

/* hook_is_node_good() - does it copy nothing beyond an allocation? */
bool hook_is_node_good(const CUgraphNodeParams *params);

/* hook_complete_node() - @params with the context that they lack, if in @space. */
CUgraphNodeParams *hook_complete_node(CUgraphNodeParams *params, CUgraphNodeParams *space);

/* hook_find_opened() - find the allocation of another process, opened by legacy IPC, that has @address. */
bool hook_find_opened(CUdeviceptr address, struct memory_info *ret_info);

#endif
