/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, where NVIDIA's library is not in use: sets can be made and devices registered, nothing
 * happens in them, and a wait ends with its timeout. nvidia-smi makes one at every start and gives
 * up when it can't; the plugin of Kubernetes takes a device for broken that can't be registered.
 *
 * A set is a number, not memory: there is nothing in it, and nothing leaks when a client
 * ends without freeing it.
 */
#include <errno.h>
#include <time.h>

#include "nvml/slots.h"
#include "nvml/view.h"

/* That can be waited for, in vain. */
#define EVENT_TYPES                                                                    \
        (NVML_EVENT_TYPE_SINGLE_BIT_ECC_ERROR | NVML_EVENT_TYPE_DOUBLE_BIT_ECC_ERROR | \
         NVML_EVENT_TYPE_PSTATE | NVML_EVENT_TYPE_XID_CRITICAL_ERROR | NVML_EVENT_TYPE_CLOCK)

static const uintptr_t event_set = 0x4f56470000010001; /* no address, like the device handles */

nvmlReturn_t our_nvmlEventSetCreate(nvmlEventSet_t *set)
{
        if (!set)
                return NVML_ERROR_INVALID_ARGUMENT;
        *set = (nvmlEventSet_t)event_set;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlEventSetFree(nvmlEventSet_t set)
{
        return (uintptr_t)set == event_set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t wait_out(nvmlEventSet_t set, const void *event, unsigned int timeout_ms)
{
        struct timespec rest = { .tv_sec = timeout_ms / 1000,
                                 .tv_nsec = timeout_ms % 1000 * 1000000L };
        int saved_errno = errno;

        if ((uintptr_t)set != event_set || !event)
                return NVML_ERROR_INVALID_ARGUMENT;
        while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
                ;
        errno = saved_errno;
        return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t our_nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *event,
                                  unsigned int timeout_ms)
{
        return wait_out(set, event, timeout_ms);
}

nvmlReturn_t our_nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event,
                                     unsigned int timeout_ms)
{
        return wait_out(set, event, timeout_ms);
}

nvmlReturn_t our_nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *mask)
{
        struct board_device device;
        nvmlReturn_t r = view_device(&device, handle, mask);

        if (r != NVML_SUCCESS)
                return r;
        *mask = EVENT_TYPES;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long mask,
                                          nvmlEventSet_t set)
{
        struct board_device device;
        nvmlReturn_t r = view_device(&device, handle, (uintptr_t)set == event_set);

        if (r != NVML_SUCCESS)
                return r;
        return (mask & ~EVENT_TYPES) == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
