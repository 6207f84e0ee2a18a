/* SPDX-License-Identifier: Apache-2.0 */
/* Tells clocks, what holds them down, and for how long it did. */
#include "nvml/answer.h"
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static const size_t clocks[NVML_CLOCK_COUNT][2] = {
        /* now, at most */
        [NVML_CLOCK_GRAPHICS] = { SENSOR(clock_graphics), SENSOR(clock_graphics_max) },
        [NVML_CLOCK_SM] = { SENSOR(clock_sm), SENSOR(clock_sm_max) },
        [NVML_CLOCK_MEM] = { SENSOR(clock_memory), SENSOR(clock_memory_max) },
        [NVML_CLOCK_VIDEO] = { SENSOR(clock_video), SENSOR(clock_video_max) },
};

static nvmlReturn_t answer_clock(nvmlDevice_t handle, nvmlClockType_t domain, bool at_most,
                                 unsigned int *clock)
{
        if (domain >= NVML_CLOCK_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return sensors_answer(handle, clock, clocks[domain][at_most]);
}

nvmlReturn_t our_nvmlDeviceGetClockInfo(nvmlDevice_t handle, nvmlClockType_t domain,
                                        unsigned int *clock)
{
        return answer_clock(handle, domain, false, clock);
}

nvmlReturn_t our_nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, nvmlClockType_t domain,
                                           unsigned int *clock)
{
        return answer_clock(handle, domain, true, clock);
}

/* Applications are given the highest clocks. */
nvmlReturn_t our_nvmlDeviceGetApplicationsClock(nvmlDevice_t handle, nvmlClockType_t domain,
                                                unsigned int *clock)
{
        return answer_clock(handle, domain, true, clock);
}

nvmlReturn_t our_nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t handle, nvmlClockType_t domain,
                                                       unsigned int *clock)
{
        return answer_clock(handle, domain, true, clock);
}

nvmlReturn_t our_nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t handle, nvmlClockType_t domain,
                                                    unsigned int *clock)
{
        return answer_clock(handle, domain, true, clock);
}

nvmlReturn_t our_nvmlDeviceGetClock(nvmlDevice_t handle, nvmlClockType_t domain,
                                    nvmlClockId_t which, unsigned int *clock)
{
        if (which >= NVML_CLOCK_ID_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_clock(handle, domain, which != NVML_CLOCK_ID_CURRENT, clock);
}

/* The highest clocks are the only ones that could be set. */

nvmlReturn_t our_nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t handle, unsigned int *count,
                                                    unsigned int *clocks_mhz)
{
        unsigned int highest;
        nvmlReturn_t r = answer_clock(handle, NVML_CLOCK_MEM, true, count ? &highest : NULL);

        return r == NVML_SUCCESS ? answer_numbers(count, clocks_mhz, &highest, 1) : r;
}

nvmlReturn_t our_nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t handle,
                                                      unsigned int memory_clock,
                                                      unsigned int *count, unsigned int *clocks_mhz)
{
        unsigned int highest, memory;
        nvmlReturn_t r = answer_clock(handle, NVML_CLOCK_MEM, true, count ? &memory : NULL);

        if (r == NVML_SUCCESS && memory_clock != memory)
                return NVML_ERROR_NOT_FOUND;
        if (r == NVML_SUCCESS)
                r = answer_clock(handle, NVML_CLOCK_GRAPHICS, true, &highest);
        return r == NVML_SUCCESS ? answer_numbers(count, clocks_mhz, &highest, 1) : r;
}

/* Nothing holds the clocks of these devices down, but that there is nothing to do. */

nvmlReturn_t our_nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle,
                                                        unsigned long long *reasons)
{
        struct state_sensors sensors;
        struct state_device device;
        nvmlReturn_t r = sensors_find(&sensors, handle, reasons);

        if (r == NVML_SUCCESS)
                r = view_device(&device, handle, true);
        if (r == NVML_SUCCESS)
                *reasons = device.utilization_gpu == 0 ? NVML_CLOCKS_EVENT_REASON_GPU_IDLE : 0;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle,
                                                           unsigned long long *reasons)
{
        return our_nvmlDeviceGetCurrentClocksEventReasons(handle, reasons);
}

nvmlReturn_t our_nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t handle,
                                                          unsigned long long *reasons)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, reasons);

        if (r == NVML_SUCCESS)
                *reasons = NVML_CLOCKS_EVENT_REASON_ALL;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t handle,
                                                             unsigned long long *reasons)
{
        return our_nvmlDeviceGetSupportedClocksEventReasons(handle, reasons);
}

nvmlReturn_t our_nvmlDeviceGetViolationStatus(nvmlDevice_t handle, nvmlPerfPolicyType_t policy,
                                              nvmlViolationTime_t *time)
{
        struct state_sensors sensors;
        bool is_policy =
                policy <= NVML_PERF_POLICY_RELIABILITY ||
                (policy >= NVML_PERF_POLICY_TOTAL_APP_CLOCKS && policy < NVML_PERF_POLICY_COUNT);
        nvmlReturn_t r = sensors_find(&sensors, handle, time && is_policy);

        size_t offset = sensors_find_policy(policy);

        if (r != NVML_SUCCESS)
                return r;
        *time = (nvmlViolationTime_t){ .referenceTime = view_sample_us() };
        if (offset != SIZE_MAX)
                time->violationTime = sensors_get_throttled(&sensors, offset);
        return NVML_SUCCESS;
}
