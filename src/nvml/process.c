/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the processes of a device.
 *
 * On a host with NVIDIA's library, it answers, since it also knows the processes outside of vGPUs. The
 * three lists of the interface differ in the kind of process; no process of ours uses MPS. Each list has
 * two layouts: the unsuffixed name fills 16-byte entries, _v2 and _v3 fill 24 bytes.
 */
#include "nvml/process.h"

#include "nvml/answer.h"
#include "nvml/compute-instance.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* Of the state page's kinds, those that are asked for. */
static bool is_of_kind(const struct state_process *process, uint32_t kinds)
{
        return ((process->kind ? process->kind : STATE_COMPUTE) & kinds) != 0;
}

bool process_next(struct state_process *ret_process, uint32_t *cursor, uint32_t device,
                  uint32_t kinds)
{
        while (view_next_process(ret_process, cursor, device))
                if (is_of_kind(ret_process, kinds))
                        return true;
        return false;
}

bool process_find(struct state_process *ret_process, uint32_t pid)
{
        for (uint32_t device = 0; device < view_count_devices(); device++)
                for (uint32_t cursor = 0; view_next_process(ret_process, &cursor, device);)
                        if (ret_process->pid == pid)
                                return true;
        return false;
}

uint32_t process_get_gpu_instance(const struct state_process *process)
{
        struct view_instance instance;

        return view_instance(&instance, process->instance, true) == NVML_SUCCESS
                       ? instance.value.gpu_instance
                       : STATE_NONE;
}

static unsigned int count_processes(uint32_t device, uint32_t kinds)
{
        struct state_process process;
        uint32_t cursor = 0;
        unsigned int n = 0;

        while (process_next(&process, &cursor, device, kinds))
                n++;
        return n;
}

/* The checks that all lists share, then *@count is the number of entries to write. */
static nvmlReturn_t prepare_list(struct state_device *ret_device, nvmlDevice_t handle,
                                 uint32_t kinds, unsigned int *count, const void *list)
{
        bool has_pointers = count && (list || *count == 0);
        nvmlReturn_t r = view_device(ret_device, handle, has_pointers);
        struct compute_instance mig;

        /* Programs run in vGPUs, not in compute instances. */
        if (has_pointers && compute_instance_find_mig(&mig, handle)) {
                *ret_device = mig.device;
                return answer_room(count, 0);
        }
        return r == NVML_SUCCESS ? answer_room(count, count_processes(ret_device->index, kinds))
                                 : r;
}

static void fill_v1(void *element, const struct state_process *process)
{
        *(nvmlProcessInfo_v1_t *)element =
                (nvmlProcessInfo_v1_t){ .pid = process->pid,
                                        .usedGpuMemory = process->memory_used };
}

static void fill_v2(void *element, const struct state_process *process)
{
        *(nvmlProcessInfo_t *)element =
                (nvmlProcessInfo_t){ .pid = process->pid,
                                     .usedGpuMemory = process->memory_used,
                                     .gpuInstanceId = process_get_gpu_instance(process),
                                     .computeInstanceId = NVML_INVALID_MIG_ID };
}

static void fill_detail(void *element, const struct state_process *process)
{
        *(nvmlProcessDetail_v1_t *)element =
                (nvmlProcessDetail_v1_t){ .pid = process->pid,
                                          .usedGpuMemory = process->memory_used,
                                          .gpuInstanceId = process_get_gpu_instance(process),
                                          .computeInstanceId = NVML_INVALID_MIG_ID };
}

static nvmlReturn_t list(nvmlDevice_t handle, uint32_t kinds, unsigned int *count, void *elements,
                         size_t size, void (*fill)(void *, const struct state_process *))
{
        struct state_process process;
        struct state_device device;
        nvmlReturn_t r = prepare_list(&device, handle, kinds, count, elements);
        unsigned int n = 0;

        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0;
             n < *count && process_next(&process, &cursor, device.index, kinds); n++)
                fill((char *)elements + n * size, &process);
        *count = n;
        return NVML_SUCCESS;
}

/* clang-format off */
#define DEFINE_LIST(name, kinds, entry, fill)                                                     \
        nvmlReturn_t our_##name(nvmlDevice_t handle, unsigned int *count, entry *entries)         \
        {                                                                                         \
                return view_is_substitute()                                                       \
                               ? list(handle, kinds, count, entries, sizeof(*entries), fill)      \
                               : NVML_REAL(name)(handle, count, entries);                         \
        }
#define DEFINE_LISTS(name, kinds)                                                                 \
        DEFINE_LIST(name, kinds, nvmlProcessInfo_v1_t, fill_v1)                                   \
        DEFINE_LIST(name##_v2, kinds, nvmlProcessInfo_t, fill_v2)                                 \
        DEFINE_LIST(name##_v3, kinds, nvmlProcessInfo_t, fill_v2)

DEFINE_LISTS(nvmlDeviceGetComputeRunningProcesses, STATE_COMPUTE)
DEFINE_LISTS(nvmlDeviceGetGraphicsRunningProcesses, STATE_GRAPHICS)
DEFINE_LISTS(nvmlDeviceGetMPSComputeRunningProcesses, 0)
/* clang-format on */

nvmlReturn_t our_nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle,
                                                       nvmlProcessDetailList_v1_t *details)
{
        static const uint32_t kinds[] = {
                [NVML_PROCESS_MODE_COMPUTE] = STATE_COMPUTE,
                [NVML_PROCESS_MODE_GRAPHICS] = STATE_GRAPHICS,
                [NVML_PROCESS_MODE_MPS] = 0,
                [NVML_PROCESS_MODE_ALL] = STATE_COMPUTE | STATE_GRAPHICS,
        };
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetRunningProcessDetailList)(handle, details);
        if (!details)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (details->version != NVML_VERSION(nvmlProcessDetailList_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (details->mode > NVML_PROCESS_MODE_ALL)
                return NVML_ERROR_INVALID_ARGUMENT;
        return list(handle, kinds[details->mode], &details->numProcArrayEntries, details->procArray,
                    sizeof(*details->procArray), fill_detail);
}
