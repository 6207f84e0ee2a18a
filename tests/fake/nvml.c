/* SPDX-License-Identifier: Apache-2.0 */
#include "fake/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml-device.h"
#include "abi/nvml-mig.h"
#include "abi/nvml-sensors.h"
#include "abi/nvml-vgpu-calls.h"
#include "fake/nvml-internal.h"

#pragma GCC visibility push(default)
extern struct fake_nvml fake_nvml;
#pragma GCC visibility pop

struct fake_nvml fake_nvml = { .driver = FAKE_DRIVER };

#define GIB ((unsigned long long)1 << 30)

struct nvmlDevice_st {
        const char *uuid, *name;
        unsigned int bus;
        bool is_lost, has_mig;
        unsigned int types[3], n_types;
};

struct nvmlGpuInstance_st {
        nvmlDevice_t device;
        unsigned int id;
};

static struct nvmlDevice_st devices[] = {
        { "GPU-aaaa1111-2222-3333-4444-555555555555",
          "NVIDIA H200",
          0x17,
          false,
          false,
          { FAKE_TYPE_BIG, FAKE_TYPE_SMALL },
          2 },
        { "GPU-aaab1111-2222-3333-4444-555555555555",
          "NVIDIA H200",
          0x3b,
          false,
          true,
          { FAKE_TYPE_MIG },
          1 },
        { "GPU-bbbb1111-2222-3333-4444-555555555555", "NVIDIA H200", 0x5e, true, false, { 0 }, 0 },
};

static struct nvmlGpuInstance_st gpu_instances[] = { { &devices[1], 5 }, { &devices[1], 6 } };

static const struct fake_instance instances[] = {
        { FAKE_TRAIN, 0, FAKE_TYPE_BIG, 0xffffffff, 70, "e5c1b1a0-0000-4000-8000-000000000000",
          true },
        { FAKE_INFER, 0, FAKE_TYPE_SMALL, 0xffffffff, 0xffff,
          "e5c1b1a0-0000-4000-8000-000000000001", false },
        { FAKE_MIG, 1, FAKE_TYPE_MIG, 5, 0xffff, "e5c1b1a0-0000-4000-8000-000000000002", true },
};

static const struct fake_type types[] = {
        { FAKE_TYPE_BIG, "NVIDIA H200-70C", 70 * GIB, 0xffffffff, 2, 0 },
        { FAKE_TYPE_SMALL, "NVIDIA H200-35C", 35 * GIB, 0xffffffff, 4, 60 },
        { FAKE_TYPE_MIG, "NVIDIA H200-1-18C", 18 * GIB, 19, 7, 0 },
};

/* The test's wish, or the environment's. */
nvmlReturn_t fake_begin(const char *function)
{
        const char *wish = getenv("FAKE_NVML");
        size_t length = strlen(function);

        fake_nvml.n_calls++;
        if (fake_nvml.watch && strcmp(fake_nvml.watch, function) == 0)
                fake_nvml.was_called = true;
        if (fake_nvml.answer_of && strcmp(fake_nvml.answer_of, function) == 0)
                return fake_nvml.answer;
        if (wish && strncmp(wish, function, length) == 0 && wish[length] == '=')
                return (nvmlReturn_t)atoi(wish + length + 1);
        return NVML_SUCCESS;
}

