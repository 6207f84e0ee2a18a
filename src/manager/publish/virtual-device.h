/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_DEVICE_H
#define MANAGER_VIRTUAL_DEVICE_H

/* The host and the devices of a scenario, for virtual.c only. */

#include "manager/publish/virtual-internal.h"

int virtual_put_host(struct virtual_stage *stage);

/* virtual_put_device() - what stays or is changed by settings. Errors: -ENOSPC, too many types. */
int virtual_put_device(struct virtual_stage *stage, size_t index);

/* virtual_play_device() - from the sums over its vGPUs. */
void virtual_play_device(struct virtual_stage *stage, size_t index);

/* virtual_log_turn() - into the scheduler's log: what the vGPU had in the last period. */
void virtual_log_turn(struct virtual_stage *stage, size_t vgpu, uint32_t percent);

#endif
