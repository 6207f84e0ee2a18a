/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells of GPU instances (MIG) that NVIDIA's library does not know. A guest sees none: its device is
 * whole, however the host cut it. The manager makes and ends GPU instances, for root.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "nvml/control.h"
#include "nvml/site.h"
#include "nvml/slots.h"

nvmlReturn_t our_nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *current,
                                      unsigned int *pending)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, current && pending);

        if (r != NVML_SUCCESS)
                return r;
        if (device.mig == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *current = device.mig;
        *pending = device.mig_pending;
        return NVML_SUCCESS;
}

/* The mode that a device has can be set; another one would pull it away from under its vGPUs. */
nvmlReturn_t our_nvmlDeviceSetMigMode(nvmlDevice_t handle, unsigned int mode, nvmlReturn_t *status)
{
        unsigned int current, pending;
        nvmlReturn_t r;

        if (!status || mode > 1)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = view_is_substitute() ? our_nvmlDeviceGetMigMode(handle, &current, &pending)
                                 : NVML_REAL(nvmlDeviceGetMigMode)(handle, &current, &pending);
        if (r != NVML_SUCCESS)
                return r;
        if (current != mode || pending != mode)
                return NVML_ERROR_IN_USE;
        *status = NVML_SUCCESS;
        return NVML_SUCCESS;
}