nvmlReturn_t fake_begin_device(const char *function, nvmlDevice_t device)
{
        nvmlReturn_t r = fake_begin(function);

        if (r != NVML_SUCCESS)
                return r;
        if (device != &devices[0] && device != &devices[1] && device != &devices[2])
                return NVML_ERROR_INVALID_ARGUMENT;
        return device->is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t fake_begin_part(const char *function, nvmlGpuInstance_t part)
{
        nvmlReturn_t r = fake_begin(function);

        if (r != NVML_SUCCESS)
                return r;
        return part == &gpu_instances[0] || part == &gpu_instances[1] ? NVML_SUCCESS
                                                                      : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t fake_begin_instance(const char *function, nvmlVgpuInstance_t id,
                                 const struct fake_instance **ret_instance)
{
        nvmlReturn_t r = fake_begin(function);

        if (r != NVML_SUCCESS)
                return r;
        for (size_t i = 0; i < sizeof(instances) / sizeof(instances[0]); i++) {
                if (instances[i].id != id)
                        continue;
                *ret_instance = &instances[i];
                return NVML_SUCCESS;
        }
        return id == 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t fake_begin_type(const char *function, nvmlVgpuTypeId_t id,
                             const struct fake_type **ret_type)
{
        nvmlReturn_t r = fake_begin(function);

        if (r != NVML_SUCCESS)
                return r;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                if (types[i].id != id)
                        continue;
                *ret_type = &types[i];
                return NVML_SUCCESS;
        }
        return NVML_ERROR_INVALID_ARGUMENT;
}

/* Room for @n items; how a list answers when it was asked with a count of 0 is @on_zero. */
nvmlReturn_t fake_give(const void *from, unsigned int n, size_t size, void *to, unsigned int *count,
                       nvmlReturn_t on_zero)
{
        static unsigned int extra;
        unsigned int need = n + extra;
        nvmlReturn_t r = NVML_SUCCESS;

        if (*count < need || fake_nvml.is_insatiable)
                r = *count == 0 ? on_zero : NVML_ERROR_INSUFFICIENT_SIZE;
        if (fake_nvml.is_insatiable)
                r = NVML_ERROR_INSUFFICIENT_SIZE;
        if (*count < need || fake_nvml.is_insatiable) {
                *count = need;
                extra = fake_nvml.grow > 0 ? extra + 20 : extra;
                fake_nvml.grow -= fake_nvml.grow > 0;
                return r;
        }
        for (unsigned int i = 0; to && i < need; i++)
                memcpy((char *)to + i * size, (const char *)from + (i < n ? i : n - 1) * size,
                       size);
        *count = need;
        extra = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t fake_text(char *to, unsigned int size, const char *from)
{
        if (!to)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (fake_nvml.is_insatiable || size <= strlen(from))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        strcpy(to, from);
        return NVML_SUCCESS;
}

/* Library and host. */

nvmlReturn_t nvmlInit(void)
{
        fake_nvml.n_init++;
        return fake_begin(__func__);
}

nvmlReturn_t nvmlInit_v2(void)
{
        fake_nvml.n_init++;
        return fake_begin(__func__);
}

nvmlReturn_t nvmlShutdown(void)
{
        fake_nvml.n_shutdown++;
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int size)
{
        char version[16];
        nvmlReturn_t r = fake_begin(__func__);

        snprintf(version, sizeof(version), "%u.10", fake_nvml.driver);
        return r == NVML_SUCCESS ? fake_text(to, size, version) : r;
}

nvmlReturn_t nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t capability,
                                           unsigned int *flag)
{
        nvmlReturn_t r = fake_begin(__func__);

        *flag = capability == NVML_VGPU_DRIVER_CAP_WARM_UPDATE;
        return (unsigned int)capability < 2 ? r : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGetVgpuVersion(nvmlVgpuVersion_t *supported, nvmlVgpuVersion_t *current)
{
        nvmlReturn_t r = fake_begin(__func__);

        *supported = (nvmlVgpuVersion_t){ 0x180001, 0x1c0001 };
        *current = (nvmlVgpuVersion_t){ 0x180001, 0x1a0001 };
        return r;
}

nvmlReturn_t nvmlSetVgpuVersion(nvmlVgpuVersion_t *range)
{
        nvmlReturn_t r = fake_begin(__func__);

        fake_nvml.set[0] = range->minVersion;
        fake_nvml.set[1] = range->maxVersion;
        if (r == NVML_SUCCESS && range->minVersion > range->maxVersion)
                return NVML_ERROR_INVALID_ARGUMENT;
        return r;
}

/* Devices. */

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
        nvmlReturn_t r = fake_begin(__func__);

        *count = 3;
        return r;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
        nvmlReturn_t r = fake_begin(__func__);

        *count = 3;
        return r;
}

static nvmlReturn_t get_handle(const char *function, unsigned int index, nvmlDevice_t *device)
{
        nvmlReturn_t r = fake_begin(function);

        if (r != NVML_SUCCESS)
                return r;
        if (index >= 3)
                return NVML_ERROR_INVALID_ARGUMENT;
        *device = &devices[index];
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
        return get_handle(__func__, index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
        return get_handle(__func__, index, device);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *to, unsigned int size)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        return r == NVML_SUCCESS ? fake_text(to, size, device->uuid) : r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        *memory = (nvmlMemory_t){ .total = 141 * GIB, .used = 40 * GIB, .free = 101 * GIB };
        return r;
}

/* Events: device 0 has XID errors, device 1 only changes of clocks. */

static unsigned int watched;

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *mask)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS)
                *mask = device == &devices[0] ? NVML_EVENT_TYPE_XID_CRITICAL_ERROR
                                              : NVML_EVENT_TYPE_CLOCK;
        return r;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
        nvmlReturn_t r = fake_begin(__func__);

        if (r != NVML_SUCCESS)
                return r;
        fake_nvml.n_event_sets++;
        memcpy(set, &(void *){ &watched }, sizeof(*set));
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
        nvmlReturn_t r = fake_begin(__func__);

        fake_nvml.n_event_sets -= (const void *)set == &watched;
        return r;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long mask,
                                      nvmlEventSet_t set)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS && ((const void *)set != &watched || device != &devices[0] ||
                                  mask != NVML_EVENT_TYPE_XID_CRITICAL_ERROR))
                return NVML_ERROR_NOT_SUPPORTED;
        return r;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *event, unsigned int ms)
{
        nvmlReturn_t r = fake_begin(__func__);

        (void)ms;
        if (r != NVML_SUCCESS || (const void *)set != &watched || !fake_nvml.xid)
                return r == NVML_SUCCESS ? NVML_ERROR_TIMEOUT : r;
        *event = (nvmlEventData_v1_t){ .device = &devices[0],
                                       .eventType = NVML_EVENT_TYPE_XID_CRITICAL_ERROR,
                                       .eventData = fake_nvml.xid };
        fake_nvml.xid = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event, unsigned int ms)
{
        nvmlEventData_v1_t old = { .device = NULL };
        nvmlReturn_t r = fake_begin(__func__);

        if (r == NVML_SUCCESS)
                r = nvmlEventSetWait(set, &old, ms);
        *event = (nvmlEventData_t){ .device = old.device,
                                    .eventType = old.eventType,
                                    .eventData = old.eventData };
        return r;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int *celsius)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        *celsius = sensor == NVML_TEMPERATURE_GPU ? 55 : 0;
        return r;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        *power = 412500;
        return r;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t kind,
                                         nvmlEccCounterType_t counter, unsigned long long *count)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        *count = counter == NVML_VOLATILE_ECC && kind == NVML_MEMORY_ERROR_TYPE_CORRECTED ? 3 : 0;
        return r;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *to, unsigned int size)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        return r == NVML_SUCCESS ? fake_text(to, size, device->name) : r;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS)
                *pci = (nvmlPciInfo_v2_t){ .bus = device->bus };
        return r;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS)
                *pci = (nvmlPciInfo_t){ .bus = device->bus };
        return r;
}

nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t device, nvmlHostVgpuMode_t *mode)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        *mode = NVML_HOST_VGPU_MODE_SRIOV;
        return r;
}

nvmlReturn_t nvmlDeviceGetVgpuCapabilities(nvmlDevice_t device,
                                           nvmlDeviceVgpuCapability_t capability,
                                           unsigned int *value)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        *value = (unsigned int)capability * 100;
        if (r == NVML_SUCCESS && (unsigned int)capability >= NVML_DEVICE_VGPU_CAP_COUNT)
                return NVML_ERROR_INVALID_ARGUMENT;
        return r;
}

nvmlReturn_t nvmlDeviceSetVgpuCapabilities(nvmlDevice_t device,
                                           nvmlDeviceVgpuCapability_t capability,
                                           nvmlEnableState_t state)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        fake_nvml.set[0] = (unsigned int)capability;
        fake_nvml.set[1] = (unsigned int)state;
        return r;
}

nvmlReturn_t nvmlDeviceGetSupportedVgpus(nvmlDevice_t device, unsigned int *count,
                                         nvmlVgpuTypeId_t *list)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        return r == NVML_SUCCESS ? fake_give(device->types, device->n_types, sizeof(*list), list,
                                             count, NVML_ERROR_INSUFFICIENT_SIZE)
                                 : r;
}

