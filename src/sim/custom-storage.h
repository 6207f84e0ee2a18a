/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUSTOM_STORAGE_H
#define SIM_CUSTOM_STORAGE_H

/*
 * Checkpoint and restore with custom storage, in the process that asks for it: the memory of the other
 * process, mapped here until the operation is completed. It is the other's memory itself, no copy.
 */

#include "sim/checkpoint-service.h"

/*
 * custom_storage_begin() - after the process at the other end of @fd has agreed; takes @fd
 * Whatever fails, the other process has failed with it.
 */
CUresult custom_storage_begin(int fd, CUcheckpointCustomStorageInfo **ret_info);

/* custom_storage_get_contexts() - host devices of which this process has retained the primary context. */
uint32_t custom_storage_get_contexts(void);

#endif
