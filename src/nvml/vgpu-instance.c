/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions about one vGPU, and about the virtual machine in which NVML believes it to be. A value
 * that only the machine's driver knows is "not loaded" until this driver runs.
 */
#include <stddef.h>
#include <string.h>

#include "abi/nvml-sensors.h"
#include "nvml/answer.h"
#include "nvml/bus-id.h"
#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* The vGPU and its machine. */
static nvmlReturn_t find_vm(struct state_vm *ret_vm, struct view_instance *ret_instance,
                            nvmlVgpuInstance_t id, bool has_pointers)
{
        nvmlReturn_t r = view_instance(ret_instance, id, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        return state_read_vm(ret_instance->state_page, ret_instance->slot, ret_vm)
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_FOUND; /* it went at this moment */
}

nvmlReturn_t our_nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t id, char *text, unsigned int size,
                                         nvmlVgpuVmIdType_t *kind)
{
        struct view_instance instance;
        struct state_vm vm;
        nvmlReturn_t r = find_vm(&vm, &instance, id, text && kind);

        if (r == NVML_SUCCESS)
                r = answer_text(text, size, vm.id);
        if (r == NVML_SUCCESS)
                *kind = (nvmlVgpuVmIdType_t)vm.id_kind;
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t id, char *text, unsigned int size)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, text);

        return r == NVML_SUCCESS ? answer_text(text, size, instance.value.uuid) : r;
}

/* Mediated devices are KVM's. */
nvmlReturn_t our_nvmlVgpuInstanceGetMdevUUID(nvmlVgpuInstance_t id, char *text, unsigned int size)
{
        struct view_instance instance;
        struct state_vm vm;
        nvmlReturn_t r = find_vm(&vm, &instance, id, text);

        if (r != NVML_SUCCESS)
                return r;
        return *vm.mdev_uuid ? answer_text(text, size, vm.mdev_uuid) : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlVgpuInstanceGetVmDriverVersion(nvmlVgpuInstance_t id, char *text,
                                                    unsigned int size)
{
        struct view_instance instance;
        struct state_vm vm;
        nvmlReturn_t r = find_vm(&vm, &instance, id, text);

        if (r != NVML_SUCCESS)
                return r;
        return answer_text(text, size,
                           instance.value.guest_driver == STATE_GUEST_DRIVER_RUNNING
                                   ? vm.driver_version
                                   : "Not Available");
}

nvmlReturn_t our_nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t id, unsigned long long *bytes)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = instance.value.frame_buffer_used;
        return r;
}

static nvmlReturn_t answer_number(nvmlVgpuInstance_t id, unsigned int *number, size_t offset)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, number);

        if (r == NVML_SUCCESS)
                *number = *(const uint32_t *)(const void *)((const char *)&instance.value + offset);
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetType(nvmlVgpuInstance_t id, nvmlVgpuTypeId_t *type)
{
        return answer_number(id, type, offsetof(struct state_instance, type_id));
}

nvmlReturn_t our_nvmlVgpuInstanceGetGpuInstanceId(nvmlVgpuInstance_t id,
                                                  unsigned int *gpu_instance_id)
{
        return answer_number(id, gpu_instance_id, offsetof(struct state_instance, gpu_instance));
}

nvmlReturn_t our_nvmlVgpuInstanceGetEncoderCapacity(nvmlVgpuInstance_t id, unsigned int *percent)
{
        return answer_number(id, percent, offsetof(struct state_instance, encoder_capacity));
}

/* Where the scheduler gives out fixed turns, the limiter of frames is off. */
static bool is_limiter_off(const struct view_instance *instance)
{
        uint32_t site = state_site_of_device(instance->value.device);
        struct state_gpu_instance gpu_instance;
        struct state_scheduler scheduler;
        uint32_t slot;

        if (instance->value.gpu_instance != STATE_NONE &&
            site_find_gpu_instance(&gpu_instance, &slot, instance->state_page,
                                   instance->value.device, instance->value.gpu_instance))
                site = state_site_of_gpu_instance(slot);
        return state_read_scheduler(instance->state_page,
                                    state_slot_of_scheduler(site, STATE_ENGINE_GRAPHICS),
                                    &scheduler) &&
               scheduler.policy > STATE_POLICY_BEST_EFFORT;
}

nvmlReturn_t our_nvmlVgpuInstanceGetFrameRateLimit(nvmlVgpuInstance_t id, unsigned int *fps)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, fps);

        if (r != NVML_SUCCESS)
                return r;
        if (instance.value.frame_rate_limit == 0 || is_limiter_off(&instance))
                return NVML_ERROR_NOT_SUPPORTED;
        *fps = instance.value.frame_rate_limit;
        return NVML_SUCCESS;
}

/* What the state page does not know of a device, NVIDIA's library does. */
nvmlReturn_t our_nvmlVgpuInstanceGetEccMode(nvmlVgpuInstance_t id, nvmlEnableState_t *mode)
{
        nvmlEnableState_t current, pending;
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, mode);

        if (r != NVML_SUCCESS)
                return r;
        current = (nvmlEnableState_t)instance.value.ecc;
        if (instance.value.ecc == STATE_NONE &&
            NVML_REAL(nvmlDeviceGetEccMode)(view_get_handle(instance.value.device), &current,
                                            &pending) != NVML_SUCCESS)
                return NVML_ERROR_NOT_SUPPORTED;
        *mode = current;
        return NVML_SUCCESS;
}

/* Without a driver in the machine it has no place yet; with one that has not started, nobody knows. */
nvmlReturn_t our_nvmlVgpuInstanceGetGpuPciId(nvmlVgpuInstance_t id, char *text, unsigned int *size)
{
        char place[BUS_ID_MAX] = "00000000:00:00.0";
        struct view_instance instance;
        struct state_vm vm;
        nvmlReturn_t r = find_vm(&vm, &instance, id, text && size);

        if (r != NVML_SUCCESS)
                return r;
        if (instance.value.guest_driver == STATE_GUEST_DRIVER_STOPPED)
                return NVML_ERROR_DRIVER_NOT_LOADED;
        if (instance.value.guest_driver == STATE_GUEST_DRIVER_RUNNING && *vm.pci_bus_id)
                bus_id_rewrite(place, vm.pci_bus_id);
        r = answer_text(text, *size, place);
        if (r == NVML_ERROR_INSUFFICIENT_SIZE)
                *size = (unsigned int)strlen(place) + 1;
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetRuntimeStateSize(nvmlVgpuInstance_t id,
                                                     nvmlVgpuRuntimeState_v1_t *state)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, true);

        if (r != NVML_SUCCESS)
                return r; /* before the pointer */
        if (!state)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (state->version != NVML_VERSION(nvmlVgpuRuntimeState_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        state->size = instance.value.runtime_state_size;
        return NVML_SUCCESS;
}
