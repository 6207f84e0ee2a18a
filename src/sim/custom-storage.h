/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUSTOM_STORAGE_H
#define SIM_CUSTOM_STORAGE_H

/*
 * Checkpoints and restores with custom storage, in the process that asks for it: the memory of the other
 * process is mapped here until the operation is completed. It is the memory itself, no copy.
 */

#include "sim/checkpoint-service.h"

/*
 * custom_storage_begin() - after the process at the other end of @fd has agreed; takes @fd
 * Whatever fails, the other process has failed with it.
 */
CUresult custom_storage_begin(int fd, CUcheckpointCustomStorageInfo **ret_info);

/* custom_storage_get_contexts() - return a bit for each host device whose primary context this process retained. */
uint32_t custom_storage_get_contexts(void);

#endif
