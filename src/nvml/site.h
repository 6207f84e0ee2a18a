/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_SITE_H
#define NVML_SITE_H

/*
 * A site hosts vGPUs: a whole device, or one of its GPU instances (MIG). NVML has functions with
 * different names and structs for the two.
 *
 * A GPU instance is one of the state page's: where NVIDIA's library is in use, these are its own and it
 * answers for them (abi/nvml.abi: "stand-in").
 */

#include "abi/nvml-mig.h"
#include "abi/nvml-vgpu.h"
#include "nvml/view.h"
#include "state/state-page.h"

struct site {
        const struct state_page *state_page;
        uint32_t number;               /* the state page's, of offers and schedulers */
        uint32_t gpu_instance;         /* id; STATE_NONE: the device as a whole */
        state_switch is_heterogeneous; /* heterogeneous mode */
        struct state_device device;
};

/*
 * site_of_device() - a device that hosts vGPUs. INVALID_ARGUMENT: the caller did not give all the
 * pointers that it has to, or not a handle; GPU_IS_LOST; NOT_SUPPORTED: it does not host vGPUs, we
 * are in a guest, or it is a device of NVIDIA's library that the manager does not have.
 */
nvmlReturn_t site_of_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers);

/* site_of_whole_device() - the same; NOT_SUPPORTED too when the device is cut by MIG. */
nvmlReturn_t site_of_whole_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers);

/* site_of_gpu_instance() - a GPU instance. Errors as of site_of_device(). */
nvmlReturn_t site_of_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                  bool has_pointers);

/*
 * site_of_shared_gpu_instance() - the same; NOT_SUPPORTED too when its device can't share the time
 * of a GPU instance: then there is neither a scheduler nor a choice of places in it.
 */
nvmlReturn_t site_of_shared_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                         bool has_pointers);

/* site_next_instance() - a loop over the active vGPUs: start with *cursor 0; false ends. */
bool site_next_instance(struct view_instance *ret_instance, uint32_t *cursor,
                        const struct site *site);

/* site_find_offer() - what the site offers of the type with this id. False: it does not offer it. */
bool site_find_offer(struct state_offer *ret_offer, const struct site *site, nvmlVgpuTypeId_t id);

/* site_find_gpu_instance() - by its id. False: the device has none with it. */
bool site_find_gpu_instance(struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                            const struct state_page *state_page, uint32_t device, uint32_t id);

/* site_get_gpu_instance_handle() - of the GPU instance at this slot of the state page. */
nvmlGpuInstance_t site_get_gpu_instance_handle(uint32_t slot);

/* site_read_gpu_instance() - the record behind @handle. False: not a handle. */
bool site_read_gpu_instance(struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                            nvmlGpuInstance_t handle);

#endif