/* A device that is in MIG mode. */
static nvmlReturn_t find_device(struct state_device *ret_device, nvmlDevice_t handle,
                                bool has_pointers)
{
        nvmlReturn_t r = view_device(ret_device, handle, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        return ret_device->mig == 1 && !view_is_guest() ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* What profiles there are does not depend on the mode. */
static nvmlReturn_t find_host_device(struct state_device *ret_device, nvmlDevice_t handle,
                                     bool has_pointers)
{
        nvmlReturn_t r = view_device(ret_device, handle, has_pointers);

        return r == NVML_SUCCESS && view_is_guest() ? NVML_ERROR_NOT_SUPPORTED : r;
}

static nvmlReturn_t find_profile(struct state_profile *ret_profile, nvmlDevice_t handle,
                                 unsigned int profile, bool has_pointers)
{
        struct state_device device;
        nvmlReturn_t r = find_host_device(&device, handle, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return state_read_profile(view_state_page(), state_slot_of_profile(device.index, profile),
                                  ret_profile)
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t handle, unsigned int number,
                                                     nvmlGpuInstanceProfileInfo_t *info)
{
        struct state_profile profile;
        nvmlReturn_t r = find_profile(&profile, handle, number, info);

        if (r != NVML_SUCCESS)
                return r;
        *info = (nvmlGpuInstanceProfileInfo_t){ .id = profile.id,
                                                .isP2pSupported = profile.can_p2p,
                                                .sliceCount = profile.slices,
                                                .instanceCount = profile.max_instances,
                                                .multiprocessorCount = profile.n_multiprocessors,
                                                .copyEngineCount = profile.n_copy_engines,
                                                .decoderCount = profile.n_decoders,
                                                .encoderCount = profile.n_encoders,
                                                .jpegCount = profile.n_jpegs,
                                                .ofaCount = profile.n_ofas,
                                                .memorySizeMB = profile.memory_size >> 20 };
        return NVML_SUCCESS;
}

static void fill_v2(nvmlGpuInstanceProfileInfo_v2_t *info, const struct state_profile *profile)
{
        *info = (nvmlGpuInstanceProfileInfo_v2_t){ .version = info->version,
                                                   .id = profile->id,
                                                   .isP2pSupported = profile->can_p2p,
                                                   .sliceCount = profile->slices,
                                                   .instanceCount = profile->max_instances,
                                                   .multiprocessorCount =
                                                           profile->n_multiprocessors,
                                                   .copyEngineCount = profile->n_copy_engines,
                                                   .decoderCount = profile->n_decoders,
                                                   .encoderCount = profile->n_encoders,
                                                   .jpegCount = profile->n_jpegs,
                                                   .ofaCount = profile->n_ofas,
                                                   .memorySizeMB = profile->memory_size >> 20 };
        snprintf(info->name, sizeof(info->name), "MIG %s", profile->name);
}

static void fill_v3(nvmlGpuInstanceProfileInfo_v3_t *info, const struct state_profile *profile)
{
        *info = (nvmlGpuInstanceProfileInfo_v3_t){
                .version = info->version,
                .id = profile->id,
                .sliceCount = profile->slices,
                .instanceCount = profile->max_instances,
                .multiprocessorCount = profile->n_multiprocessors,
                .copyEngineCount = profile->n_copy_engines,
                .decoderCount = profile->n_decoders,
                .encoderCount = profile->n_encoders,
                .jpegCount = profile->n_jpegs,
                .ofaCount = profile->n_ofas,
                .memorySizeMB = profile->memory_size >> 20,
                .capabilities = (profile->can_p2p ? NVML_GPU_INSTANCE_PROFILE_CAPS_P2P : 0) |
                                (profile->can_graphics ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0),
        };
        snprintf(info->name, sizeof(info->name), "MIG %s", profile->name);
}

nvmlReturn_t our_nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t handle, unsigned int number,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info)
{
        bool is_third;
        struct state_profile profile;
        nvmlReturn_t r;

        is_third = info && info->version == NVML_VERSION(nvmlGpuInstanceProfileInfo_v3_t, 3);
        if (!info ||
            (!is_third && info->version != NVML_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2)))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = find_profile(&profile, handle, number, true);
        if (r == NVML_SUCCESS && is_third)
                fill_v3((nvmlGpuInstanceProfileInfo_v3_t *)(void *)info, &profile);
        else if (r == NVML_SUCCESS)
                fill_v2(info, &profile);
        return r;
}

/* These are asked with the profile's id, not with its number. */

static bool find_profile_id(struct state_profile *ret_profile, uint32_t device, uint32_t id)
{
        for (uint32_t i = 0; i < STATE_PROFILES_MAX; i++)
                if (state_read_profile(view_state_page(), state_slot_of_profile(device, i),
                                       ret_profile) &&
                    ret_profile->id == id)
                        return true;
        return false;
}

static bool has_mig(const struct state_device *device)
{
        struct state_profile unused;

        for (uint32_t i = 0; i < STATE_PROFILES_MAX; i++)
                if (state_read_profile(view_state_page(), state_slot_of_profile(device->index, i),
                                       &unused))
                        return true;
        return false;
}

nvmlReturn_t our_nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t handle,
                                                           unsigned int profile_id,
                                                           unsigned int *count)
{
        struct state_profile profile;
        struct state_device device;
        nvmlReturn_t r = find_device(&device, handle, count);

        if (r != NVML_SUCCESS)
                return r;
        if (!find_profile_id(&profile, device.index, profile_id))
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = profile.n_left;
        return NVML_SUCCESS;
}

/* All that there can be, whatever is there. The caller's list has room for them. */
nvmlReturn_t
our_nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t handle, unsigned int profile_id,
                                                  nvmlGpuInstancePlacement_t *placements,
                                                  unsigned int *count)
{
        struct state_profile profile;
        struct state_device device;
        nvmlReturn_t r = find_host_device(&device, handle, count);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!find_profile_id(&profile, device.index, profile_id))
                return has_mig(&device) ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
        for (uint32_t start = 0; profile.starts >> start; start++) {
                if (!(profile.starts >> start & 1))
                        continue;
                if (placements)
                        placements[n] =
                                (nvmlGpuInstancePlacement_t){ .start = start,
                                                              .size = profile.memory_slices };
                n++;
        }
        *count = n;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t handle,
                                                            unsigned int profile_id,
                                                            nvmlGpuInstancePlacement_t *placements,
                                                            unsigned int *count)
{
        return our_nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle, profile_id, placements,
                                                                 count);
}

