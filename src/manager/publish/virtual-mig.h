/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_MIG_H
#define MANAGER_VIRTUAL_MIG_H

/*
 * GPU instances and compute instances of a scenario's devices. What there is stands on the state page and
 * nowhere else: those of the scenario first, then what clients make and end.
 *
 * A slot of the state page is used again as late as possible, since a client's handle is the slot.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/failure.h"

struct virtual_stage;

/* virtual_put_mig() - what the scenario has on a device when it begins. Errors: -ENOSPC, -ENOMEM. */
int virtual_put_mig(struct virtual_stage *stage, size_t device);

/* virtual_play_mig() - how many vGPUs are where, and what could be made beside them. */
void virtual_play_mig(struct virtual_stage *stage, size_t device);

/*
 * For clients; @profile is an id, @start a slice, or STATE_NONE for one that is free. The smallest
 * id that is free is given. Unsupported: no scenario, or the device is not in MIG mode;
 * InvalidParameter; NoRoom; InUse.
 */
int virtual_create_gpu_instance(struct virtual_stage *stage, uint32_t device, uint32_t profile,
                                uint32_t start, uint32_t *ret_id, struct failure *failure);
int virtual_destroy_gpu_instance(struct virtual_stage *stage, uint32_t device, uint32_t id,
                                 struct failure *failure);
int virtual_create_compute_instance(struct virtual_stage *stage, uint32_t device,
                                    uint32_t gpu_instance, uint32_t profile, uint32_t start,
                                    uint32_t *ret_id, struct failure *failure);
int virtual_destroy_compute_instance(struct virtual_stage *stage, uint32_t device,
                                     uint32_t gpu_instance, uint32_t id, struct failure *failure);

#endif
