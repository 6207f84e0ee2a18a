/* SPDX-License-Identifier: Apache-2.0 */
/* Tells how a device is registered with the switches of its NVLinks, as a scenario says. */
#include <string.h>

#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static nvmlReturn_t find(struct state_links *ret_links, nvmlDevice_t handle, bool has_pointers)
{
        struct state_sensors sensors;
        struct state_device device;
        nvmlReturn_t r = sensors_find(&sensors, handle, has_pointers);

        if (r == NVML_SUCCESS)
                r = view_device(&device, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        return state_read_links(view_state_page(), device.index, ret_links) &&
                               ret_links->fabric.state != NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, nvmlGpuFabricInfo_t *info)
{
        struct state_links links;
        nvmlReturn_t r = find(&links, handle, info);

        if (r != NVML_SUCCESS)
                return r;
        *info = (nvmlGpuFabricInfo_t){ .cliqueId = links.fabric.clique,
                                       .state = (unsigned char)links.fabric.state };
        memcpy(info->clusterUuid, links.fabric.cluster, sizeof(info->clusterUuid));
        return NVML_SUCCESS;
}

/* The third generation is the second, and something behind it. */
nvmlReturn_t our_nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, nvmlGpuFabricInfo_v2_t *info)
{
        struct state_links links;
        bool is_third;
        nvmlReturn_t r;

        if (!info)
                return NVML_ERROR_INVALID_ARGUMENT;
        is_third = info->version == NVML_VERSION(nvmlGpuFabricInfo_v3_t, 3);
        if (!is_third && info->version != NVML_VERSION(nvmlGpuFabricInfo_v2_t, 2))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = find(&links, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        *info = (nvmlGpuFabricInfo_v2_t){ .version = info->version,
                                          .cliqueId = links.fabric.clique,
                                          .state = (unsigned char)links.fabric.state,
                                          .healthMask = links.fabric.health };
        memcpy(info->clusterUuid, links.fabric.cluster, sizeof(info->clusterUuid));
        if (is_third)
                ((nvmlGpuFabricInfo_v3_t *)(void *)info)->healthSummary =
                        (unsigned char)links.fabric.summary;
        return NVML_SUCCESS;
}

/* Of the boards that have a fabric here, Hopper's tell both cliques of pointers; they are the same one. */
nvmlReturn_t our_nvmlDeviceGetGpuFabricInfo_v4(nvmlDevice_t handle, nvmlGpuFabricInfo_v4_t *info)
{
        struct state_links links;
        nvmlReturn_t r = find(&links, handle, info);

        if (r != NVML_SUCCESS)
                return r;
        memset(info, 0, sizeof(*info));
        memcpy(info->clusterUuid, links.fabric.cluster, sizeof(info->clusterUuid));
        info->cliques[0].type = NVML_GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER;
        info->cliques[1].type = NVML_GPU_FABRIC_CLIQUE_TYPE_MULTICAST_POINTER;
        info->cliques[0].id = info->cliques[1].id = links.fabric.clique;
        info->numCliques = links.fabric.state == NVML_GPU_FABRIC_STATE_COMPLETED ? 2 : 0;
        info->state = (unsigned char)links.fabric.state;
        info->healthMask = links.fabric.health;
        info->healthSummary = (unsigned char)links.fabric.summary;
        return NVML_SUCCESS;
}
