/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call for numbered fields asks for many values, each with its own result. A field gets the answer of the
 * function that tells the same value. Fields that are not in the table are not supported.
 */
#include <stdint.h>
#include <stdio.h>

#include "nvml/link.h"
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* What a field is made of: @first and @second mean what the reader says. */
struct field {
        unsigned int id;
        nvmlReturn_t (*read)(nvmlDevice_t handle, nvmlFieldValue_t *value,
                             const struct field *field);
        size_t first, second;
};

static nvmlReturn_t put(nvmlFieldValue_t *value, unsigned int number)
{
        value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        value->value.uiVal = number;
        return NVML_SUCCESS;
}

static nvmlReturn_t put_long(nvmlFieldValue_t *value, unsigned long long number)
{
        value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        value->value.ullVal = number;
        return NVML_SUCCESS;
}

/* @first: of the mode that is pending. */
static nvmlReturn_t read_ecc_mode(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                  const struct field *field)
{
        nvmlEnableState_t current, pending;
        nvmlReturn_t r = our_nvmlDeviceGetEccMode(handle, &current, &pending);

        return r == NVML_SUCCESS ? put(value, field->first ? pending : current) : r;
}

/* @first, @second: kind of error, counter. */
static nvmlReturn_t read_errors(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                const struct field *field)
{
        unsigned long long count;
        nvmlReturn_t r =
                our_nvmlDeviceGetTotalEccErrors(handle, (nvmlMemoryErrorType_t)field->first,
                                                (nvmlEccCounterType_t)field->second, &count);

        return r == NVML_SUCCESS ? put_long(value, count) : r;
}

static nvmlReturn_t read_device_errors(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                       const struct field *field)
{
        unsigned long long count;
        nvmlReturn_t r = our_nvmlDeviceGetMemoryErrorCounter(
                handle, (nvmlMemoryErrorType_t)field->first, (nvmlEccCounterType_t)field->second,
                NVML_MEMORY_LOCATION_DEVICE_MEMORY, &count);

        return r == NVML_SUCCESS ? put_long(value, count) : r;
}

/* @first: cause. */
static nvmlReturn_t read_retired(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                 const struct field *field)
{
        unsigned int count = 0;
        nvmlReturn_t r = our_nvmlDeviceGetRetiredPages(
                handle, (nvmlPageRetirementCause_t)field->first, &count, NULL);

        return r == NVML_SUCCESS ? put_long(value, count) : r;
}

static nvmlReturn_t read_retiring(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                  const struct field *field)
{
        nvmlEnableState_t is_pending;
        nvmlReturn_t r = our_nvmlDeviceGetRetiredPagesPendingStatus(handle, &is_pending);

        (void)field;
        return r == NVML_SUCCESS ? put(value, is_pending) : r;
}

/* @first: which of the four numbers. */
static nvmlReturn_t read_remapped(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                  const struct field *field)
{
        unsigned int n[4];
        nvmlReturn_t r = our_nvmlDeviceGetRemappedRows(handle, &n[0], &n[1], &n[2], &n[3]);

        return r == NVML_SUCCESS ? put(value, n[field->first]) : r;
}

/* @first: a sensor. Power has scopes, of which the GPU is 0: of its module or memory nothing is known. */
static nvmlReturn_t read_sensor(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                const struct field *field)
{
        unsigned int number;
        nvmlReturn_t r = value->scopeId == 0 ? sensors_answer(handle, &number, field->first)
                                             : NVML_ERROR_NOT_SUPPORTED;

        return r == NVML_SUCCESS ? put(value, number) : r;
}

static nvmlReturn_t read_energy(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                const struct field *field)
{
        unsigned long long energy;
        nvmlReturn_t r = our_nvmlDeviceGetTotalEnergyConsumption(handle, &energy);

        (void)field;
        return r == NVML_SUCCESS ? put_long(value, energy) : r;
}

/* A device that was measured and has no links has 0 of them. */
static nvmlReturn_t count_links(nvmlDevice_t handle, nvmlFieldValue_t *value,
                                const struct field *field)
{
        struct state_sensors sensors;
        nvmlReturn_t r = link_read_field(handle, value);

        (void)field;
        if (r != NVML_ERROR_NOT_SUPPORTED)
                return r;
        r = sensors_find(&sensors, handle, true);
        return r == NVML_SUCCESS ? put(value, 0) : r;
}

/* Counters that nothing here ever moves. */
static nvmlReturn_t read_zero(nvmlDevice_t handle, nvmlFieldValue_t *value,
                              const struct field *field)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, true);

        (void)field;
        return r == NVML_SUCCESS ? put(value, 0) : r;
}

#define CORRECTED   NVML_MEMORY_ERROR_TYPE_CORRECTED
#define UNCORRECTED NVML_MEMORY_ERROR_TYPE_UNCORRECTED

