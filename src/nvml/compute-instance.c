/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells of compute instances that NVIDIA's library does not know. The manager makes and ends them, for
 * root. A guest has none.
 */
#include "nvml/compute-instance.h"

#include <stdio.h>

#include "nvml/control.h"
#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/view.h"
#include "state/compute.h"

#define SLICES_MAX 8 /* more would be no sense */
#define ONE_SLICE  0 /* NVML's number of the profile of GPU instances */

/* No address, and no handle of anything else. */
#define HANDLE_BASE ((uintptr_t)0x4f56470000030001)

static bool read_whole(struct state_profile *ret_whole, const struct state_gpu_instance *part)
{
        for (uint32_t i = 0; i < STATE_PROFILES_MAX; i++)
                if (state_read_profile(view_state_page(), state_slot_of_profile(part->device, i),
                                       ret_whole) &&
                    ret_whole->id == part->profile_id)
                        return ret_whole->slices > 0;
        return false;
}

bool compute_instance_read(struct compute_instance *ret_instance, uint32_t slot)
{
        const struct state_page *state_page = view_state_page();

        ret_instance->slot = slot;
        return !view_is_guest() &&
               state_read_compute_instance(state_page, slot, &ret_instance->record) &&
               state_read_gpu_instance(state_page, ret_instance->record.gpu_instance_slot,
                                       &ret_instance->part) &&
               read_whole(&ret_instance->whole, &ret_instance->part) &&
               ret_instance->record.placement_start < SLICES_MAX &&
               ret_instance->record.placement_size <= SLICES_MAX &&
               state_read_device(state_page, ret_instance->record.device, &ret_instance->device);
}

bool compute_instance_next(struct compute_instance *ret_instance, uint32_t *cursor, uint32_t device)
{
        while (*cursor < state_end_compute_instance(view_state_page()))
                if (compute_instance_read(ret_instance, (*cursor)++) &&
                    ret_instance->record.device == device)
                        return true;
        return false;
}

uint32_t compute_instance_count_multiprocessors(uint32_t device, const struct state_profile *whole,
                                                uint32_t slices)
{
        uint32_t slot = state_slot_of_profile(device, ONE_SLICE);
        struct state_profile one;

        if (slices == whole->slices)
                return whole->n_multiprocessors;
        if (!state_read_profile(view_state_page(), slot, &one) || one.slices != 1)
                return whole->n_multiprocessors / whole->slices * slices;
        return one.n_multiprocessors * slices;
}

void compute_instance_format_name(char *name, uint32_t slices, const struct state_profile *whole)
{
        if (slices == whole->slices)
                snprintf(name, NVML_GPU_INSTANCE_PROFILE_NAME_MAX, "MIG %s", whole->name);
        else
                snprintf(name, NVML_GPU_INSTANCE_PROFILE_NAME_MAX, "MIG %uc.%s", slices,
                         whole->name);
}

bool compute_instance_find_mig(struct compute_instance *ret_instance, nvmlDevice_t handle)
{
        uint32_t slot;

        return view_find_mig(&slot, &ret_instance->record, handle) &&
               compute_instance_read(ret_instance, slot);
}

static nvmlComputeInstance_t get_handle(uint32_t slot)
{
        return (nvmlComputeInstance_t)(HANDLE_BASE + slot);
}

static bool find(struct compute_instance *ret_instance, nvmlComputeInstance_t handle)
{
        uintptr_t slot = (uintptr_t)handle - HANDLE_BASE;

        return slot < STATE_COMPUTE_INSTANCES_MAX &&
               compute_instance_read(ret_instance, (uint32_t)slot);
}

/* A GPU instance, and what could be made in it. */
struct part {
        uint32_t slot;
        struct state_gpu_instance record;
        struct state_profile whole;
};

