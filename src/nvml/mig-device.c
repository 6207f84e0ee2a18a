/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A MIG device is a compute instance that answers questions of a device. Some functions of devices answer
 * for it, too; all others do not support it.
 */
#include "nvml/compute-instance.h"
#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned int *count)
{
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, count);

        if (r != NVML_SUCCESS)
                return r;
        *count = !view_is_guest() &&
                                 state_read_device_detail(view_state_page(), device.index, &detail)
                         ? detail.max_mig_devices
                         : 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int *flag)
{
        struct compute_instance instance;
        struct state_device device;
        nvmlReturn_t r;

        if (flag && compute_instance_find_mig(&instance, handle)) {
                *flag = 1;
                return NVML_SUCCESS;
        }
        r = view_device(&device, handle, flag);
        if (r == NVML_SUCCESS)
                *flag = 0;
        return r;
}

/* They are counted in the order of the state page. One that ends has those behind it move up. */
nvmlReturn_t our_nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned int index,
                                                     nvmlDevice_t *mig)
{
        struct compute_instance instance;
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, mig);

        if (r != NVML_SUCCESS)
                return r;
        for (uint32_t cursor = 0; compute_instance_next(&instance, &cursor, device.index);) {
                if (index-- > 0)
                        continue;
                *mig = view_get_mig_handle(instance.slot);
                return NVML_SUCCESS;
        }
        return NVML_ERROR_NOT_FOUND;
}

/* NOT_SUPPORTED: a device that is no MIG device. */
static nvmlReturn_t find(struct compute_instance *ret_instance, nvmlDevice_t handle,
                         bool has_pointers)
{
        if (has_pointers && compute_instance_find_mig(ret_instance, handle))
                return ret_instance->device.is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
        return has_pointers && view_knows(handle) ? NVML_ERROR_NOT_SUPPORTED
                                                  : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t our_nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
        struct compute_instance instance;
        nvmlReturn_t r = find(&instance, mig, id);

        if (r == NVML_SUCCESS)
                *id = instance.record.gpu_instance;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
        struct compute_instance instance;
        nvmlReturn_t r = find(&instance, mig, id);

        if (r == NVML_SUCCESS)
                *id = instance.record.id;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                              nvmlDevice_t *device)
{
        struct compute_instance instance;
        nvmlReturn_t r = find(&instance, mig, device);

        if (r == NVML_SUCCESS)
                *device = view_get_handle(instance.record.device);
        return r;
}

nvmlReturn_t our_nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
        struct compute_instance instance;
        nvmlReturn_t r = find(&instance, mig, attributes);
        const struct state_profile *whole = &instance.whole;
        uint32_t slices = instance.record.placement_size;

        if (r != NVML_SUCCESS)
                return r;
        *attributes = (nvmlDeviceAttributes_t){
                .multiprocessorCount = compute_instance_count_multiprocessors(
                        instance.record.device, whole, slices),
                .sharedCopyEngineCount = whole->n_copy_engines,
                .sharedDecoderCount = whole->n_decoders,
                .sharedEncoderCount = whole->n_encoders,
                .sharedJpegCount = whole->n_jpegs,
                .sharedOfaCount = whole->n_ofas,
                .gpuInstanceSliceCount = whole->slices,
                .computeInstanceSliceCount = slices,
                .memorySizeMB = instance.part.memory_total >> 20,
        };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
        return our_nvmlDeviceGetAttributes_v2(mig, attributes);
}
