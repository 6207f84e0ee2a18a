/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_COMPUTE_INSTANCE_H
#define NVML_COMPUTE_INSTANCE_H

/*
 * A compute instance, with its GPU instance and its device. A client has two handles for it: as a compute
 * instance, and as a MIG device, which answers the questions of a device.
 *
 * The state page has them. If NVIDIA's library is in use, the compute instances are its own, and it answers
 * for them.
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

/* compute_instance_read() - read the one at @slot. False: there is none, or this is a guest. */
bool compute_instance_read(struct compute_instance *ret_instance, uint32_t slot);

/* compute_instance_next() - loop over those of a device: start with *cursor 0; false ends the loop. */
bool compute_instance_next(struct compute_instance *ret_instance, uint32_t *cursor,
                           uint32_t device);

/*
 * compute_instance_count_multiprocessors() - count those of @slices of a GPU instance on @device. Some GPU
 * instances have more than their slices have together; only all slices together have these, too.
 */
uint32_t compute_instance_count_multiprocessors(uint32_t device, const struct state_profile *whole,
                                                uint32_t slices);

/* compute_instance_format_name() - write "MIG 1c.3g.71gb" into NVML_GPU_INSTANCE_PROFILE_NAME_MAX bytes. */
void compute_instance_format_name(char *name, uint32_t slices, const struct state_profile *whole);

/* compute_instance_find_mig() - find the one that is the MIG device @handle. False: @handle is something else. */
bool compute_instance_find_mig(struct compute_instance *ret_instance, nvmlDevice_t handle);

#endif
