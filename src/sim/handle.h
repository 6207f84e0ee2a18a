/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HANDLE_H
#define SIM_HANDLE_H

/* The numbers by which programs hold physical memory. With the process' lock held. */

#include "sim/memory-file.h"

/*
 * handle_new() - one more reference of the program to @file, which is taken, also on failure.
 * Errors: CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult handle_new(CUmemGenericAllocationHandle *ret_handle, struct memory_file *file);

/* handle_find() - the file that the program holds by @handle, or NULL. */
struct memory_file *handle_find(CUmemGenericAllocationHandle handle);

/* handle_has_imported() - does the program hold memory that somebody else made? */
bool handle_has_imported(void);

#endif
