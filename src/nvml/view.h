/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_VIEW_H
#define NVML_VIEW_H

/*
 * The part of the state page that this process may see.
 *
 * On the host this is everything. In a guest (OPENVGPU_VGPU is set and the state page
 * knows this vGPU) it is only the vGPU: one device, as large as the quota and as busy
 * as the vGPU.
 *
 * All readers are lock-free and make no system call. Only when the manager has gone or
 * was replaced, one call a second looks for a new state page. Any thread may read.
 *
 * Where NVIDIA's library is in use, a device's handle is NVIDIA's own, so that forwarded
 * calls need no translation; otherwise it is a number that is no address. The records
 * of NVIDIA's handles are found by UUID when the state page is opened.
 *
 * A vGPU is active, in NVML's sense, unless it is suspended: then it is off its
 * device, which may hold others in its place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/nvml-vgpu.h"
#include "state/state-page.h"

/*
 * At initialisation, in this order: is there a state page, and what does it say of NVIDIA's library
 * (@path: where it is, or "": not known, or said by a manager that is neither root's nor ours)?
 * Then, with that library initialised or not, open the view. Both are false when no manager runs.
 */
bool view_find_real(char *path, size_t size, bool *ret_simulated);
bool view_open(bool has_real);

/* view_forget() - unmap all boards: nobody may be reading, or read before the next view_open(). */
void view_forget(void);

/* view_is_guest() - do we show one vGPU only? */
bool view_is_guest(void);

/* view_is_substitute() - do we answer in the place of NVIDIA's library for a device of ours? */
bool view_is_substitute(void);

/* Name of the driver, "580.159.04"; number of devices that we show. */
const char *view_driver_name(void);
uint32_t view_count_devices(void);

/* view_state_page() - the state page as it is now. It stays mapped, also when its manager goes. */
const struct state_page *view_state_page(void);

/* view_get_handle() - of the device with this state page index; NULL if NVIDIA does not know it. */
nvmlDevice_t view_get_handle(uint32_t device);

/* view_knows() - is it the handle of a device of ours? */
bool view_knows(nvmlDevice_t handle);

/*
 * A compute instance as a MIG device, which is asked as a device is: the handle of the one at this slot of the
 * state page; and the slot and the record behind a handle. False: it is something else, or we are in a guest.
 */
nvmlDevice_t view_get_mig_handle(uint32_t slot);
bool view_find_mig(uint32_t *ret_slot, struct state_compute_instance *ret_record,
                   nvmlDevice_t handle);

/*
 * view_device() - the record behind @handle. INVALID_ARGUMENT: not a handle of ours, or the caller
 * did not give all the pointers that it has to; GPU_IS_LOST: the device is gone; NOT_SUPPORTED: it is a
 * MIG device, which few questions are about.
 */
nvmlReturn_t view_device(struct state_device *ret_device, nvmlDevice_t handle, bool has_pointers);

/* view_whole_device() - the same, but NOT_SUPPORTED under MIG: for what is not told then. */
nvmlReturn_t view_whole_device(struct state_device *ret_device, nvmlDevice_t handle,
                               bool has_pointers);

/* view_device_at() - by position, 0 to view_count_devices() - 1; of one that is lost too. */
bool view_device_at(struct state_device *ret_device, uint32_t position);

/* What is asked about one vGPU may be spread over several tables of one state page. */
struct view_instance {
        const struct state_page *state_page;
        uint32_t slot; /* of all that belongs to it */
        struct state_instance value;
};

/*
 * view_instance() - the active vGPU with this id. INVALID_ARGUMENT: id 0, or not all pointers;
 * NOT_FOUND: no active vGPU that we show has this id.
 */
nvmlReturn_t view_instance(struct view_instance *ret_instance, nvmlVgpuInstance_t id,
                           bool has_pointers);

/* view_own_instance() - the vGPU of this guest. */
bool view_own_instance(struct view_instance *ret_instance);

/*
 * Loops: start with *cursor 0; false ends. Processes are those of the guest, or of all vGPUs of a
 * device; the slot of the process that was found, which its samples have too, is *cursor - 1.
 */
bool view_next_instance(struct view_instance *ret_instance, uint32_t *cursor, uint32_t device);
bool view_next_process(struct state_process *ret_process, uint32_t *cursor, uint32_t device);

/* view_sample_us() - when the manager took the numbers, in microseconds since the epoch. */
uint64_t view_sample_us(void);

#endif
