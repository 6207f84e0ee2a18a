/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells how two devices are connected, where NVIDIA's library does not know. Over the bus they are far
 * apart, but peers. A scenario may have links between them.
 */
#include "nvml/link.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* The errors of view_device(), for any of the two. */
static nvmlReturn_t check_devices(nvmlDevice_t a, nvmlDevice_t b, bool has_pointers)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, a, has_pointers);

        return r == NVML_SUCCESS ? view_device(&device, b, has_pointers) : r;
}

nvmlReturn_t our_nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *flag)
{
        nvmlReturn_t r = check_devices(a, b, flag);

        if (r == NVML_SUCCESS)
                *flag = a == b;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                     nvmlGpuTopologyLevel_t *level)
{
        nvmlReturn_t r = check_devices(a, b, level);

        if (r == NVML_SUCCESS)
                *level = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
        return r;
}

static bool are_linked(nvmlDevice_t a, nvmlDevice_t b)
{
        struct state_device of_a, of_b;

        return view_device(&of_a, a, true) == NVML_SUCCESS &&
               view_device(&of_b, b, true) == NVML_SUCCESS &&
               link_count_between(of_a.index, of_b.index) > 0;
}

static bool is_of_links(nvmlGpuP2PCapsIndex_t index)
{
        return index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS;
}

nvmlReturn_t our_nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                        nvmlGpuP2PStatus_t *status)
{
        nvmlReturn_t r = check_devices(a, b, status && index < NVML_P2P_CAPS_INDEX_UNKNOWN);

        if (r != NVML_SUCCESS)
                return r;
        *status = index <= NVML_P2P_CAPS_INDEX_WRITE || (is_of_links(index) && are_linked(a, b))
                          ? NVML_P2P_STATUS_OK
                          : NVML_P2P_STATUS_NOT_SUPPORTED;
        return NVML_SUCCESS;
}

/* Those at exactly that distance. No room asks for their number. */
static nvmlReturn_t list_devices(nvmlDevice_t but, unsigned int *count, nvmlDevice_t *devices)
{
        unsigned int n = 0, room = *count;

        for (uint32_t i = 0; i < view_count_devices(); i++) {
                nvmlDevice_t handle;

                if (our_nvmlDeviceGetHandleByIndex_v2(i, &handle) != NVML_SUCCESS || handle == but)
                        continue;
                if (n < room)
                        devices[n] = handle;
                n++;
        }
        *count = room > 0 && n > room ? room : n;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t handle, nvmlGpuTopologyLevel_t level,
                                                  unsigned int *count, nvmlDevice_t *devices)
{
        struct state_device device;
        bool is_valid = count && (devices || *count == 0) && level <= NVML_TOPOLOGY_SYSTEM &&
                        level % 10 == 0;
        nvmlReturn_t r = view_device(&device, handle, is_valid);

        if (r != NVML_SUCCESS)
                return r;
        if (level == NVML_TOPOLOGY_SYSTEM)
                return list_devices(handle, count, devices);
        *count = 0;
        return NVML_SUCCESS;
}

/* Each CPU is as near to all devices. */
nvmlReturn_t our_nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
                                             nvmlDevice_t *devices)
{
        (void)cpu;
        if (!count || (!devices && *count > 0))
                return NVML_ERROR_INVALID_ARGUMENT;
        return list_devices(NULL, count, devices);
}