/* The caller's list has room for as many as the profile allows. */
nvmlReturn_t our_nvmlDeviceGetGpuInstances(nvmlDevice_t handle, unsigned int profile_id,
                                           nvmlGpuInstance_t *list, unsigned int *count)
{
        const struct state_page *state_page = view_state_page();
        uint32_t end = state_end_gpu_instance(state_page);
        struct state_gpu_instance record;
        struct state_profile profile;
        struct state_device device;
        nvmlReturn_t r = find_device(&device, handle, list && count);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        if (!find_profile_id(&profile, device.index, profile_id))
                return NVML_ERROR_INVALID_ARGUMENT;
        for (uint32_t slot = 0; slot < end && n < profile.max_instances; slot++)
                if (state_read_gpu_instance(state_page, slot, &record) &&
                    record.device == device.index && record.profile_id == profile_id)
                        list[n++] = site_get_gpu_instance_handle(slot);
        *count = n;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetGpuInstanceById(nvmlDevice_t handle, unsigned int id,
                                              nvmlGpuInstance_t *gpu_instance)
{
        struct state_gpu_instance record;
        struct state_device device;
        uint32_t slot;
        nvmlReturn_t r = find_device(&device, handle, gpu_instance);

        if (r != NVML_SUCCESS)
                return r;
        if (!site_find_gpu_instance(&record, &slot, view_state_page(), device.index, id))
                return NVML_ERROR_NOT_FOUND;
        *gpu_instance = site_get_gpu_instance_handle(slot);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGpuInstanceGetInfo(nvmlGpuInstance_t gpu_instance, nvmlGpuInstanceInfo_t *info)
{
        struct state_gpu_instance record;
        uint32_t slot;

        if (!info || !site_read_gpu_instance(&record, &slot, gpu_instance))
                return NVML_ERROR_INVALID_ARGUMENT;
        *info = (nvmlGpuInstanceInfo_t){
                .device = view_get_handle(record.device),
                .id = record.id,
                .profileId = record.profile_id,
                .placement = { .start = record.placement_start, .size = record.placement_size },
        };
        return NVML_SUCCESS;
}

/* What changes something. */

static nvmlReturn_t create(nvmlDevice_t handle, unsigned int profile_id,
                           const nvmlGpuInstancePlacement_t *placement, bool has_pointers,
                           nvmlGpuInstance_t *ret_handle)
{
        struct state_gpu_instance record;
        struct state_profile profile;
        struct state_device device;
        char start[32] = "";
        unsigned int id;
        uint32_t slot;
        nvmlReturn_t r = find_device(&device, handle, has_pointers && ret_handle);

        if (r != NVML_SUCCESS)
                return r;
        if (!find_profile_id(&profile, device.index, profile_id) ||
            (placement && placement->size != profile.memory_slices))
                return NVML_ERROR_INVALID_ARGUMENT;
        if (placement)
                snprintf(start, sizeof(start), ",\"start\":%u", placement->start);
        r = control_call_for("CreateGpuInstance", &id, "\"device\":\"%.47s\",\"profile\":%u%s",
                             device.uuid, profile_id, start);
        if (r != NVML_SUCCESS)
                return r;
        if (!site_find_gpu_instance(&record, &slot, view_state_page(), device.index, id))
                return NVML_ERROR_UNKNOWN;
        *ret_handle = site_get_gpu_instance_handle(slot);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceCreateGpuInstance(nvmlDevice_t handle, unsigned int profile_id,
                                             nvmlGpuInstance_t *ret_handle)
{
        return create(handle, profile_id, NULL, true, ret_handle);
}

nvmlReturn_t
our_nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t handle, unsigned int profile_id,
                                             const nvmlGpuInstancePlacement_t *placement,
                                             nvmlGpuInstance_t *ret_handle)
{
        return create(handle, profile_id, placement, placement, ret_handle);
}

nvmlReturn_t our_nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle)
{
        struct state_gpu_instance record;
        struct state_device device;
        uint32_t slot;

        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        if (!site_read_gpu_instance(&record, &slot, handle) ||
            !state_read_device(view_state_page(), record.device, &device))
                return NVML_ERROR_INVALID_ARGUMENT;
        return control_call("DestroyGpuInstance", "\"device\":\"%.47s\",\"gpu_instance\":%u",
                            device.uuid, record.id);
}