/* clang-format off */
static const struct field fields[] = {
        { NVML_FI_DEV_ECC_CURRENT,                  read_ecc_mode, false, 0 },
        { NVML_FI_DEV_ECC_PENDING,                  read_ecc_mode, true, 0 },
        { NVML_FI_DEV_ECC_SBE_VOL_TOTAL,            read_errors, CORRECTED, NVML_VOLATILE_ECC },
        { NVML_FI_DEV_ECC_DBE_VOL_TOTAL,            read_errors, UNCORRECTED, NVML_VOLATILE_ECC },
        { NVML_FI_DEV_ECC_SBE_AGG_TOTAL,            read_errors, CORRECTED, NVML_AGGREGATE_ECC },
        { NVML_FI_DEV_ECC_DBE_AGG_TOTAL,            read_errors, UNCORRECTED, NVML_AGGREGATE_ECC },
        { NVML_FI_DEV_ECC_SBE_VOL_DEV,              read_device_errors, CORRECTED, NVML_VOLATILE_ECC },
        { NVML_FI_DEV_ECC_DBE_VOL_DEV,              read_device_errors, UNCORRECTED, NVML_VOLATILE_ECC },
        { NVML_FI_DEV_ECC_SBE_AGG_DEV,              read_device_errors, CORRECTED, NVML_AGGREGATE_ECC },
        { NVML_FI_DEV_ECC_DBE_AGG_DEV,              read_device_errors, UNCORRECTED, NVML_AGGREGATE_ECC },
        { NVML_FI_DEV_RETIRED_SBE,                  read_retired, 0, 0 },
        { NVML_FI_DEV_RETIRED_DBE,                  read_retired, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR, 0 },
        { NVML_FI_DEV_RETIRED_PENDING,              read_retiring, 0, 0 },
        { NVML_FI_DEV_REMAPPED_COR,                 read_remapped, 0, 0 },
        { NVML_FI_DEV_REMAPPED_UNC,                 read_remapped, 1, 0 },
        { NVML_FI_DEV_REMAPPED_PENDING,             read_remapped, 2, 0 },
        { NVML_FI_DEV_REMAPPED_FAILURE,             read_remapped, 3, 0 },
        { NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,     read_energy, 0, 0 },
        { NVML_FI_DEV_ENERGY,                       read_energy, 0, 0 },
        { NVML_FI_DEV_POWER_AVERAGE,                read_sensor, SENSOR(power), 0 },
        { NVML_FI_DEV_POWER_INSTANT,                read_sensor, SENSOR(power), 0 },
        { NVML_FI_DEV_POWER_MIN_LIMIT,              read_sensor, SENSOR(power_limit_min), 0 },
        { NVML_FI_DEV_POWER_MAX_LIMIT,              read_sensor, SENSOR(power_limit_max), 0 },
        { NVML_FI_DEV_POWER_DEFAULT_LIMIT,          read_sensor, SENSOR(power_limit_max), 0 },
        { NVML_FI_DEV_POWER_CURRENT_LIMIT,          read_sensor, SENSOR(power_limit), 0 },
        { NVML_FI_DEV_POWER_REQUESTED_LIMIT,        read_sensor, SENSOR(power_limit), 0 },
        { NVML_FI_DEV_NVLINK_LINK_COUNT,            count_links, 0, 0 },
        { NVML_FI_DEV_C2C_LINK_COUNT,               read_zero, 0, 0 },
        { NVML_FI_DEV_PCIE_REPLAY_COUNTER,          read_zero, 0, 0 },
        { NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, read_zero, 0, 0 },
};
/* clang-format on */

/* @offset: of the time among the sensors; SIZE_MAX: none. */
static nvmlReturn_t read_throttled(nvmlDevice_t handle, nvmlFieldValue_t *value, size_t offset)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, true);

        if (r != NVML_SUCCESS)
                return r;
        return put_long(value, offset == SIZE_MAX ? 0 : sensors_get_throttled(&sensors, offset));
}

/* Those of why clocks are held down were moved from 251 to 269 by driver 580.82. */
static unsigned int get_first_reason(void)
{
        unsigned int major = 0, minor = 0;

        (void)sscanf(view_driver_name(), "%u.%u", &major, &minor);
        return major > 580 || (major == 580 && minor >= 82) ? 269 : 251;
}

static bool is_reason(unsigned int id, size_t *ret_offset)
{
        static const size_t offsets[] = { SENSOR(throttled_thermal), SENSOR(throttled_hw_thermal),
                                          SENSOR(throttled_power_brake) };
        unsigned int at = id - get_first_reason();

        if (at >= sizeof(offsets) / sizeof(offsets[0]))
                return false;
        *ret_offset = offsets[at];
        return true;
}

static nvmlReturn_t read(nvmlDevice_t handle, nvmlFieldValue_t *value)
{
        size_t offset;

        if (is_reason(value->fieldId, &offset))
                return read_throttled(handle, value, offset);
        if (value->fieldId >= NVML_FI_DEV_PERF_POLICY_POWER &&
            value->fieldId <= NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS)
                return read_throttled(
                        handle, value,
                        sensors_find_policy(value->fieldId - NVML_FI_DEV_PERF_POLICY_POWER));
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
                if (fields[i].id == value->fieldId)
                        return fields[i].read(handle, value, &fields[i]);
        return link_read_field(handle, value);
}

/* Nothing counts on a simulated device, and a guest may not change what others on its device see. */
nvmlReturn_t our_nvmlDeviceClearFieldValues(nvmlDevice_t handle, int count,
                                            nvmlFieldValue_t *values)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, values && count > 0);

        for (int i = 0; r == NVML_SUCCESS && i < count; i++)
                values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t *values)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, values && count > 0);

        if (r != NVML_SUCCESS)
                return r;
        for (int i = 0; i < count; i++) {
                values[i].timestamp = (long long)view_sample_us();
                values[i].latencyUsec = 0;
                values[i].nvmlReturn = read(handle, &values[i]);
        }
        return NVML_SUCCESS;
}
