/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/site.h"

#include <stdatomic.h>

/* No address, and no handle of a device. */
#define HANDLE_BASE ((uintptr_t)0x4f56470000020001)

static bool hosts_vgpus(const struct board_device *device)
{
        return device->virtualization == BOARD_VIRTUALIZATION_HOST_VGPU && !view_is_guest();
}

nvmlReturn_t site_of_device(struct site *ret_site, nvmlDevice_t handle, bool has_pointers)
{
        nvmlReturn_t r = view_device(&ret_site->device, handle, has_pointers);

        if (r == NVML_ERROR_INVALID_ARGUMENT && has_pointers && !view_is_substitute())
                return NVML_ERROR_NOT_SUPPORTED;
        if (r != NVML_SUCCESS)
                return r;
        if (!hosts_vgpus(&ret_site->device))
                return NVML_ERROR_NOT_SUPPORTED;
        ret_site->board = view_board();
        ret_site->number = board_site_of_device(ret_site->device.index);
        ret_site->gpu_instance = BOARD_NONE;
        ret_site->mixes_sizes = ret_site->device.mixes_sizes;
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

bool site_read_gpu_instance(struct board_gpu_instance *ret_record, uint32_t *ret_slot,
                            nvmlGpuInstance_t handle)
{
        uintptr_t slot = (uintptr_t)handle - HANDLE_BASE;

        if (view_is_guest() || slot >= BOARD_GPU_INSTANCES_MAX)
                return false;
        *ret_slot = (uint32_t)slot;
        return board_read_gpu_instance(view_board(), *ret_slot, ret_record);
}

bool site_find_gpu_instance(struct board_gpu_instance *ret_record, uint32_t *ret_slot,
                            const struct board *board, uint32_t device, uint32_t id)
{
        uint32_t end = board_end_gpu_instance(board);

        for (uint32_t slot = 0; slot < end; slot++) {
                if (!board_read_gpu_instance(board, slot, ret_record) ||
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
        struct board_gpu_instance record;
        uint32_t slot;
        nvmlReturn_t r;

        if (!has_pointers || !site_read_gpu_instance(&record, &slot, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = site_of_device(ret_site, view_get_handle(record.device), true);
        if (r != NVML_SUCCESS)
                return r;
        ret_site->number = board_site_of_gpu_instance(slot);
        ret_site->gpu_instance = record.id;
        ret_site->mixes_sizes = record.mixes_sizes;
        return NVML_SUCCESS;
}

nvmlReturn_t site_of_shared_gpu_instance(struct site *ret_site, nvmlGpuInstance_t handle,
                                         bool has_pointers)
{
        nvmlReturn_t r = site_of_gpu_instance(ret_site, handle, has_pointers);
        struct board_device_detail detail;

        if (r != NVML_SUCCESS)
                return r;
        return board_read_device_detail(ret_site->board, ret_site->device.index, &detail) &&
                               detail.capability[BOARD_CAN_MIG_TIME_SLICING]
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

bool site_next_instance(struct view_instance *ret_instance, uint32_t *cursor,
                        const struct site *site)
{
        while (view_next_instance(ret_instance, cursor, site->device.index))
                if (site->gpu_instance == BOARD_NONE ||
                    ret_instance->value.gpu_instance == site->gpu_instance)
                        return true;
        return false;
}

bool site_find_offer(struct board_offer *ret_offer, const struct site *site, nvmlVgpuTypeId_t id)
{
        struct board_offers offers;
        uint32_t slot;

        if (!board_find_type(site->board, id, &slot) ||
            !board_read_offers(site->board, site->number, &offers))
                return false;
        for (uint32_t i = 0; i < offers.n && i < BOARD_OFFERS_MAX; i++) {
                if (offers.offer[i].type != slot)
                        continue;
                *ret_offer = offers.offer[i];
                return true;
        }
        return false;
}