/* On device 0 only the size that runs; on device 1, where MIG is on, none. */
nvmlReturn_t nvmlDeviceGetCreatableVgpus(nvmlDevice_t device, unsigned int *count,
                                         nvmlVgpuTypeId_t *list)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        return r == NVML_SUCCESS
                       ? fake_give(&device->types[1], device->has_mig ? 0 : 1, sizeof(*list), list,
                                   count, NVML_ERROR_INSUFFICIENT_SIZE)
                       : r;
}

static unsigned int list_instances(nvmlDevice_t device, unsigned int part, unsigned int *ids)
{
        unsigned int n = 0;

        for (size_t i = 0; i < sizeof(instances) / sizeof(instances[0]); i++)
                if (&devices[instances[i].device] == device &&
                    (part == 0xffffffff || instances[i].gpu_instance == part))
                        ids[n++] = instances[i].id;
        return n;
}

nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_t device, unsigned int *count,
                                      nvmlVgpuInstance_t *list)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);
        unsigned int ids[3], n;

        if (r != NVML_SUCCESS)
                return r;
        n = list_instances(device, 0xffffffff, ids);
        return fake_give(ids, n, sizeof(*list), list, count, NVML_ERROR_INSUFFICIENT_SIZE);
}

/* Placement. */

nvmlReturn_t nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_t device,
                                                nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        if (mode->version != NVML_VERSION(nvmlVgpuHeterogeneousMode_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        mode->mode = 1;
        return device->has_mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_t device,
                                                const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        fake_nvml.set[0] = mode->mode;
        return r;
}

static nvmlReturn_t give_placements(const char *function, nvmlDevice_t device,
                                    nvmlVgpuTypeId_t type, nvmlVgpuPlacementList_v2_t *list,
                                    unsigned int most)
{
        static const unsigned int mixed[] = { 0, 70 }, equal[] = { 0, 35, 70, 105 };
        bool is_v1 = list->version == NVML_VERSION(nvmlVgpuPlacementList_v1_t, 1);
        bool is_v2 = list->version == NVML_VERSION(nvmlVgpuPlacementList_v2_t, 2);
        bool is_equal = is_v2 && list->mode == NVML_VGPU_PGPU_HOMOGENEOUS_MODE;
        nvmlReturn_t r = fake_begin_device(function, device);
        const struct fake_type *found;

        if (r == NVML_SUCCESS)
                r = fake_begin_type(function, type, &found);
        if (r != NVML_SUCCESS)
                return r;
        if (!is_v1 && (!is_v2 || fake_nvml.driver < 570))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        list->placementSize = 35;
        return fake_give(is_equal ? equal : mixed, is_equal ? 2 * most : most, sizeof(unsigned int),
                         list->placementIds, &list->count, NVML_ERROR_INSUFFICIENT_SIZE);
}

nvmlReturn_t nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_t device, nvmlVgpuTypeId_t type,
                                                      nvmlVgpuPlacementList_v2_t *list)
{
        return give_placements(__func__, device, type, list, 2);
}

