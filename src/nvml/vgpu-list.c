/* SPDX-License-Identifier: Apache-2.0 */
/* Lists what a site offers, what it could take now, and what runs on it. */
#include "nvml/answer.h"
#include "nvml/site.h"
#include "nvml/slots.h"

static nvmlReturn_t list_types(const struct site *site, unsigned int *count, nvmlVgpuTypeId_t *ids,
                               bool only_creatable)
{
        nvmlVgpuTypeId_t chosen[STATE_OFFERS_MAX];
        struct state_offers offers;
        struct state_type type;
        unsigned int n = 0;

        if (!state_read_offers(site->state_page, site->number, &offers))
                offers.n = 0;
        for (uint32_t i = 0; i < offers.n && i < STATE_OFFERS_MAX; i++)
                if ((!only_creatable || offers.offer[i].n_creatable > 0) &&
                    state_read_type(site->state_page, offers.offer[i].type, &type))
                        chosen[n++] = type.id;
        return answer_numbers(count, ids, chosen, n);
}

nvmlReturn_t our_nvmlDeviceGetSupportedVgpus(nvmlDevice_t handle, unsigned int *count,
                                             nvmlVgpuTypeId_t *types)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        return r == NVML_SUCCESS ? list_types(&site, count, types, false) : r;
}

nvmlReturn_t our_nvmlDeviceGetCreatableVgpus(nvmlDevice_t handle, unsigned int *count,
                                             nvmlVgpuTypeId_t *types)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        return r == NVML_SUCCESS ? list_types(&site, count, types, true) : r;
}

nvmlReturn_t our_nvmlGpuInstanceGetCreatableVgpus(nvmlGpuInstance_t handle,
                                                  nvmlVgpuTypeIdInfo_v1_t *types)
{
        struct site site;
        nvmlReturn_t r = site_of_gpu_instance(&site, handle, types);

        if (r != NVML_SUCCESS)
                return r;
        if (types->version != NVML_VERSION(nvmlVgpuTypeIdInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        return list_types(&site, &types->vgpuCount, types->vgpuTypeIds, true);
}

static nvmlReturn_t list_active(const struct site *site, unsigned int *count,
                                nvmlVgpuInstance_t *ids)
{
        nvmlVgpuInstance_t found[STATE_INSTANCES_MAX];
        struct view_instance instance;
        uint32_t cursor = 0;
        unsigned int n = 0;

        while (n < STATE_INSTANCES_MAX && site_next_instance(&instance, &cursor, site))
                found[n++] = instance.value.id;
        return answer_numbers(count, ids, found, n);
}

nvmlReturn_t our_nvmlDeviceGetActiveVgpus(nvmlDevice_t handle, unsigned int *count,
                                          nvmlVgpuInstance_t *instances)
{
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, true);

        return r == NVML_SUCCESS ? list_active(&site, count, instances) : r;
}

nvmlReturn_t our_nvmlGpuInstanceGetActiveVgpus(nvmlGpuInstance_t handle,
                                               nvmlActiveVgpuInstanceInfo_v1_t *list)
{
        struct site site;
        nvmlReturn_t r = site_of_gpu_instance(&site, handle, list);

        if (r != NVML_SUCCESS)
                return r;
        if (list->version != NVML_VERSION(nvmlActiveVgpuInstanceInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        return list_active(&site, &list->vgpuCount, list->vgpuInstances);
}
