/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_VIEW_H
#define NVML_VIEW_H

/*
 * The part of the state page that this process may see.
 *
 * On the host, a process sees everything. In a guest (OPENVGPU_VGPU is set and the state
 * page knows this vGPU) it sees only the vGPU: one device, as large as the quota and as
 * busy as the vGPU.
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
 * At initialisation, call these two in order. The first finds the state page, and where NVIDIA's library is
 * (@path; "": not known, or named by a manager that belongs neither to root nor to us). The second opens the
 * view, after that library was initialised or not. Both return false if no manager runs.
 */
bool view_find_real(char *path, size_t size, bool *ret_simulated);
bool view_open(bool has_real);

/* view_forget() - unmap all state pages. Nobody may read, now or before the next view_open(). */
void view_forget(void);

/* view_is_guest() - do we show one vGPU only? */
bool view_is_guest(void);

/* view_is_substitute() - do we answer for our devices in the place of NVIDIA's library? */
bool view_is_substitute(void);

/* The name of the driver, "580.159.04"; the number of devices that we show. */
const char *view_driver_name(void);
uint32_t view_count_devices(void);

/* view_state_page() - return the present state page. It stays mapped when its manager goes. */
const struct state_page *view_state_page(void);

/*
 * view_get_handle() - return the handle of the device at this index of the state page. NULL: NVIDIA's library
 * lacks it.
 */
nvmlDevice_t view_get_handle(uint32_t device);

/* view_knows() - is this the handle of a device of ours? */
bool view_knows(nvmlDevice_t handle);

/*
 * A compute instance is also a MIG device. These return the handle for a slot of the state page, and the slot
 * and the record behind a handle. False: the handle is something else, or this is a guest.
 */
nvmlDevice_t view_get_mig_handle(uint32_t slot);
bool view_find_mig(uint32_t *ret_slot, struct state_compute_instance *ret_record,
                   nvmlDevice_t handle);

/*
 * view_device() - get the record behind @handle. INVALID_ARGUMENT: it is no handle of ours, or the caller
 * did not give all the pointers that it has to; GPU_IS_LOST: the device is gone; NOT_SUPPORTED: it is a
 * MIG device, which answers few questions.
 */
nvmlReturn_t view_device(struct state_device *ret_device, nvmlDevice_t handle, bool has_pointers);

/* view_whole_device() - do the same; NOT_SUPPORTED also means that MIG cuts the device. */
nvmlReturn_t view_whole_device(struct state_device *ret_device, nvmlDevice_t handle,
                               bool has_pointers);

/* view_device_at() - get a record by position, 0 to view_count_devices() - 1, also of a lost device. */
bool view_device_at(struct state_device *ret_device, uint32_t position);

/* What is asked about one vGPU may be spread over several tables of one state page. */
struct view_instance {
        const struct state_page *state_page;
        uint32_t slot; /* of all that belongs to it */
        struct state_instance value;
};

/*
 * view_instance() - find the active vGPU with this id. INVALID_ARGUMENT: the id is 0, or a pointer is
 * missing; NOT_FOUND: no active vGPU that we show has this id.
 */
nvmlReturn_t view_instance(struct view_instance *ret_instance, nvmlVgpuInstance_t id,
                           bool has_pointers);

/* view_own_instance() - find the vGPU of this guest; of several devices: its first. */
bool view_own_instance(struct view_instance *ret_instance);

/* view_find_part() - in a guest: what its vGPU has of the device at @position of those that the guest sees. */
bool view_find_part(struct view_instance *ret_part, uint32_t position);

/*
 * Loops: start with *cursor 0; false ends the loop. The processes are those of the guest, or of all vGPUs of
 * a device. The process that was found, and its samples, have the slot *cursor - 1.
 */
bool view_next_instance(struct view_instance *ret_instance, uint32_t *cursor, uint32_t device);
bool view_next_process(struct state_process *ret_process, uint32_t *cursor, uint32_t device);

/* view_sample_us() - return when the manager took the numbers, in microseconds since the epoch. */
uint64_t view_sample_us(void);

#endif
