/* SPDX-License-Identifier: Apache-2.0 */
/* The sensors of a device. A value that the driver does not tell stays unknown. */
#include <openvgpu/device.h>

#include "lib/answer.h"

/* A device that is gone fails all of it; that one value is not told does not. */
static bool is_fatal(const struct vgpu_host *host, int r)
{
        enum vgpu_error_kind kind = host->error.value.kind;

        return r < 0 && (kind == VGPU_ERROR_DEVICE_LOST || kind == VGPU_ERROR_NO_SUCH_DEVICE ||
                         kind == VGPU_ERROR_NOT_LOADED || kind == VGPU_ERROR_RESET_REQUIRED);
}

static int ask_memory(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                      struct vgpu_device_sensors *sensors)
{
        nvmlUtilization_t busy;
        nvmlMemory_t memory;
        int r;

        r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetMemoryInfo, handle, &memory);
        if (r == 0) {
                sensors->memory_total = memory.total;
                sensors->memory_used = memory.used;
                sensors->memory_free = memory.free;
        }
        if (is_fatal(host, r))
                return r;
        r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetUtilizationRates, handle, &busy);
        if (r == 0) {
                sensors->gpu_utilization = busy.gpu;
                sensors->memory_utilization = busy.memory;
        }
        return is_fatal(host, r) ? r : 0;
}

/* What a driver leaves behind in a call that fails is no answer. */
static void take(int r, unsigned int value, uint32_t *to)
{
        if (r == 0)
                *to = value;
}

static int ask_numbers(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                       struct vgpu_device_sensors *sensors)
{
        struct about about = ABOUT_DEVICE(device);
        unsigned int value = 0, period_us;
        int r;

        r = HOST_CALL(host, about, nvmlDeviceGetTemperature, handle, NVML_TEMPERATURE_GPU, &value);
        if (is_fatal(host, r))
                return r;
        take(r, value, &sensors->temperature);
        r = HOST_CALL(host, about, nvmlDeviceGetPowerUsage, handle, &value);
        take(r, value, &sensors->power_mw);
        r = HOST_CALL(host, about, nvmlDeviceGetEnforcedPowerLimit, handle, &value);
        take(r, value, &sensors->power_limit_mw);
        r = HOST_CALL(host, about, nvmlDeviceGetClockInfo, handle, NVML_CLOCK_SM, &value);
        take(r, value, &sensors->clock_sm_mhz);
        r = HOST_CALL(host, about, nvmlDeviceGetClockInfo, handle, NVML_CLOCK_MEM, &value);
        take(r, value, &sensors->clock_memory_mhz);
        r = HOST_CALL(host, about, nvmlDeviceGetEncoderUtilization, handle, &value, &period_us);
        take(r, value, &sensors->encoder_utilization);
        r = HOST_CALL(host, about, nvmlDeviceGetDecoderUtilization, handle, &value, &period_us);
        take(r, value, &sensors->decoder_utilization);
        return 0;
}

static void ask_counters(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                         struct vgpu_device_sensors *sensors)
{
        struct about about = ABOUT_DEVICE(device);
        unsigned long long value;

        if (HOST_CALL(host, about, nvmlDeviceGetTotalEnergyConsumption, handle, &value) == 0)
                sensors->energy_mj = value;
        if (HOST_CALL(host, about, nvmlDeviceGetTotalEccErrors, handle,
                      NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &value) == 0)
                sensors->ecc_corrected = value;
        if (HOST_CALL(host, about, nvmlDeviceGetTotalEccErrors, handle,
                      NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &value) == 0)
                sensors->ecc_uncorrected = value;
}

int vgpu_device_lookup_sensors(struct vgpu_host *host, uint32_t device,
                               struct vgpu_device_sensors **ret_sensors)
{
        CLEANUP(freep) struct vgpu_device_sensors *sensors = NULL;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        sensors = malloc(sizeof(*sensors));
        if (!sensors)
                return host_set_no_memory(host);
        memset(sensors, 0xff, sizeof(*sensors)); /* nothing is known yet */
        r = ask_memory(host, device, handle, sensors);
        if (r == 0)
                r = ask_numbers(host, device, handle, sensors);
        if (r < 0)
                return r;
        ask_counters(host, device, handle, sensors);
        error_clear(&host->error);
        *ret_sensors = TAKE(sensors);
        return 0;
}