nvmlReturn_t nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_t device, nvmlVgpuTypeId_t type,
                                                      nvmlVgpuPlacementList_v2_t *list)
{
        return give_placements(__func__, device, type, list, 1);
}

/* GPU instances. */

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        if (!device->has_mig || profile > 2)
                return NVML_ERROR_NOT_SUPPORTED;
        /* Two of the profiles have one number, as the driver's revisions of a profile may. */
        *info = (nvmlGpuInstanceProfileInfo_t){ .id = profile == 1 ? 14 : 19, .instanceCount = 1 };
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                       nvmlGpuInstance_t *list, unsigned int *count)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        *count = profile_id == 19 ? 2 : 0;
        for (unsigned int i = 0; i < *count; i++)
                list[i] = &gpu_instances[i];
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t *part)
{
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        if (!device->has_mig)
                return NVML_ERROR_NOT_SUPPORTED;
        if (id != 5 && id != 6)
                return NVML_ERROR_NOT_FOUND;
        *part = &gpu_instances[id - 5];
        return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t part, nvmlGpuInstanceInfo_t *info)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);

        if (r == NVML_SUCCESS)
                *info = (nvmlGpuInstanceInfo_t){ part->device, part->id, 19, { part->id - 5, 1 } };
        return r;
}

nvmlReturn_t nvmlGpuInstanceGetCreatableVgpus(nvmlGpuInstance_t part, nvmlVgpuTypeIdInfo_v1_t *info)
{
        static const unsigned int creatable[] = { FAKE_TYPE_MIG };
        nvmlReturn_t r = fake_begin_part(__func__, part);

        if (r != NVML_SUCCESS)
                return r;
        if (info->version != NVML_VERSION(nvmlVgpuTypeIdInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        return fake_give(creatable, 1, sizeof(unsigned int), info->vgpuTypeIds, &info->vgpuCount,
                         NVML_ERROR_INSUFFICIENT_SIZE);
}

nvmlReturn_t nvmlGpuInstanceGetActiveVgpus(nvmlGpuInstance_t part,
                                           nvmlActiveVgpuInstanceInfo_v1_t *info)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);
        unsigned int ids[3], n;

        if (r != NVML_SUCCESS)
                return r;
        if (info->version != NVML_VERSION(nvmlActiveVgpuInstanceInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        n = list_instances(part->device, part->id, ids);
        return fake_give(ids, n, sizeof(unsigned int), info->vgpuInstances, &info->vgpuCount,
                         NVML_ERROR_INSUFFICIENT_SIZE);
}

nvmlReturn_t nvmlGpuInstanceGetVgpuHeterogeneousMode(nvmlGpuInstance_t part,
                                                     nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);

        mode->mode = 0;
        return r;
}

nvmlReturn_t nvmlGpuInstanceSetVgpuHeterogeneousMode(nvmlGpuInstance_t part,
                                                     const nvmlVgpuHeterogeneousMode_v1_t *mode)
{
        nvmlReturn_t r = fake_begin_part(__func__, part);

        fake_nvml.set[0] = mode->mode;
        return r;
}

nvmlReturn_t
nvmlGpuInstanceGetVgpuTypeCreatablePlacements(nvmlGpuInstance_t part,
                                              nvmlVgpuCreatablePlacementInfo_v1_t *info)
{
        static const unsigned int placements[] = { 3, 6, 9 };
        nvmlReturn_t r = fake_begin_part(__func__, part);

        if (r != NVML_SUCCESS)
                return r;
        if (info->version != NVML_VERSION(nvmlVgpuCreatablePlacementInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        info->placementSize = 3;
        return fake_give(placements, 3, sizeof(unsigned int), info->placementIds, &info->count,
                         NVML_ERROR_INSUFFICIENT_SIZE);
}
