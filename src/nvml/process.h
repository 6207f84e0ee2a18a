/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_PROCESS_H
#define NVML_PROCESS_H

/* The processes of a device, for the lists of the interface and those of the unnamed table. */

#include <stdbool.h>

#include "state/state-page.h"

/*
 * process_next() - a loop over those of the given kinds (bits of enum state_process_kind): start
 * with *cursor 0; false ends.
 */
bool process_next(struct state_process *ret_process, uint32_t *cursor, uint32_t device,
                  uint32_t kinds);

/* process_find() - the one with this number, on any device that we show. */
bool process_find(struct state_process *ret_process, uint32_t pid);

/* process_get_gpu_instance() - the id of the one behind its vGPU; STATE_NONE: it shares time. */
uint32_t process_get_gpu_instance(const struct state_process *process);

#endif
