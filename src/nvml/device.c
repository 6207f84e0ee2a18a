/* SPDX-License-Identifier: Apache-2.0 */
/* Finds devices, and tells what they are. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nvml/answer.h"
#include "nvml/bus-id.h"
#include "nvml/compute-instance.h"
#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlDeviceGetCount_v2(unsigned int *count)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetCount_v2)(count);
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = view_count_devices();
        return NVML_SUCCESS;
}

/* The old form leaves out what the user may not open; nothing of ours is of that kind. */
nvmlReturn_t our_nvmlDeviceGetCount(unsigned int *count)
{
        return our_nvmlDeviceGetCount_v2(count);
}

/* The handle of the device at @position of what we show; NULL: it is lost. */
static nvmlDevice_t get_handle(uint32_t position)
{
        struct state_device device;
        struct view_instance part;

        if (!view_device_at(&device, position) || device.is_lost)
                return NULL;
        if (view_is_guest())
                return view_find_part(&part, position) ? view_get_handle(part.value.device) : NULL;
        return view_get_handle(position);
}

nvmlReturn_t our_nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
        nvmlDevice_t handle;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetHandleByIndex_v2)(index, device);
        if (!device || index >= view_count_devices())
                return NVML_ERROR_INVALID_ARGUMENT;
        handle = get_handle(index);
        if (!handle)
                return NVML_ERROR_GPU_IS_LOST;
        *device = handle;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
        return our_nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t find_by(bool (*matches)(const struct state_device *, const void *),
                            const void *wanted, nvmlDevice_t *ret_device)
{
        struct state_device device;

        for (uint32_t i = 0; i < view_count_devices(); i++)
                if (view_device_at(&device, i) && matches(&device, wanted))
                        return our_nvmlDeviceGetHandleByIndex_v2(i, ret_device);
        return NVML_ERROR_NOT_FOUND;
}

/* NOT_FOUND: no MIG device has it. */
static nvmlReturn_t find_mig(const char *uuid, nvmlDevice_t *ret_device)
{
        struct compute_instance instance;

        for (uint32_t slot = 0; slot < state_end_compute_instance(view_state_page()); slot++) {
                if (!compute_instance_read(&instance, slot) ||
                    strcasecmp(instance.record.uuid, uuid) != 0)
                        continue;
                *ret_device = view_get_mig_handle(slot);
                return NVML_SUCCESS;
        }
        return NVML_ERROR_NOT_FOUND;
}

/* NVIDIA's library takes a UUID without its "GPU-", too. */
static bool has_uuid(const struct state_device *device, const void *uuid)
{
        return strcasecmp(device->uuid, uuid) == 0 ||
               (strncmp(device->uuid, "GPU-", 4) == 0 && strcasecmp(device->uuid + 4, uuid) == 0);
}

static nvmlReturn_t find_uuid(const char *uuid, nvmlDevice_t *ret_device)
{
        nvmlReturn_t r = find_by(has_uuid, uuid, ret_device);

        return r == NVML_ERROR_NOT_FOUND ? find_mig(uuid, ret_device) : r;
}

nvmlReturn_t our_nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetHandleByUUID)(uuid, device);
        if (!uuid || !device)
                return NVML_ERROR_INVALID_ARGUMENT;
        return find_uuid(uuid, device);
}

static void format_uuid(char *text, const unsigned char *bytes)
{
        text += sprintf(text, "GPU-");
        for (int i = 0; i < 16; i++)
                text += sprintf(text, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                                bytes[i]);
}

nvmlReturn_t our_nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t *uuid, nvmlDevice_t *device)
{
        char text[NVML_DEVICE_UUID_ASCII_LEN + 1];

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetHandleByUUIDV)(uuid, device);
        if (!uuid || !device)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (uuid->version != NVML_VERSION(nvmlUUID_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;

        if (uuid->type == NVML_UUID_TYPE_BINARY)
                format_uuid(text, uuid->value.bytes);
        else if (uuid->type == NVML_UUID_TYPE_ASCII)
                snprintf(text, sizeof(text), "%.*s", NVML_DEVICE_UUID_ASCII_LEN, uuid->value.str);
        else
                return NVML_ERROR_INVALID_ARGUMENT;
        return find_uuid(text, device);
}

static bool has_address(const struct state_device *device, const void *wanted)
{
        const struct bus_id *id = wanted;

        return device->pci_domain == id->domain && device->pci_bus == id->bus &&
               device->pci_device == id->device;
}

nvmlReturn_t our_nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
        struct bus_id id;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetHandleByPciBusId_v2)(bus_id, device);
        if (!bus_id || !device || !bus_id_parse(&id, bus_id))
                return NVML_ERROR_INVALID_ARGUMENT;
        return find_by(has_address, &id, device);
}

/* Nothing drains these devices. */
nvmlReturn_t our_nvmlDeviceQueryDrainState(nvmlPciInfo_t *pci, nvmlEnableState_t *state)
{
        nvmlDevice_t unused;
        nvmlReturn_t r;

        if (!pci || !state)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = our_nvmlDeviceGetHandleByPciBusId_v2(pci->busId, &unused);
        if (r == NVML_SUCCESS)
                *state = NVML_FEATURE_DISABLED;
        return r == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : r;
}

