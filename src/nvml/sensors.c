/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the sensors of a scenario's device. NVIDIA's library asks a real device. A simulated device
 * without a scenario has no sensors: "not supported". A guest does not learn how warm or how busy others
 * make the device.
 */
#include "nvml/sensors.h"

#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t sensors_find(struct state_sensors *ret_sensors, nvmlDevice_t handle, bool has_pointers)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        return !view_is_guest() && state_read_sensors(view_state_page(), device.index, ret_sensors)
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t sensors_answer(nvmlDevice_t handle, unsigned int *number, size_t offset)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, number);
        uint32_t value;

        if (r != NVML_SUCCESS)
                return r;
        value = *(const uint32_t *)(const void *)((const char *)&sensors + offset);
        if (value == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *number = value;
        return NVML_SUCCESS;
}

/* Those that are asked for with nothing but the device. */
/* clang-format off */
#define DEFINE_SENSOR(name, field)                                                  \
        nvmlReturn_t our_##name(nvmlDevice_t handle, unsigned int *number)          \
        {                                                                           \
                return sensors_answer(handle, number, SENSOR(field));                \
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
DEFINE_SENSOR(nvmlDeviceGetGpuMaxPcieLinkGeneration,    pcie_generation_max)
DEFINE_SENSOR(nvmlDeviceGetPcieLinkMaxSpeed,            pcie_generation_max) /* the same numbers */
/* clang-format on */

/* A device has one fan, or none. */

nvmlReturn_t our_nvmlDeviceGetNumFans(nvmlDevice_t handle, unsigned int *count)
{
        unsigned int percent;
        nvmlReturn_t r = sensors_answer(handle, count ? &percent : NULL, SENSOR(fan));

        if (r == NVML_SUCCESS)
                *count = 1;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetFanSpeed_v2(nvmlDevice_t handle, unsigned int fan,
                                          unsigned int *percent)
{
        unsigned int value;
        nvmlReturn_t r = sensors_answer(handle, percent ? &value : NULL, SENSOR(fan));

        if (r == NVML_SUCCESS && fan > 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (r == NVML_SUCCESS)
                *percent = value;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t sensor,
                                          unsigned int *celsius)
{
        if (sensor != NVML_TEMPERATURE_GPU)
                return NVML_ERROR_INVALID_ARGUMENT;
        return sensors_answer(handle, celsius, SENSOR(temperature));
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
        struct state_device device;
        nvmlReturn_t r;

        if (kind == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)
                return sensors_answer(handle, celsius, SENSOR(temperature_shutdown));
        if (kind == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
                return sensors_answer(handle, celsius, SENSOR(temperature_slowdown));
        r = view_device(&device, handle, celsius && kind < NVML_TEMPERATURE_THRESHOLD_COUNT);
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlReturn_t our_nvmlDeviceGetPowerManagementMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, mode);

        if (r == NVML_SUCCESS)
                *mode = sensors.power_limit == STATE_NONE ? NVML_FEATURE_DISABLED
                                                          : NVML_FEATURE_ENABLED;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle,
                                                              unsigned int *least,
                                                              unsigned int *most)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, least && most);

        if (r != NVML_SUCCESS)
                return r;
        if (sensors.power_limit_min == STATE_NONE || sensors.power_limit_max == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *least = sensors.power_limit_min;
        *most = sensors.power_limit_max;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle,
                                                     unsigned long long *energy)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, energy);

        if (r != NVML_SUCCESS)
                return r;
        if (sensors.power == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *energy = sensors.energy;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPcieThroughput(nvmlDevice_t handle, nvmlPcieUtilCounter_t counter,
                                             unsigned int *throughput)
{
        if (counter >= NVML_PCIE_UTIL_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return sensors_answer(handle, throughput,
                              counter == NVML_PCIE_UTIL_TX_BYTES ? SENSOR(pcie_tx)
                                                                 : SENSOR(pcie_rx));
}

nvmlReturn_t our_nvmlDeviceGetPowerSource(nvmlDevice_t handle, nvmlPowerSource_t *source)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, source);

        if (r == NVML_SUCCESS)
                *source = NVML_POWER_SOURCE_AC;
        return r;
}

/* A device that measures nothing of itself runs as fast as it can. */
nvmlReturn_t our_nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t *state)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, state);

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

unsigned long long sensors_get_throttled(const struct state_sensors *sensors, size_t offset)
{
        return *(const uint64_t *)(const void *)((const char *)sensors + offset) * 1000;
}

size_t sensors_find_policy(unsigned int policy)
{
        switch (policy) {
        case NVML_PERF_POLICY_POWER:
                return SENSOR(throttled_power);
        case NVML_PERF_POLICY_THERMAL:
                return SENSOR(throttled_thermal);
        case NVML_PERF_POLICY_SYNC_BOOST:
                return SENSOR(throttled_sync_boost);
        default:
                return SIZE_MAX;
        }
}
