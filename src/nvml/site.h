/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_SITE_H
#define NVML_SITE_H

/*
 * A site hosts vGPUs: a whole device, or one of its GPU instances (MIG). NVML has functions with
 * different names and structs for the two.
 *
 * The state page has the GPU instances. If NVIDIA's library is in use, they are its own, and it answers
 * for them (abi/nvml.abi: "stand-in").
 */

#include "abi/nvml-mig.h"
#include "abi/nvml-vgpu.h"
#include "nvml/view.h"
#include "state/state-page.h"

struct site {
        const struct state_page *state_page;
        uint32_t number;               /* its number on the state page, for offers and schedulers */
        uint32_t gpu_instance;         /* id; STATE_NONE: the device as a whole */
        state_switch is_heterogeneous; /* heterogeneous mode */
        struct state_device device;
};

/*
 * site_of_device() - get the site of a device that hosts vGPUs. INVALID_ARGUMENT: the caller did not give
 * all the pointers that it has to, or NULL for the handle; GPU_IS_LOST; NOT_SUPPORTED: the device does not host
 * vGPUs, this is a guest, or the device is one of NVIDIA's library that the manager does not have.
 */
nvmlReturn_t site_of_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers);

/* site_of_whole_device() - do the same; NOT_SUPPORTED also means that MIG cuts the device. */
nvmlReturn_t site_of_whole_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers);

/* site_of_gpu_instance() - get the site of a GPU instance. Errors: those of site_of_device(). */
nvmlReturn_t site_of_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                  bool has_pointers);

/*
 * site_of_shared_gpu_instance() - do the same; NOT_SUPPORTED also means that the device can't share the
 * time of a GPU instance. Then the instance has neither a scheduler nor a choice of places.
 */
nvmlReturn_t site_of_shared_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                         bool has_pointers);

/* site_next_instance() - loop over the active vGPUs: start with *cursor 0; false ends the loop. */
bool site_next_instance(struct view_instance *ret_instance, uint32_t *cursor,
                        const struct site *site);

/* site_find_offer() - find the site's offer of the type with this id. False: the site does not offer it. */
bool site_find_offer(struct state_offer *ret_offer, const struct site *site, nvmlVgpuTypeId_t id);

/* site_find_gpu_instance() - find it by its id. False: the device has none with this id. */
bool site_find_gpu_instance(struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                            const struct state_page *state_page, uint32_t device, uint32_t id);

/* site_get_gpu_instance_handle() - return the handle of the GPU instance at this slot of the state page. */
nvmlGpuInstance_t site_get_gpu_instance_handle(uint32_t slot);

/* site_read_gpu_instance() - read the record behind @handle. False: it is no handle. */
bool site_read_gpu_instance(struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                            nvmlGpuInstance_t handle);

#endif