/* INVALID_ARGUMENT: not all pointers, not a handle, or no profile of that number; NOT_SUPPORTED: not here. */
static nvmlReturn_t find_profile(struct part *ret_part, nvmlGpuInstance_t handle,
                                 unsigned int profile, bool has_pointers)
{
        if (!has_pointers || profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT ||
            !site_read_gpu_instance(&ret_part->record, &ret_part->slot, handle) ||
            !read_whole(&ret_part->whole, &ret_part->record))
                return NVML_ERROR_INVALID_ARGUMENT;
        return state_compute_starts(profile, ret_part->whole.slices) ? NVML_SUCCESS
                                                                     : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlComputeInstanceProfileInfo_t describe(unsigned int profile, const struct part *part)
{
        const struct state_profile *whole = &part->whole;
        uint32_t slices = state_compute_slices(profile);

        return (nvmlComputeInstanceProfileInfo_t){
                .id = profile,
                .sliceCount = slices,
                .instanceCount =
                        (unsigned)__builtin_popcount(state_compute_starts(profile, whole->slices)),
                .multiprocessorCount =
                        compute_instance_count_multiprocessors(part->record.device, whole, slices),
                .sharedCopyEngineCount = whole->n_copy_engines,
                .sharedDecoderCount = whole->n_decoders,
                .sharedEncoderCount = whole->n_encoders,
                .sharedJpegCount = whole->n_jpegs,
                .sharedOfaCount = whole->n_ofas,
        };
}

nvmlReturn_t
our_nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int profile,
                                                 unsigned int engine_profile,
                                                 nvmlComputeInstanceProfileInfo_t *info)
{
        struct part part;
        nvmlReturn_t r =
                find_profile(&part, handle, profile,
                             info && engine_profile == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);

        if (r == NVML_SUCCESS)
                *info = describe(profile, &part);
        return r;
}

/* The third generation is the second, and something behind it. */
nvmlReturn_t
our_nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int profile,
                                                  unsigned int engine_profile,
                                                  nvmlComputeInstanceProfileInfo_v2_t *info)
{
        nvmlComputeInstanceProfileInfo_t plain;
        struct part part;
        bool is_third;
        nvmlReturn_t r;

        is_third = info && info->version == NVML_VERSION(nvmlComputeInstanceProfileInfo_v3_t, 3);
        if (!info ||
            (!is_third && info->version != NVML_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2)))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = find_profile(&part, handle, profile,
                         engine_profile == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);
        if (r != NVML_SUCCESS)
                return r;
        plain = describe(profile, &part);
        *info = (nvmlComputeInstanceProfileInfo_v2_t){
                .version = info->version,
                .id = plain.id,
                .sliceCount = plain.sliceCount,
                .instanceCount = plain.instanceCount,
                .multiprocessorCount = plain.multiprocessorCount,
                .sharedCopyEngineCount = plain.sharedCopyEngineCount,
                .sharedDecoderCount = plain.sharedDecoderCount,
                .sharedEncoderCount = plain.sharedEncoderCount,
                .sharedJpegCount = plain.sharedJpegCount,
                .sharedOfaCount = plain.sharedOfaCount,
        };
        compute_instance_format_name(info->name, plain.sliceCount, &part.whole);
        if (is_third)
                ((nvmlComputeInstanceProfileInfo_v3_t *)(void *)info)->capabilities = 0;
        return NVML_SUCCESS;
}

/* Those of one GPU instance: the slices that they have, and, where asked for, their handles. */
static uint32_t list(const struct part *part, unsigned int profile, nvmlComputeInstance_t *handles,
                     unsigned int room, unsigned int *ret_n)
{
        struct compute_instance instance;
        uint32_t taken = 0;
        unsigned int n = 0;

        for (uint32_t cursor = 0; compute_instance_next(&instance, &cursor, part->record.device);) {
                if (instance.record.gpu_instance_slot != part->slot)
                        continue;
                taken |= ((1u << instance.record.placement_size) - 1)
                         << instance.record.placement_start;
                if (handles && instance.record.profile == profile && n < room)
                        handles[n++] = get_handle(instance.slot);
        }
        if (ret_n)
                *ret_n = n;
        return taken;
}

nvmlReturn_t our_nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle,
                                                                    unsigned int profile,
                                                                    unsigned int *count)
{
        struct part part;
        nvmlReturn_t r = find_profile(&part, handle, profile, count);

        if (r == NVML_SUCCESS)
                *count = (unsigned)__builtin_popcount(state_compute_free_starts(
                        profile, part.whole.slices, list(&part, profile, NULL, 0, NULL)));
        return r;
}

nvmlReturn_t our_nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        nvmlGpuInstance_t handle, unsigned int profile, nvmlComputeInstancePlacement_t *placements,
        unsigned int *count)
{
        struct part part;
        nvmlReturn_t r = find_profile(&part, handle, profile, count);
        unsigned int n = 0;
        uint32_t starts;

        if (r != NVML_SUCCESS)
                return r;
        starts = state_compute_starts(profile, part.whole.slices);
        for (uint32_t start = 0; starts >> start; start++) {
                if (!(starts >> start & 1))
                        continue;
                if (placements)
                        placements[n] = (nvmlComputeInstancePlacement_t){
                                .start = start, .size = state_compute_slices(profile)
                        };
                n++;
        }
        *count = n;
        return NVML_SUCCESS;
}

