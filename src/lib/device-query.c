/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML knows of a device; device.c has what vgpud knows. */
#include <stdio.h>
#include <strings.h>

#include <openvgpu/device.h>

#include "lib/answer.h"

#define TEXT_FIRST 96

static const char *const capability_names[] = {
        [VGPU_DEVICE_FRACTIONAL_MULTI_VGPU] = "fractional-multi-vgpu",
        [VGPU_DEVICE_HETEROGENEOUS_PROFILES] = "heterogeneous-profiles",
        [VGPU_DEVICE_HETEROGENEOUS_SIZES] = "heterogeneous-sizes",
        [VGPU_DEVICE_READ_BANDWIDTH] = "read-bandwidth",
        [VGPU_DEVICE_WRITE_BANDWIDTH] = "write-bandwidth",
        [VGPU_DEVICE_STREAMING] = "streaming",
        [VGPU_DEVICE_MINI_QUARTER] = "mini-quarter",
        [VGPU_DEVICE_MEDIA_ENGINES] = "media-engines",
        [VGPU_DEVICE_WARM_UPDATE] = "warm-update",
        [VGPU_DEVICE_HOMOGENEOUS_PLACEMENTS] = "homogeneous-placements",
        [VGPU_DEVICE_MIG_TIMESLICING_SUPPORTED] = "mig-timeslicing-supported",
        [VGPU_DEVICE_MIG_TIMESLICING] = "mig-timeslicing",
};

_Static_assert(sizeof(capability_names) / sizeof(capability_names[0]) ==
                       VGPU_DEVICE_CAPABILITY_COUNT,
               "each has a name");

const char *vgpu_device_capability_get_name(enum vgpu_device_capability capability)
{
        return HOST_NAME(capability_names, capability);
}

int vgpu_device_count(struct vgpu_host *host, uint32_t *ret_count)
{
        unsigned int count = 0;
        int r;

        r = HOST_CALL(host, ABOUT_HOST, nvmlDeviceGetCount_v2, &count);
        if (host_lacks(host, r))
                r = HOST_CALL(host, ABOUT_HOST, nvmlDeviceGetCount, &count);
        if (r == 0)
                *ret_count = count;
        return r;
}

int vgpu_device_get_uuid(struct vgpu_host *host, uint32_t device, char **ret_uuid)
{
        CLEANUP(growing_deinit) struct growing text = GROWING(char, TEXT_FIRST);
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetUUID, handle, text.items,
                              text.room);
        while (growing_again(host, &text, &r));
        return r < 0 ? r : answer_text(host, &text, ret_uuid);
}

int vgpu_device_get_name(struct vgpu_host *host, uint32_t device, char **ret_name)
{
        CLEANUP(growing_deinit) struct growing text = GROWING(char, TEXT_FIRST);
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetName, handle, text.items,
                              text.room);
        while (growing_again(host, &text, &r));
        return r < 0 ? r : answer_text(host, &text, ret_name);
}

/* Old drivers have a shorter form of the address, which is made equal. */
int vgpu_device_get_pci_bus_id(struct vgpu_host *host, uint32_t device, char **ret_bus_id)
{
        nvmlPciInfo_t pci = { .domain = 0 };
        nvmlPciInfo_v2_t old = { .domain = 0 };
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetPciInfo_v3, handle, &pci);
        if (host_lacks(host, r)) {
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetPciInfo_v2, handle, &old);
                pci.domain = old.domain;
                pci.bus = old.bus;
                pci.device = old.device;
        }
        if (r < 0)
                return r;
        return asprintf(ret_bus_id, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device) < 0
                       ? host_set_no_memory(host)
                       : 0;
}

enum match { MATCH_NONE, MATCH_BEGINS, MATCH_IS };

static int match(struct vgpu_host *host, uint32_t device, const char *text, enum match *ret_match)
{
        CLEANUP(freep) char *uuid = NULL, *bus_id = NULL;
        int r;

        r = vgpu_device_get_uuid(host, device, &uuid);
        if (r == 0)
                r = vgpu_device_get_pci_bus_id(host, device, &bus_id);
        if (r < 0)
                return r;
        if (strcasecmp(uuid, text) == 0 || strcasecmp(bus_id, text) == 0)
                *ret_match = MATCH_IS;
        else
                *ret_match = strncasecmp(uuid, text, strlen(text)) == 0 ? MATCH_BEGINS : MATCH_NONE;
        return 0;
}

static int find_by_text(struct vgpu_host *host, const char *text, uint32_t count,
                        uint32_t *ret_device)
{
        uint32_t n_begin = 0, found = 0;

        for (uint32_t i = 0; i < count; i++) {
                enum match how;
                int r = match(host, i, text, &how);

                /* One that fell off the bus must not hide the others. */
                if (r < 0 && host->error.value.kind == VGPU_ERROR_DEVICE_LOST)
                        continue;
                if (r < 0)
                        return r;
                if (how == MATCH_NONE)
                        continue;
                found = i;
                n_begin++;
                if (how == MATCH_IS) {
                        n_begin = 1;
                        break;
                }
        }
        if (n_begin > 1)
                return host_set_error(host, ABOUT_HOST, VGPU_ERROR_INVALID_PARAMETER,
                                      "write more of the UUID", "several devices begin with '%s'",
                                      text);
        if (n_begin == 0)
                return host_set_error(host, ABOUT_HOST, VGPU_ERROR_NO_SUCH_DEVICE,
                                      "'vgpu devices' and 'nvidia-smi -L' list them",
                                      "there is no device '%s'", text);
        *ret_device = found;
        error_clear(&host->error);
        return 0;
}