nvmlReturn_t our_nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
        return our_nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

static bool has_serial(const struct state_device *device, const void *serial)
{
        struct state_device_detail detail;

        return state_read_device_detail(view_state_page(), device->index, &detail) &&
               *detail.serial && strcmp(detail.serial, serial) == 0;
}

/* A guest is not told its device's serial number. */
nvmlReturn_t our_nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
        if (!serial || !device)
                return NVML_ERROR_INVALID_ARGUMENT;
        return view_is_guest() ? NVML_ERROR_NOT_FOUND : find_by(has_serial, serial, device);
}

/* The place of a MIG device among those of its device. */
static unsigned int count_before(const struct compute_instance *mig)
{
        struct compute_instance other;
        unsigned int n = 0;

        for (uint32_t cursor = 0; cursor < mig->slot;)
                if (compute_instance_next(&other, &cursor, mig->record.device) &&
                    other.slot < mig->slot)
                        n++;
        return n;
}

nvmlReturn_t our_nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
        struct compute_instance mig;
        struct state_device device;
        nvmlReturn_t r;

        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetIndex)(handle, index);
        if (index && compute_instance_find_mig(&mig, handle)) {
                *index = count_before(&mig);
                return NVML_SUCCESS;
        }
        r = view_device(&device, handle, index);
        if (r == NVML_SUCCESS)
                *index = device.index;
        return r;
}

/* That of its device, and then its own. */
static nvmlReturn_t answer_mig_name(char *text, unsigned int size,
                                    const struct compute_instance *mig)
{
        char name[STATE_NAME_MAX + NVML_GPU_INSTANCE_PROFILE_NAME_MAX];
        char own[NVML_GPU_INSTANCE_PROFILE_NAME_MAX];

        compute_instance_format_name(own, mig->record.placement_size, &mig->whole);
        snprintf(name, sizeof(name), "%s %s", mig->device.name, own);
        return answer_text(text, size, name);
}

nvmlReturn_t our_nvmlDeviceGetName(nvmlDevice_t handle, char *text, unsigned int size)
{
        struct compute_instance mig;
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, text);

        if (text && compute_instance_find_mig(&mig, handle))
                return answer_mig_name(text, size, &mig);
        if (r != NVML_SUCCESS)
                return r;
        return answer_text(text, size, device.name);
}

nvmlReturn_t our_nvmlDeviceGetUUID(nvmlDevice_t handle, char *text, unsigned int size)
{
        struct compute_instance mig;
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, text);

        if (text && compute_instance_find_mig(&mig, handle))
                return answer_text(text, size, mig.record.uuid);
        if (r != NVML_SUCCESS)
                return r;
        return answer_text(text, size, device.uuid);
}

nvmlReturn_t our_nvmlDeviceGetBoardId(nvmlDevice_t handle, unsigned int *id)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, id);

        if (r != NVML_SUCCESS)
                return r;
        *id = device.pci_domain << 16 | device.pci_bus << 8 | device.pci_device;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned int *flag)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, flag);

        if (r != NVML_SUCCESS)
                return r;
        *flag = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_v1_t *pci)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, pci);

        if (r != NVML_SUCCESS)
                return r;
        *pci = (nvmlPciInfo_v1_t){ .domain = device.pci_domain,
                                   .bus = device.pci_bus,
                                   .device = device.pci_device,
                                   .pciDeviceId = device.pci_device_id };
        bus_id_format_legacy(pci->busId, &device);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_v2_t *pci)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, pci);

        if (r != NVML_SUCCESS)
                return r;
        *pci = (nvmlPciInfo_v2_t){ .domain = device.pci_domain,
                                   .bus = device.pci_bus,
                                   .device = device.pci_device,
                                   .pciDeviceId = device.pci_device_id,
                                   .pciSubSystemId = device.pci_subsystem_id };
        bus_id_format_legacy(pci->busId, &device);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, pci);

        if (r != NVML_SUCCESS)
                return r;
        *pci = (nvmlPciInfo_t){ .domain = device.pci_domain,
                                .bus = device.pci_bus,
                                .device = device.pci_device,
                                .pciDeviceId = device.pci_device_id,
                                .pciSubSystemId = device.pci_subsystem_id };
        bus_id_format_legacy(pci->busIdLegacy, &device);
        bus_id_format(pci->busId, &device);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_v1_t *pci)
{
        struct state_device device;
        nvmlReturn_t r;

        if (!pci)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (pci->version != NVML_VERSION(nvmlPciInfoExt_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = view_device(&device, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        *pci = (nvmlPciInfoExt_v1_t){ .version = pci->version,
                                      .domain = device.pci_domain,
                                      .bus = device.pci_bus,
                                      .device = device.pci_device,
                                      .pciDeviceId = device.pci_device_id,
                                      .pciSubSystemId = device.pci_subsystem_id,
                                      .baseClass = 3, /* display controller */
                                      .subClass = 2 /* 3D */ };
        bus_id_format(pci->busId, &device);
        return NVML_SUCCESS;
}
