/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the performance states of a device; no client can change them. A scenario's device runs at its highest
 * clocks in P0, and tells no clocks of other states.
 */
#include <stdio.h>
#include <string.h>

#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* P0, and the state that the device is in. @size is in bytes; what is left of it has no state. */
nvmlReturn_t our_nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t handle, nvmlPstates_t *states,
                                                         unsigned int size)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, states);
        unsigned int n = size / sizeof(*states);

        if (r != NVML_SUCCESS)
                return r;
        if (n < 2)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned int i = 1; i < n; i++)
                states[i] = NVML_PSTATE_UNKNOWN;
        states[0] = NVML_PSTATE_0;
        if (sensors.performance_state != NVML_PSTATE_0)
                states[1] = (nvmlPstates_t)sensors.performance_state;
        return NVML_SUCCESS;
}

static nvmlReturn_t get_highest(nvmlDevice_t handle, nvmlClockType_t domain, nvmlPstates_t state,
                                unsigned int *clock, bool has_pointers)
{
        nvmlReturn_t r;

        if (!has_pointers || state > NVML_PSTATE_UNKNOWN)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = our_nvmlDeviceGetMaxClockInfo(handle, domain, clock);
        return r == NVML_SUCCESS && state != NVML_PSTATE_0 ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlReturn_t our_nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t handle, nvmlClockType_t domain,
                                                  nvmlPstates_t state, unsigned int *least,
                                                  unsigned int *most)
{
        unsigned int highest;
        nvmlReturn_t r = get_highest(handle, domain, state, &highest, least && most);

        if (r == NVML_SUCCESS)
                *least = *most = highest;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetClockOffsets(nvmlDevice_t handle, nvmlClockOffset_v1_t *offset)
{
        unsigned int unused;
        nvmlReturn_t r;

        if (!offset)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (offset->version != NVML_VERSION(nvmlClockOffset_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = get_highest(handle, offset->type, offset->pstate, &unused, true);
        if (r == NVML_SUCCESS)
                offset->clockOffsetMHz = offset->minClockOffsetMHz = offset->maxClockOffsetMHz = 0;
        return r;
}

/* In the form that NVML's header shows. NVIDIA's library lets nvml-wrapper leave out the version. Memory transfers at both edges of its clock. */
nvmlReturn_t our_nvmlDeviceGetPerformanceModes(nvmlDevice_t handle, nvmlDevicePerfModes_v1_t *modes)
{
        unsigned int graphics, memory;
        nvmlReturn_t r;

        if (!modes)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (modes->version != NVML_VERSION(nvmlDevicePerfModes_v1_t, 1) && modes->version != 0)
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = our_nvmlDeviceGetMaxClockInfo(handle, NVML_CLOCK_GRAPHICS, &graphics);
        if (r == NVML_SUCCESS)
                r = our_nvmlDeviceGetMaxClockInfo(handle, NVML_CLOCK_MEM, &memory);
        if (r == NVML_SUCCESS)
                snprintf(modes->str, sizeof(modes->str),
                         "perf=0, nvclock=%u, nvclockmin=%u, nvclockmax=%u, nvclockeditable=0, "
                         "memclock=%u, memclockmin=%u, memclockmax=%u, memclockeditable=0, "
                         "memtransferrate=%u, memtransferratemin=%u, memtransferratemax=%u, "
                         "memtransferrateeditable=0 ;",
                         graphics, graphics, graphics, memory, memory, memory, 2 * memory,
                         2 * memory, 2 * memory);
        return r;
}

/* Fans of these devices turn as fast as they like. */
nvmlReturn_t our_nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t handle, unsigned int *least,
                                             unsigned int *most)
{
        unsigned int unused;
        nvmlReturn_t r = least && most ? sensors_answer(handle, &unused, SENSOR(fan))
                                       : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        *least = 0;
        *most = 100;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetFanSpeedRPM(nvmlDevice_t handle, nvmlFanSpeedInfo_v1_t *info)
{
        unsigned int speed;
        nvmlReturn_t r;

        if (!info || info->fan > 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlFanSpeedInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = sensors_answer(handle, &speed, SENSOR(fan_rpm));
        if (r == NVML_SUCCESS)
                info->speed = speed;
        return r;
}

/* A scenario's device has the firmware of its driver. */
nvmlReturn_t our_nvmlDeviceGetGspFirmwareMode(nvmlDevice_t handle, unsigned int *is_enabled,
                                              unsigned int *default_mode)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, is_enabled && default_mode);

        if (r == NVML_SUCCESS)
                *is_enabled = *default_mode = 1;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t handle, char *version)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, version);

        if (r == NVML_SUCCESS)
                snprintf(version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE, "%.63s", view_driver_name());
        return r;
}
