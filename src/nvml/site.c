/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/site.h"

#include <stdatomic.h>

/* No address, and no handle of a device. */
#define HANDLE_BASE ((uintptr_t)0x4f56470000020001)

static bool hosts_vgpus(const struct state_device *device)
{
        return device->virtualization == STATE_VIRTUALIZATION_HOST_VGPU && !view_is_guest();
}

nvmlReturn_t site_of_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers)
{
        nvmlReturn_t r = view_device(&ret_site->device, handle, has_pointers);

        if (r == NVML_ERROR_INVALID_ARGUMENT && handle && has_pointers && !view_is_substitute())
                return NVML_ERROR_NOT_SUPPORTED;
        if (r != NVML_SUCCESS)
                return r;
        if (!hosts_vgpus(&ret_site->device))
                return NVML_ERROR_NOT_SUPPORTED;
        ret_site->state_page = view_state_page();
        ret_site->number = state_site_of_device(ret_site->device.index);
        ret_site->gpu_instance = STATE_NONE;
        ret_site->is_heterogeneous = ret_site->device.is_heterogeneous;
        return NVML_SUCCESS;
}

nvmlReturn_t site_of_whole_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers)
{
        nvmlReturn_t r = site_of_device(ret_site, handle, has_pointers);

        return r == NVML_SUCCESS && ret_site->device.mig == 1 ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlGpuInstance_t site_get_gpu_instance_handle(uint32_t slot)
{
        return (nvmlGpuInstance_t)(HANDLE_BASE + slot);
}

bool site_read_gpu_instance(struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                            nvmlGpuInstance_t handle)
{
        uintptr_t slot = (uintptr_t)handle - HANDLE_BASE;

        if (view_is_guest() || slot >= STATE_GPU_INSTANCES_MAX)
                return false;
        *ret_slot = (uint32_t)slot;
        return state_read_gpu_instance(view_state_page(), *ret_slot, ret_record);
}

bool site_find_gpu_instance(struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                            const struct state_page *state_page, uint32_t device, uint32_t id)
{
        uint32_t end = state_end_gpu_instance(state_page);

        for (uint32_t slot = 0; slot < end; slot++) {
                if (!state_read_gpu_instance(state_page, slot, ret_record) ||
                    ret_record->device != device || ret_record->id != id)
                        continue;
                *ret_slot = slot;
                return true;
        }
        return false;
}

nvmlReturn_t site_of_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                  bool has_pointers)
{
        struct state_gpu_instance record;
        uint32_t slot;
        nvmlReturn_t r;

        if (!has_pointers || !site_read_gpu_instance(&record, &slot, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = site_of_device(ret_site, view_get_handle(record.device), true);
        if (r != NVML_SUCCESS)
                return r;
        ret_site->number = state_site_of_gpu_instance(slot);
        ret_site->gpu_instance = record.id;
        ret_site->is_heterogeneous = record.is_heterogeneous;
        return NVML_SUCCESS;
}

nvmlReturn_t site_of_shared_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                         bool has_pointers)
{
        nvmlReturn_t r = site_of_gpu_instance(ret_site, handle, has_pointers);
        struct state_device_detail detail;

        if (r != NVML_SUCCESS)
                return r;
        return state_read_device_detail(ret_site->state_page, ret_site->device.index, &detail) &&
                               detail.capability[STATE_CAN_MIG_TIME_SLICING]
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

bool site_next_instance(struct view_instance *ret_instance, uint32_t *cursor,
                        const struct site *site)
{
        while (view_next_instance(ret_instance, cursor, site->device.index))
                if (site->gpu_instance == STATE_NONE ||
                    ret_instance->value.gpu_instance == site->gpu_instance)
                        return true;
        return false;
}

bool site_find_offer(struct state_offer *ret_offer, const struct site *site, nvmlVgpuTypeId_t id)
{
        struct state_offers offers;
        uint32_t slot;

        if (!state_find_type(site->state_page, id, &slot) ||
            !state_read_offers(site->state_page, site->number, &offers))
                return false;
        for (uint32_t i = 0; i < offers.n && i < STATE_OFFERS_MAX; i++) {
                if (offers.offer[i].type != slot)
                        continue;
                *ret_offer = offers.offer[i];
                return true;
        }
        return false;
}
