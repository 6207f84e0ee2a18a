/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ECC tells the errors of a device's memory. A scenario says how many errors there are. All of them are in
 * the device memory; caches and registers have none. No page is retired and no row is remapped: boards from
 * Ampere on remap rows, older ones retire pages.
 */
#include "nvml/compute-instance.h"
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetEccMode(nvmlDevice_t handle, nvmlEnableState_t *current,
                                      nvmlEnableState_t *pending)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, current && pending);

        if (r != NVML_SUCCESS)
                return r;
        if (device.ecc == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *current = (nvmlEnableState_t)device.ecc;
        *pending = (nvmlEnableState_t)device.ecc_pending;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetDefaultEccMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        nvmlEnableState_t current, pending;
        nvmlReturn_t r = our_nvmlDeviceGetEccMode(handle, mode ? &current : NULL, &pending);

        if (r == NVML_SUCCESS)
                *mode = NVML_FEATURE_ENABLED;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, nvmlMemoryErrorType_t kind,
                                             nvmlEccCounterType_t counter,
                                             unsigned long long *count)
{
        struct state_sensors sensors;
        struct state_device device;
        bool is_valid = count && kind < NVML_MEMORY_ERROR_TYPE_COUNT &&
                        counter < NVML_ECC_COUNTER_TYPE_COUNT;
        nvmlReturn_t r = view_device(&device, handle, is_valid);

        if (r == NVML_SUCCESS && device.ecc != 1)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                r = sensors_find(&sensors, handle, true);
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

/* SRAM has no errors; whose those of the memory were, nobody knows. */
static nvmlReturn_t count_of_mig(const struct compute_instance *mig, nvmlMemoryLocation_t location,
                                 unsigned long long *count)
{
        if (mig->device.ecc != 1 || location != NVML_MEMORY_LOCATION_SRAM)
                return NVML_ERROR_NOT_SUPPORTED;
        *count = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t handle, nvmlMemoryErrorType_t kind,
                                                 nvmlEccCounterType_t counter,
                                                 nvmlMemoryLocation_t location,
                                                 unsigned long long *count)
{
        bool is_valid = count && location < NVML_MEMORY_LOCATION_COUNT;
        struct compute_instance mig;
        struct state_device device;
        unsigned long long total;
        nvmlReturn_t r;

        if (is_valid && compute_instance_find_mig(&mig, handle))
                return count_of_mig(&mig, location, count);
        r = our_nvmlDeviceGetTotalEccErrors(handle, kind, counter, is_valid ? &total : NULL);
        if (r != NVML_SUCCESS)
                return r;
        if (location != NVML_MEMORY_LOCATION_DEVICE_MEMORY && location != NVML_MEMORY_LOCATION_SRAM)
                return NVML_ERROR_NOT_SUPPORTED;
        r = view_device(&device, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        if (device.mig == 1 && counter == NVML_VOLATILE_ECC) /* those of its GPU instances */
                return NVML_ERROR_NOT_SUPPORTED;
        *count = location == NVML_MEMORY_LOCATION_DEVICE_MEMORY ? total : 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetDetailedEccErrors(nvmlDevice_t handle, nvmlMemoryErrorType_t kind,
                                                nvmlEccCounterType_t counter,
                                                nvmlEccErrorCounts_t *counts)
{
        unsigned long long total;
        nvmlReturn_t r =
                our_nvmlDeviceGetTotalEccErrors(handle, kind, counter, counts ? &total : NULL);

        if (r == NVML_SUCCESS)
                *counts = (nvmlEccErrorCounts_t){ .deviceMemory = total };
        return r;
}

/* From Ampere on. */
nvmlReturn_t our_nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t handle,
                                                 nvmlEccSramErrorStatus_v1_t *status)
{
        nvmlDeviceArchitecture_t architecture;
        unsigned long long total;
        nvmlReturn_t r;

        if (!status)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (status->version != NVML_VERSION(nvmlEccSramErrorStatus_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = our_nvmlDeviceGetTotalEccErrors(handle, NVML_MEMORY_ERROR_TYPE_CORRECTED,
                                            NVML_AGGREGATE_ECC, &total);
        if (r == NVML_SUCCESS)
                r = our_nvmlDeviceGetArchitecture(handle, &architecture);
        if (r == NVML_SUCCESS && architecture < NVML_DEVICE_ARCH_AMPERE)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                *status = (nvmlEccSramErrorStatus_v1_t){ .version = status->version };
        return r;
}

/* Does it mend its memory in this way? */
static nvmlReturn_t check_mending(nvmlDevice_t handle, bool remaps_rows, bool has_pointers)
{
        nvmlDeviceArchitecture_t architecture;
        nvmlEnableState_t current, pending;
        nvmlReturn_t r = our_nvmlDeviceGetEccMode(handle, has_pointers ? &current : NULL, &pending);

        if (r == NVML_SUCCESS && view_is_guest())
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                r = our_nvmlDeviceGetArchitecture(handle, &architecture);
        if (r != NVML_SUCCESS)
                return r;
        return (architecture >= NVML_DEVICE_ARCH_AMPERE) == remaps_rows ? NVML_SUCCESS
                                                                        : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlDeviceGetRetiredPages(nvmlDevice_t handle, nvmlPageRetirementCause_t cause,
                                           unsigned int *count, unsigned long long *addresses)
{
        nvmlReturn_t r = check_mending(handle, false,
                                       count && (addresses || *count == 0) &&
                                               cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT);

        if (r == NVML_SUCCESS)
                *count = 0;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetRetiredPages_v2(nvmlDevice_t handle, nvmlPageRetirementCause_t cause,
                                              unsigned int *count, unsigned long long *addresses,
                                              unsigned long long *times)
{
        (void)times;
        return our_nvmlDeviceGetRetiredPages(handle, cause, count, addresses);
}

nvmlReturn_t our_nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t handle,
                                                        nvmlEnableState_t *is_pending)
{
        nvmlReturn_t r = check_mending(handle, false, is_pending);

        if (r == NVML_SUCCESS)
                *is_pending = NVML_FEATURE_DISABLED;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned int *corrected,
                                           unsigned int *uncorrected, unsigned int *is_pending,
                                           unsigned int *has_failed)
{
        struct state_device device;
        nvmlReturn_t r =
                check_mending(handle, true, corrected && uncorrected && is_pending && has_failed);

        if (r == NVML_SUCCESS)
                r = view_device(&device, handle, true);
        if (r == NVML_SUCCESS && device.mig == 1)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                *corrected = *uncorrected = *is_pending = *has_failed = 0;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetRemappedRows_v2(nvmlDevice_t handle, nvmlRemappedRowsInfo_v2_t *rows)
{
        unsigned int n[4];
        nvmlReturn_t r = rows ? our_nvmlDeviceGetRemappedRows(handle, &n[0], &n[1], &n[2], &n[3])
                              : NVML_ERROR_INVALID_ARGUMENT;

        if (r == NVML_SUCCESS)
                *rows = (nvmlRemappedRowsInfo_v2_t){ .corrActiveRemaps = n[0],
                                                     .uncActiveRemaps = n[1],
                                                     .bPending = n[2],
                                                     .bFailureOccurred = n[3] };
        return r;
}
