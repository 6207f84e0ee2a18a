/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement says where in the frame buffer a vGPU lies, or may lie.
 *
 * A type has one list of first slots for a device on which sizes mix (heterogeneous mode), and another
 * one for a device on which all vGPUs have one size. A client can create a vGPU on slots that are free,
 * and as many vGPUs as the site can take now: a vGPU whose memory is mapped page by page takes room but
 * no slots.
 */
#include <stddef.h>

#include "nvml/answer.h"
#include "nvml/site.h"
#include "nvml/slots.h"

nvmlReturn_t our_nvmlVgpuInstanceGetPlacementId(nvmlVgpuInstance_t id,
                                                nvmlVgpuPlacementId_v1_t *placement)
{
        struct view_instance instance;
        nvmlReturn_t r;

        if (!placement)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (placement->version != NVML_VERSION(nvmlVgpuPlacementId_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH; /* before the handle */
        r = view_instance(&instance, id, true);
        if (r == NVML_SUCCESS)
                placement->placementId = instance.value.placement;
        return r;
}

/* The slots that running vGPUs of @site have, as far as they overlap those of a new one. */
static bool is_taken(const struct site *site, uint32_t first, uint32_t size)
{
        struct view_instance instance;

        for (uint32_t cursor = 0; site_next_instance(&instance, &cursor, site);) {
                const struct state_instance *other = &instance.value;

                if (other->gpu_instance == site->gpu_instance &&
                    other->placement != STATE_PLACEMENT_NONE &&
                    first < other->placement + other->placement_size &&
                    other->placement < first + size)
                        return true;
        }
        return false;
}

/* What a list of placements is made of. */
struct places {
        uint32_t size; /* slots */
        unsigned int n;
        unsigned int id[STATE_PLACEMENTS_MAX];
};

/* INVALID_ARGUMENT: the site does not offer the type. */
static nvmlReturn_t find_places(struct places *ret_places, const struct site *site,
                                nvmlVgpuTypeId_t id, unsigned int mode, bool only_creatable)
{
        bool is_heterogeneous = mode == NVML_VGPU_PGPU_HETEROGENEOUS_MODE;
        struct state_placements placements;
        struct state_offer offer;
        struct state_type type;
        unsigned int most;

        if (mode > NVML_VGPU_PGPU_HOMOGENEOUS_MODE || !site_find_offer(&offer, site, id) ||
            !state_read_type(site->state_page, offer.type, &type) ||
            !state_read_placements(site->state_page, offer.type, &placements))
                return NVML_ERROR_INVALID_ARGUMENT;

        most = is_heterogeneous ? placements.n_mixed : placements.n_uniform;
        most = most < STATE_PLACEMENTS_MAX ? most : STATE_PLACEMENTS_MAX;
        ret_places->size = type.placement_size;
        ret_places->n = 0;
        for (unsigned int i = 0; i < most; i++) {
                uint32_t first = is_heterogeneous ? placements.mixed[i] : placements.uniform[i];

                if (only_creatable && (ret_places->n == offer.n_creatable ||
                                       is_taken(site, first, type.placement_size)))
                        continue;
                ret_places->id[ret_places->n++] = first;
        }
        return NVML_SUCCESS;
}

_Static_assert(offsetof(nvmlVgpuPlacementList_v1_t, placementIds) ==
                       offsetof(nvmlVgpuPlacementList_v2_t, placementIds),
               "the second generation adds a field behind the first");

/*
 * In the first generation the count is only an answer: nvidia-smi and pynvml of driver 550 leave anything there, and hand in
 * an array for as many as there can be (nvmlVgpuTypeGetMaxInstances()).
 */
static void find_room(nvmlVgpuPlacementList_v2_t *list, const struct site *site,
                      nvmlVgpuTypeId_t type)
{
        struct state_offer offer;

        if (list->placementIds && site_find_offer(&offer, site, type))
                list->count = offer.max_instances;
}

/* The struct of the second generation begins as that of the first one, which ends before mode. */
static nvmlReturn_t list_places(nvmlDevice_t handle, nvmlVgpuTypeId_t type,
                                nvmlVgpuPlacementList_v2_t *list, bool only_creatable)
{
        unsigned int mode = NVML_VGPU_PGPU_HETEROGENEOUS_MODE;
        struct places places;
        struct site site;
        nvmlReturn_t r = only_creatable ? site_of_whole_device(&site, handle, true)
                                        : site_of_device(&site, handle, true);

        if (r != NVML_SUCCESS)
                return r;
        if (!list)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (list->version == NVML_VERSION(nvmlVgpuPlacementList_v2_t, 2))
                mode = list->mode;
        else if (list->version == NVML_VERSION(nvmlVgpuPlacementList_v1_t, 1))
                find_room(list, &site, type);
        else
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = find_places(&places, &site, type, mode, only_creatable);
        if (r == NVML_SUCCESS)
                r = answer_numbers(&list->count, list->placementIds, places.id, places.n);
        if (r == NVML_SUCCESS)
                list->placementSize = places.size;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_t handle,
                                                          nvmlVgpuTypeId_t type,
                                                          nvmlVgpuPlacementList_v2_t *list)
{
        return list_places(handle, type, list, false);
}

nvmlReturn_t our_nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_t handle,
                                                          nvmlVgpuTypeId_t type,
                                                          nvmlVgpuPlacementList_v2_t *list)
{
        return list_places(handle, type, list, true);
}

/* In a GPU instance there are places only when sizes mix there. */
nvmlReturn_t
our_nvmlGpuInstanceGetVgpuTypeCreatablePlacements(nvmlGpuInstance_t handle,
                                                  nvmlVgpuCreatablePlacementInfo_v1_t *info)
{
        struct places places;
        struct site site;
        nvmlReturn_t r = site_of_shared_gpu_instance(&site, handle, info);

        if (r != NVML_SUCCESS)
                return r;
        if (info->version != NVML_VERSION(nvmlVgpuCreatablePlacementInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (site.is_heterogeneous != 1)
                return NVML_ERROR_NOT_SUPPORTED;
        r = find_places(&places, &site, info->vgpuTypeId, NVML_VGPU_PGPU_HETEROGENEOUS_MODE, true);
        if (r == NVML_SUCCESS)
                r = answer_numbers(&info->count, info->placementIds, places.id, places.n);
        if (r == NVML_SUCCESS)
                info->placementSize = places.size;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetMaxInstances(nvmlDevice_t handle, nvmlVgpuTypeId_t id,
                                             unsigned int *count)
{
        struct state_offer offer;
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        if (r != NVML_SUCCESS)
                return r;
        if (!count || !site_find_offer(&offer, &site, id))
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = offer.max_instances;
        return NVML_SUCCESS;
}
