/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device measures of itself: of one that a scenario made. A real one is asked by NVIDIA's
 * library, and a simulated one of no scenario measures nothing: "not supported". Nor does a
 * guest learn how warm or how busy others make the device.
 */
#include "abi/nvml-sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static nvmlReturn_t find(struct board_sensors *ret_sensors, nvmlDevice_t handle, bool has_pointers)
{
        struct board_device device;
        nvmlReturn_t r = view_device(&device, handle, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        return !view_is_guest() && board_read_sensors(view_board(), device.index, ret_sensors)
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t answer_number(nvmlDevice_t handle, unsigned int *number, size_t offset)
{
        struct board_sensors sensors;
        nvmlReturn_t r = find(&sensors, handle, number);
        uint32_t value;

        if (r != NVML_SUCCESS)
                return r;
        value = *(const uint32_t *)(const void *)((const char *)&sensors + offset);
        if (value == BOARD_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *number = value;
        return NVML_SUCCESS;
}

#define SENSOR(field) offsetof(struct board_sensors, field)

/* Those that are asked for with nothing but the device. */
/* clang-format off */
#define DEFINE_SENSOR(name, field)                                                  \
        nvmlReturn_t our_##name(nvmlDevice_t handle, unsigned int *number)          \
        {                                                                           \
                return answer_number(handle, number, SENSOR(field));                \
        }

DEFINE_SENSOR(nvmlDeviceGetFanSpeed,                    fan)
DEFINE_SENSOR(nvmlDeviceGetPowerUsage,                  power)
DEFINE_SENSOR(nvmlDeviceGetPowerManagementLimit,        power_limit)
DEFINE_SENSOR(nvmlDeviceGetPowerManagementDefaultLimit, power_limit_max)
DEFINE_SENSOR(nvmlDeviceGetEnforcedPowerLimit,          power_limit)
DEFINE_SENSOR(nvmlDeviceGetMaxPcieLinkGeneration,       pcie_generation_max)
DEFINE_SENSOR(nvmlDeviceGetMaxPcieLinkWidth,            pcie_width_max)
DEFINE_SENSOR(nvmlDeviceGetCurrPcieLinkGeneration,      pcie_generation)
DEFINE_SENSOR(nvmlDeviceGetCurrPcieLinkWidth,           pcie_width)
/* clang-format on */

nvmlReturn_t our_nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t sensor,
                                          unsigned int *celsius)
{
        if (sensor != NVML_TEMPERATURE_GPU)
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_number(handle, celsius, SENSOR(temperature));
}

nvmlReturn_t our_nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_v1_t *temperature)
{
        unsigned int celsius;
        nvmlReturn_t r;

        if (!temperature)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (temperature->version != NVML_VERSION(nvmlTemperature_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = our_nvmlDeviceGetTemperature(handle, temperature->sensorType, &celsius);
        if (r == NVML_SUCCESS)
                temperature->temperature = (int)celsius;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle,
                                                   nvmlTemperatureThresholds_t kind,
                                                   unsigned int *celsius)
{
        struct board_device device;
        nvmlReturn_t r;

        if (kind == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)
                return answer_number(handle, celsius, SENSOR(temperature_shutdown));
        if (kind == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
                return answer_number(handle, celsius, SENSOR(temperature_slowdown));
        r = view_device(&device, handle, celsius && kind < NVML_TEMPERATURE_THRESHOLD_COUNT);
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlReturn_t our_nvmlDeviceGetPowerManagementMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        struct board_sensors sensors;
        nvmlReturn_t r = find(&sensors, handle, mode);

        if (r == NVML_SUCCESS)
                *mode = sensors.power_limit == BOARD_NONE ? NVML_FEATURE_DISABLED
                                                          : NVML_FEATURE_ENABLED;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle,
                                                              unsigned int *least,
                                                              unsigned int *most)
{
        struct board_sensors sensors;
        nvmlReturn_t r = find(&sensors, handle, least && most);

        if (r != NVML_SUCCESS)
                return r;
        if (sensors.power_limit_min == BOARD_NONE || sensors.power_limit_max == BOARD_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *least = sensors.power_limit_min;
        *most = sensors.power_limit_max;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle,
                                                     unsigned long long *energy)
{
        struct board_sensors sensors;
        nvmlReturn_t r = find(&sensors, handle, energy);

        if (r == NVML_SUCCESS)
                *energy = sensors.energy;
        return r;
}

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
        return answer_number(handle, clock, clocks[domain][at_most]);
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

nvmlReturn_t our_nvmlDeviceGetClock(nvmlDevice_t handle, nvmlClockType_t domain,
                                    nvmlClockId_t which, unsigned int *clock)
{
        if (which >= NVML_CLOCK_ID_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_clock(handle, domain, which != NVML_CLOCK_ID_CURRENT, clock);
}

nvmlReturn_t our_nvmlDeviceGetPcieThroughput(nvmlDevice_t handle, nvmlPcieUtilCounter_t counter,
                                             unsigned int *throughput)
{
        if (counter >= NVML_PCIE_UTIL_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_number(handle, throughput,
                             counter == NVML_PCIE_UTIL_TX_BYTES ? SENSOR(pcie_tx)
                                                                : SENSOR(pcie_rx));
}

/* A device that measures nothing of itself runs as fast as it can. */
nvmlReturn_t our_nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t *state)
{
        struct board_sensors sensors;
        nvmlReturn_t r = find(&sensors, handle, state);

        if (r == NVML_SUCCESS)
                *state = (nvmlPstates_t)sensors.performance_state;
        else if (r == NVML_ERROR_NOT_SUPPORTED)
                *state = NVML_PSTATE_0;
        return r == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : r;
}

nvmlReturn_t our_nvmlDeviceGetPowerState(nvmlDevice_t handle, nvmlPstates_t *state)
{
        return our_nvmlDeviceGetPerformanceState(handle, state);
}

nvmlReturn_t our_nvmlDeviceGetEccMode(nvmlDevice_t handle, nvmlEnableState_t *current,
                                      nvmlEnableState_t *pending)
{
        struct board_device device;
        nvmlReturn_t r = view_device(&device, handle, current && pending);

        if (r != NVML_SUCCESS)
                return r;
        if (device.ecc == BOARD_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *current = (nvmlEnableState_t)device.ecc;
        *pending = (nvmlEnableState_t)device.ecc_pending;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, nvmlMemoryErrorType_t kind,
                                             nvmlEccCounterType_t counter,
                                             unsigned long long *count)
{
        struct board_sensors sensors;
        struct board_device device;
        bool is_valid = count && kind < NVML_MEMORY_ERROR_TYPE_COUNT &&
                        counter < NVML_ECC_COUNTER_TYPE_COUNT;
        nvmlReturn_t r = view_device(&device, handle, is_valid);

        if (r == NVML_SUCCESS && device.ecc != 1)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                r = find(&sensors, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        if (kind == NVML_MEMORY_ERROR_TYPE_CORRECTED)
                *count = counter == NVML_VOLATILE_ECC ? sensors.ecc_corrected_volatile
                                                      : sensors.ecc_corrected_aggregate;
        else
                *count = counter == NVML_VOLATILE_ECC ? sensors.ecc_uncorrected_volatile
                                                      : sensors.ecc_uncorrected_aggregate;
        return NVML_SUCCESS;
}
