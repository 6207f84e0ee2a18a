/* SPDX-License-Identifier: Apache-2.0 */
/* Finding devices, and what they are. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nvml/answer.h"
#include "nvml/bus-id.h"
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

/* The handle of the device at @position of what we show. */
static nvmlDevice_t get_handle(uint32_t position)
{
        struct board_instance own;

        if (view_is_guest())
                return view_own_instance(&own) ? view_get_handle(own.device) : NULL;
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

static nvmlReturn_t find_by(bool (*matches)(const struct board_device *, const void *),
                            const void *wanted, nvmlDevice_t *ret_device)
{
        struct board_device device;

        for (uint32_t i = 0; i < view_count_devices(); i++)
                if (view_device_at(&device, i) && matches(&device, wanted))
                        return our_nvmlDeviceGetHandleByIndex_v2(i, ret_device);
        return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const struct board_device *device, const void *uuid)
{
        return strcasecmp(device->uuid, uuid) == 0;
}

nvmlReturn_t our_nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetHandleByUUID)(uuid, device);
        if (!uuid || !device)
                return NVML_ERROR_INVALID_ARGUMENT;
        return find_by(has_uuid, uuid, device);
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
        return find_by(has_uuid, text, device);
}

static bool has_address(const struct board_device *device, const void *wanted)
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

nvmlReturn_t our_nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
        return our_nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* No device of ours has a serial number. */
nvmlReturn_t our_nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
        return serial && device ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t our_nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
        struct board_device device;

        if (!view_is_substitute() || !view_device(&device, handle))
                return NVML_REAL(nvmlDeviceGetIndex)(handle, index);
        if (!index)
                return NVML_ERROR_INVALID_ARGUMENT;
        *index = device.index;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetName(nvmlDevice_t handle, char *text, unsigned int size)
{
        struct board_device device;

        if (!text || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_text(text, size, device.name);
}

nvmlReturn_t our_nvmlDeviceGetUUID(nvmlDevice_t handle, char *text, unsigned int size)
{
        struct board_device device;

        if (!text || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_text(text, size, device.uuid);
}

nvmlReturn_t our_nvmlDeviceGetBrand(nvmlDevice_t handle, nvmlBrandType_t *brand)
{
        struct board_device device;

        if (!brand || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *brand = NVML_BRAND_NVIDIA;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minor)
{
        struct board_device device;

        if (!minor || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *minor = device.index;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetBoardId(nvmlDevice_t handle, unsigned int *id)
{
        struct board_device device;

        if (!id || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *id = device.pci_domain << 16 | device.pci_bus << 8 | device.pci_device;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned int *flag)
{
        struct board_device device;

        if (!flag || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *flag = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_v1_t *pci)
{
        struct board_device device;

        if (!pci || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        *pci = (nvmlPciInfo_v1_t){ .domain = device.pci_domain,
                                   .bus = device.pci_bus,
                                   .device = device.pci_device,
                                   .pciDeviceId = device.pci_device_id };
        bus_id_format_legacy(pci->busId, &device);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_v2_t *pci)
{
        struct board_device device;

        if (!pci || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
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
        struct board_device device;

        if (!pci || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
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
        struct board_device device;

        if (!pci)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (pci->version != NVML_VERSION(nvmlPciInfoExt_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (!view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
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

/* What the first digits of NVIDIA's PCI device numbers tell, for data-centre devices. */
static const struct {
        uint16_t first, last; /* PCI device */
        nvmlDeviceArchitecture_t architecture;
        int major, minor; /* CUDA compute capability */
} generations[] = {
        { 0x1e00, 0x1fff, NVML_DEVICE_ARCH_TURING, 7, 5 },
        { 0x2080, 0x20ff, NVML_DEVICE_ARCH_AMPERE, 8, 0 },
        { 0x2200, 0x22ff, NVML_DEVICE_ARCH_AMPERE, 8, 6 },
        { 0x2300, 0x23ff, NVML_DEVICE_ARCH_HOPPER, 9, 0 },
        { 0x2680, 0x28ff, NVML_DEVICE_ARCH_ADA, 8, 9 },
        { 0x2900, 0x29ff, NVML_DEVICE_ARCH_BLACKWELL, 10, 0 },
};

static int find_generation(const struct board_device *device)
{
        uint16_t id = (uint16_t)(device->pci_device_id >> 16);

        for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
                if (id >= generations[i].first && id <= generations[i].last)
                        return (int)i;
        return -1;
}

nvmlReturn_t our_nvmlDeviceGetArchitecture(nvmlDevice_t handle,
                                           nvmlDeviceArchitecture_t *architecture)
{
        struct board_device device;
        int i;

        if (!architecture || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        i = find_generation(&device);
        *architecture = i < 0 ? NVML_DEVICE_ARCH_UNKNOWN : generations[i].architecture;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
        struct board_device device;
        int i;

        if (!major || !minor || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        i = find_generation(&device);
        if (i < 0)
                return NVML_ERROR_NOT_SUPPORTED;
        *major = generations[i].major;
        *minor = generations[i].minor;
        return NVML_SUCCESS;
}
