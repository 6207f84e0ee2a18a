/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a device.
 *
 * On a host with NVIDIA's library the list is its, since it knows also those outside
 * of vGPUs. The three lists of the interface differ in the kind of process: all of
 * ours are compute processes. Each list has two layouts: the unsuffixed name fills
 * 16-byte entries, _v2 and _v3 fill 24 bytes.
 */
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static unsigned int count_processes(uint32_t device)
{
        struct board_process process;
        uint32_t cursor = 0;
        unsigned int n = 0;

        while (view_next_process(&process, &cursor, device))
                n++;
        return n;
}

/* The checks that all lists share, then *@count is the number of entries to write. */
static nvmlReturn_t prepare_list(struct board_device *ret_device, nvmlDevice_t handle,
                                 unsigned int *count, const void *list)
{
        if (!count || (!list && *count > 0) || !view_device(ret_device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_room(count, count_processes(ret_device->index));
}

static nvmlReturn_t list_v1(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_v1_t *list)
{
        struct board_process process;
        struct board_device device;
        nvmlReturn_t r = prepare_list(&device, handle, count, list);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0; n < *count && view_next_process(&process, &cursor, device.index);
             n++)
                list[n] = (nvmlProcessInfo_v1_t){ .pid = process.pid,
                                                  .usedGpuMemory = process.memory_used };
        *count = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t list_v2(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *list)
{
        struct board_process process;
        struct board_device device;
        nvmlReturn_t r = prepare_list(&device, handle, count, list);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0; n < *count && view_next_process(&process, &cursor, device.index);
             n++)
                list[n] = (nvmlProcessInfo_t){ .pid = process.pid,
                                               .usedGpuMemory = process.memory_used,
                                               .gpuInstanceId = NVML_INVALID_MIG_ID,
                                               .computeInstanceId = NVML_INVALID_MIG_ID };
        *count = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t list_none(nvmlDevice_t handle, unsigned int *count)
{
        struct board_device device;

        if (!count || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = 0;
        return NVML_SUCCESS;
}

static bool is_ours(nvmlDevice_t handle)
{
        struct board_device device;

        return view_is_substitute() && view_device(&device, handle);
}

nvmlReturn_t our_nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                                      nvmlProcessInfo_v1_t *list)
{
        return is_ours(handle)
                       ? list_v1(handle, count, list)
                       : NVML_REAL(nvmlDeviceGetComputeRunningProcesses)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t handle, unsigned int *count,
                                                         nvmlProcessInfo_t *list)
{
        return is_ours(handle)
                       ? list_v2(handle, count, list)
                       : NVML_REAL(nvmlDeviceGetComputeRunningProcesses_v2)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                         nvmlProcessInfo_t *list)
{
        return is_ours(handle)
                       ? list_v2(handle, count, list)
                       : NVML_REAL(nvmlDeviceGetComputeRunningProcesses_v3)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                                       nvmlProcessInfo_v1_t *list)
{
        return is_ours(handle)
                       ? list_none(handle, count)
                       : NVML_REAL(nvmlDeviceGetGraphicsRunningProcesses)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t handle, unsigned int *count,
                                                          nvmlProcessInfo_t *list)
{
        return is_ours(handle)
                       ? list_none(handle, count)
                       : NVML_REAL(nvmlDeviceGetGraphicsRunningProcesses_v2)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                                          nvmlProcessInfo_t *list)
{
        return is_ours(handle)
                       ? list_none(handle, count)
                       : NVML_REAL(nvmlDeviceGetGraphicsRunningProcesses_v3)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                                         nvmlProcessInfo_v1_t *list)
{
        return is_ours(handle)
                       ? list_none(handle, count)
                       : NVML_REAL(nvmlDeviceGetMPSComputeRunningProcesses)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t handle,
                                                            unsigned int *count,
                                                            nvmlProcessInfo_t *list)
{
        return is_ours(handle)
                       ? list_none(handle, count)
                       : NVML_REAL(nvmlDeviceGetMPSComputeRunningProcesses_v2)(handle, count, list);
}

nvmlReturn_t our_nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t handle,
                                                            unsigned int *count,
                                                            nvmlProcessInfo_t *list)
{
        return is_ours(handle)
                       ? list_none(handle, count)
                       : NVML_REAL(nvmlDeviceGetMPSComputeRunningProcesses_v3)(handle, count, list);
}

static void fill_details(nvmlProcessDetailList_v1_t *list, uint32_t device)
{
        struct board_process process;
        unsigned int n = 0;

        for (uint32_t cursor = 0;
             n < list->numProcArrayEntries && view_next_process(&process, &cursor, device); n++)
                list->procArray[n] =
                        (nvmlProcessDetail_v1_t){ .pid = process.pid,
                                                  .usedGpuMemory = process.memory_used,
                                                  .gpuInstanceId = NVML_INVALID_MIG_ID,
                                                  .computeInstanceId = NVML_INVALID_MIG_ID };
        list->numProcArrayEntries = n;
}

nvmlReturn_t our_nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle,
                                                       nvmlProcessDetailList_v1_t *list)
{
        struct board_device device;
        bool is_compute;
        nvmlReturn_t r;

        if (!is_ours(handle))
                return NVML_REAL(nvmlDeviceGetRunningProcessDetailList)(handle, list);
        if (!list)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (list->version != NVML_VERSION(nvmlProcessDetailList_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (list->mode > NVML_PROCESS_MODE_ALL)
                return NVML_ERROR_INVALID_ARGUMENT;
        is_compute = list->mode == NVML_PROCESS_MODE_COMPUTE || list->mode == NVML_PROCESS_MODE_ALL;
        if (!is_compute)
                return list_none(handle, &list->numProcArrayEntries);
        r = prepare_list(&device, handle, &list->numProcArrayEntries, list->procArray);
        if (r == NVML_SUCCESS)
                fill_details(list, device.index);
        return r;
}
