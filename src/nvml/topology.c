/* SPDX-License-Identifier: Apache-2.0 */
/* How two devices are connected, where NVIDIA's library does not know: they are far, but peers. */
#include "nvml/slots.h"
#include "nvml/view.h"

static bool are_devices(nvmlDevice_t a, nvmlDevice_t b)
{
        return view_knows(a) && view_knows(b);
}

nvmlReturn_t our_nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *flag)
{
        if (!flag || !are_devices(a, b))
                return NVML_ERROR_INVALID_ARGUMENT;
        *flag = a == b;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                     nvmlGpuTopologyLevel_t *level)
{
        if (!level || !are_devices(a, b))
                return NVML_ERROR_INVALID_ARGUMENT;
        *level = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                        nvmlGpuP2PStatus_t *status)
{
        if (!status || index >= NVML_P2P_CAPS_INDEX_UNKNOWN || !are_devices(a, b))
                return NVML_ERROR_INVALID_ARGUMENT;
        *status = index <= NVML_P2P_CAPS_INDEX_WRITE ? NVML_P2P_STATUS_OK
                                                     : NVML_P2P_STATUS_NOT_SUPPORTED;
        return NVML_SUCCESS;
}