/* The caller's list has room for as many as the profile allows. */
nvmlReturn_t our_nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profile,
                                                    nvmlComputeInstance_t *handles,
                                                    unsigned int *count)
{
        struct part part;
        nvmlReturn_t r = find_profile(&part, handle, profile, handles && count);

        if (r == NVML_SUCCESS)
                (void)list(&part, profile, handles, describe(profile, &part).instanceCount, count);
        return r;
}

static bool find_by_id(struct compute_instance *ret_instance, const struct state_gpu_instance *part,
                       uint32_t slot, unsigned int id)
{
        for (uint32_t cursor = 0; compute_instance_next(ret_instance, &cursor, part->device);)
                if (ret_instance->record.gpu_instance_slot == slot && ret_instance->record.id == id)
                        return true;
        return false;
}

nvmlReturn_t our_nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                       nvmlComputeInstance_t *ret_handle)
{
        struct compute_instance instance;
        struct state_gpu_instance part;
        uint32_t slot;

        if (!ret_handle || !site_read_gpu_instance(&part, &slot, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!find_by_id(&instance, &part, slot, id))
                return NVML_ERROR_NOT_FOUND;
        *ret_handle = get_handle(instance.slot);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle,
                                               nvmlComputeInstanceInfo_t *info)
{
        struct compute_instance instance;

        if (!info || !find(&instance, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *info = (nvmlComputeInstanceInfo_t){
                .device = view_get_handle(instance.record.device),
                .gpuInstance = site_get_gpu_instance_handle(instance.record.gpu_instance_slot),
                .id = instance.record.id,
                .profileId = instance.record.profile,
                .placement = { .start = instance.record.placement_start,
                               .size = instance.record.placement_size },
        };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle,
                                            nvmlComputeInstanceInfo_t *info)
{
        return our_nvmlComputeInstanceGetInfo_v2(handle, info);
}

/* What changes something. A guest's device is whole, whatever the handle. */

static nvmlReturn_t create(nvmlGpuInstance_t handle, unsigned int profile,
                           const nvmlComputeInstancePlacement_t *placement, bool has_pointers,
                           nvmlComputeInstance_t *ret_handle)
{
        struct compute_instance instance;
        struct state_device device;
        struct part part;
        char start[32] = "";
        unsigned int id;
        nvmlReturn_t r;

        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        r = find_profile(&part, handle, profile, has_pointers && ret_handle);
        if (r == NVML_SUCCESS && placement && placement->size != state_compute_slices(profile))
                r = NVML_ERROR_INVALID_ARGUMENT;
        if (r == NVML_SUCCESS && !state_read_device(view_state_page(), part.record.device, &device))
                r = NVML_ERROR_INVALID_ARGUMENT;
        if (r != NVML_SUCCESS)
                return r;
        if (placement)
                snprintf(start, sizeof(start), ",\"start\":%u", placement->start);
        r = control_call_for("CreateComputeInstance", &id,
                             "\"device\":\"%.47s\",\"gpu_instance\":%u,\"profile\":%u%s",
                             device.uuid, part.record.id, profile, start);
        if (r != NVML_SUCCESS)
                return r;
        if (!find_by_id(&instance, &part.record, part.slot, id))
                return NVML_ERROR_UNKNOWN;
        *ret_handle = get_handle(instance.slot);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle,
                                                      unsigned int profile,
                                                      nvmlComputeInstance_t *ret_handle)
{
        return create(handle, profile, NULL, true, ret_handle);
}

nvmlReturn_t our_nvmlGpuInstanceCreateComputeInstanceWithPlacement(
        nvmlGpuInstance_t handle, unsigned int profile,
        const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *ret_handle)
{
        return create(handle, profile, placement, placement, ret_handle);
}

nvmlReturn_t our_nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle)
{
        struct compute_instance instance;

        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        if (!find(&instance, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        return control_call("DestroyComputeInstance",
                            "\"device\":\"%.47s\",\"gpu_instance\":%u,\"compute_instance\":%u",
                            instance.device.uuid, instance.record.gpu_instance, instance.record.id);
}