int vgpu_device_find(struct vgpu_host *host, const char *text, uint32_t *ret_device)
{
        bool is_index = *text != '\0' && strspn(text, "0123456789") == strlen(text);
        uint32_t count;
        int r;

        r = vgpu_device_count(host, &count);
        if (r < 0)
                return r;
        if (is_index && strlen(text) < 6 && strtoul(text, NULL, 10) < count) {
                *ret_device = (uint32_t)strtoul(text, NULL, 10);
                return 0;
        }
        return find_by_text(host, text, *text ? count : 0, ret_device);
}

int vgpu_device_get_mode(struct vgpu_host *host, uint32_t device, enum vgpu_device_mode *ret_mode)
{
        nvmlHostVgpuMode_t mode = NVML_HOST_VGPU_MODE_NON_SRIOV;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetHostVgpuMode, handle, &mode);
        if (r == 0)
                *ret_mode = (enum vgpu_device_mode)mode;
        return r;
}

int vgpu_device_get_capability(struct vgpu_host *host, uint32_t device,
                               enum vgpu_device_capability capability, uint32_t *ret_value)
{
        unsigned int value = 0;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuCapabilities, handle,
                              (nvmlDeviceVgpuCapability_t)capability, &value);
        if (r == 0)
                *ret_value = value;
        return host_name_number(host, r, "capability", (int)capability);
}

int vgpu_device_set_capability(struct vgpu_host *host, uint32_t device,
                               enum vgpu_device_capability capability, bool is_on)
{
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceSetVgpuCapabilities, handle,
                      (nvmlDeviceVgpuCapability_t)capability, (nvmlEnableState_t)is_on);
        return host_name_number(host, r, "capability", (int)capability);
}

int vgpu_device_lookup_types(struct vgpu_host *host, uint32_t device,
                             struct vgpu_number_list **ret_types)
{
        CLEANUP(growing_deinit) struct growing types = GROWING(nvmlVgpuTypeId_t, 0);
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetSupportedVgpus, handle,
                              &types.count, types.items);
        while (growing_again(host, &types, &r));
        return r < 0 ? r : answer_numbers(host, &types, ret_types);
}

static int call_creatable(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                          nvmlDevice_t handle, nvmlGpuInstance_t part, struct growing *types)
{
        nvmlVgpuTypeIdInfo_v1_t info = { .version = NVML_VERSION(nvmlVgpuTypeIdInfo_v1_t, 1),
                                         .vgpuCount = types->room,
                                         .vgpuTypeIds = types->items };
        int r;

        if (gpu_instance == VGPU_WHOLE_DEVICE)
                return HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetCreatableVgpus, handle,
                                 &types->count, types->items);
        r = HOST_CALL(host, ABOUT_GPU_INSTANCE(gpu_instance, device),
                      nvmlGpuInstanceGetCreatableVgpus, part, &info);
        types->count = info.vgpuCount;
        return r;
}

static int call_active(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                       nvmlDevice_t handle, nvmlGpuInstance_t part, struct growing *instances)
{
        nvmlActiveVgpuInstanceInfo_v1_t info = { .version = NVML_VERSION(
                                                         nvmlActiveVgpuInstanceInfo_v1_t, 1),
                                                 .vgpuCount = instances->room,
                                                 .vgpuInstances = instances->items };
        int r;

        if (gpu_instance == VGPU_WHOLE_DEVICE)
                return HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetActiveVgpus, handle,
                                 &instances->count, instances->items);
        r = HOST_CALL(host, ABOUT_GPU_INSTANCE(gpu_instance, device), nvmlGpuInstanceGetActiveVgpus,
                      part, &info);
        instances->count = info.vgpuCount;
        return r;
}

/* A list that a device and a part of it have alike. */
static int lookup_of_place(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                           int (*call)(struct vgpu_host *, uint32_t, uint32_t, nvmlDevice_t,
                                       nvmlGpuInstance_t, struct growing *),
                           struct vgpu_number_list **ret_list)
{
        CLEANUP(growing_deinit) struct growing numbers = GROWING(unsigned int, 0);
        nvmlGpuInstance_t part = NULL;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0 && gpu_instance != VGPU_WHOLE_DEVICE)
                r = host_gpu_instance(host, device, gpu_instance, &part);
        if (r < 0)
                return r;
        do
                r = call(host, device, gpu_instance, handle, part, &numbers);
        while (growing_again(host, &numbers, &r));
        return r < 0 ? r : answer_numbers(host, &numbers, ret_list);
}

int vgpu_device_lookup_creatable_types(struct vgpu_host *host, uint32_t device,
                                       uint32_t gpu_instance, struct vgpu_number_list **ret_types)
{
        return lookup_of_place(host, device, gpu_instance, call_creatable, ret_types);
}

int vgpu_device_lookup_instances(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                 struct vgpu_number_list **ret_instances)
{
        return lookup_of_place(host, device, gpu_instance, call_active, ret_instances);
}
