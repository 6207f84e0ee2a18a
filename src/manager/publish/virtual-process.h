/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_PROCESS_H
#define MANAGER_VIRTUAL_PROCESS_H

/* The processes of a scenario's vGPUs, and what they use. For virtual.c only. */

#include "manager/publish/virtual-internal.h"

struct scenario_utilization;

/* virtual_get_sample() - the percentages of @ret_sample at @at seconds. */
void virtual_get_sample(const struct scenario_utilization *utilization, double at,
                        struct state_sample *ret_sample);

/* virtual_add_sample() - to the percentages of @sum, up to 100. */
void virtual_add_sample(struct state_sample *sum, const struct state_sample *sample);

/*
 * virtual_play_processes() - all of the vGPU @index, which is there or not, with their accounts;
 * adds to @sum and @used what they use. Returns how many there are.
 */
uint32_t virtual_play_processes(struct virtual_stage *stage, size_t index, bool is_there,
                                struct state_sample *sum, uint64_t *used);

#endif
