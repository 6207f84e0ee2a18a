/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_COMPUTE_INSTANCE_H
#define NVML_COMPUTE_INSTANCE_H

/*
 * A compute instance, with all that it is a part of. A client holds it by two handles: as a compute instance,
 * and as a MIG device, which is asked as a device is.
 *
 * They are of the state page: where NVIDIA's library is in use, they are its own and it answers for them.
 */

#include "abi/nvml-mig.h"
#include "state/state-page.h"

struct compute_instance {
        uint32_t slot;
        struct state_compute_instance record;
        struct state_gpu_instance part; /* that it is in */
        struct state_profile whole;     /* of that */
        struct state_device device;
};

/* compute_instance_read() - the one at @slot. False: there is none, or we are in a guest. */
bool compute_instance_read(struct compute_instance *ret_instance, uint32_t slot);

/* compute_instance_next() - a loop over those of a device: start with *cursor 0; false ends. */
bool compute_instance_next(struct compute_instance *ret_instance, uint32_t *cursor,
                           uint32_t device);

/* compute_instance_format_name() - "MIG 1c.3g.71gb", into NVML_GPU_INSTANCE_PROFILE_NAME_MAX. */
void compute_instance_format_name(char *name, uint32_t slices, const struct state_profile *whole);

/* compute_instance_find_mig() - the one that is the MIG device @handle. False: it is something else. */
bool compute_instance_find_mig(struct compute_instance *ret_instance, nvmlDevice_t handle);

#endif
