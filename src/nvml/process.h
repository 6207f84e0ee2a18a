/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_PROCESS_H
#define NVML_PROCESS_H

/* Finds the processes of a device, for the lists of the interface and those of the unnamed table. */

#include <stdbool.h>

#include "state/state-page.h"

/*
 * process_next() - loop over the processes of these kinds (bits of enum state_process_kind): start with
 * *cursor 0; false ends the loop.
 */
bool process_next(struct state_process *ret_process, uint32_t *cursor, uint32_t device,
                  uint32_t kinds);

/* process_find() - find the process with this number, on any device that we show. */
bool process_find(struct state_process *ret_process, uint32_t pid);

/* process_get_gpu_instance() - return the id of the GPU instance of its vGPU; STATE_NONE: it has none. */
uint32_t process_get_gpu_instance(const struct state_process *process);

#endif
