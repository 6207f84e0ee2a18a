/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what a device is made of: from the state page, or else from its PCI number. */
#include "nvml/answer.h"
#include "nvml/compute-instance.h"
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* What the first digits of NVIDIA's PCI device numbers tell, for data-centre devices. */
static const struct generation {
        uint16_t first, last; /* PCI device */
        nvmlDeviceArchitecture_t architecture;
        uint32_t major, minor; /* CUDA compute capability */
} generations[] = {
        { 0x1e00, 0x1fff, NVML_DEVICE_ARCH_TURING, 7, 5 },
        { 0x2080, 0x20ff, NVML_DEVICE_ARCH_AMPERE, 8, 0 },
        { 0x2200, 0x22ff, NVML_DEVICE_ARCH_AMPERE, 8, 6 },
        { 0x2300, 0x23ff, NVML_DEVICE_ARCH_HOPPER, 9, 0 },
        { 0x2680, 0x28ff, NVML_DEVICE_ARCH_ADA, 8, 9 },
        { 0x2900, 0x29ff, NVML_DEVICE_ARCH_BLACKWELL, 10, 0 },
};

static const struct generation *find_generation(const struct state_device *device)
{
        uint16_t id = (uint16_t)(device->pci_device_id >> 16);

        for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
                if (id >= generations[i].first && id <= generations[i].last)
                        return &generations[i];
        return NULL;
}

/* NOT_SUPPORTED: the state page has no details of it. A guest's index is not the state page's. */
static nvmlReturn_t find(struct state_device_detail *ret_detail, struct state_device *ret_device,
                         nvmlDevice_t handle, bool has_pointers)
{
        nvmlReturn_t r = view_device(ret_device, handle, has_pointers);
        struct view_instance own;
        uint32_t slot;

        if (r != NVML_SUCCESS)
                return r;
        slot = view_is_guest() && view_find_part(&own, ret_device->index) ? own.value.device
                                                                          : ret_device->index;
        return state_read_device_detail(view_state_page(), slot, ret_detail)
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

/* No simulated device addresses what the system allocates; before Turing no device could. */
nvmlReturn_t our_nvmlDeviceGetAddressingMode(nvmlDevice_t handle,
                                             nvmlDeviceAddressingMode_v1_t *mode)
{
        nvmlDeviceArchitecture_t architecture;
        nvmlReturn_t r = mode ? our_nvmlDeviceGetArchitecture(handle, &architecture)
                              : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        if (mode->version != NVML_VERSION(nvmlDeviceAddressingMode_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (architecture < NVML_DEVICE_ARCH_TURING || architecture == NVML_DEVICE_ARCH_UNKNOWN)
                return NVML_ERROR_NOT_SUPPORTED;
        mode->value = NVML_DEVICE_ADDRESSING_MODE_NONE;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetBrand(nvmlDevice_t handle, nvmlBrandType_t *brand)
{
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = find(&detail, &device, handle, brand);

        if (r == NVML_ERROR_NOT_SUPPORTED)
                detail.brand = STATE_NONE;
        else if (r != NVML_SUCCESS)
                return r;
        *brand =
                detail.brand < NVML_BRAND_COUNT ? (nvmlBrandType_t)detail.brand : NVML_BRAND_NVIDIA;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetArchitecture(nvmlDevice_t handle,
                                           nvmlDeviceArchitecture_t *architecture)
{
        const struct generation *generation;
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = find(&detail, &device, handle, architecture);

        if (r != NVML_SUCCESS && r != NVML_ERROR_NOT_SUPPORTED)
                return r;
        generation = find_generation(&device);
        if (r == NVML_SUCCESS && detail.architecture != STATE_NONE)
                *architecture = detail.architecture;
        else
                *architecture = generation ? generation->architecture : NVML_DEVICE_ARCH_UNKNOWN;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
        const struct generation *generation;
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = find(&detail, &device, handle, major && minor);

        if (r != NVML_SUCCESS && r != NVML_ERROR_NOT_SUPPORTED)
                return r;
        generation = find_generation(&device);
        if (r == NVML_SUCCESS && detail.compute_major != STATE_NONE) {
                *major = (int)detail.compute_major;
                *minor = (int)detail.compute_minor;
                return NVML_SUCCESS;
        }
        if (!generation)
                return NVML_ERROR_NOT_SUPPORTED;
        *major = (int)generation->major;
        *minor = (int)generation->minor;
        return NVML_SUCCESS;
}

static nvmlReturn_t answer_number(nvmlDevice_t handle, unsigned int *number, size_t offset)
{
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = find(&detail, &device, handle, number);
        uint32_t value;

        if (r != NVML_SUCCESS)
                return r;
        value = *(const uint32_t *)(const void *)((const char *)&detail + offset);
        if (value == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *number = value;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minor)
{
        return answer_number(handle, minor, offsetof(struct state_device_detail, minor_number));
}

nvmlReturn_t our_nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *count)
{
        struct state_device device;
        nvmlReturn_t r = view_whole_device(&device, handle, count);

        return r == NVML_SUCCESS
                       ? answer_number(handle, count, offsetof(struct state_device_detail, n_cores))
                       : r;
}

nvmlReturn_t our_nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned int *bits)
{
        return answer_number(handle, bits, offsetof(struct state_device_detail, memory_bus_width));
}

/* Texts that are empty are not known. */
static nvmlReturn_t answer_label(nvmlDevice_t handle, char *text, unsigned int size, size_t offset)
{
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = find(&detail, &device, handle, text);
        const char *label = (const char *)&detail + offset;

        if (r != NVML_SUCCESS)
                return r;
        return *label ? answer_text(text, size, label) : NVML_ERROR_NOT_SUPPORTED;
}

/* A guest is not told its device's serial number. */
nvmlReturn_t our_nvmlDeviceGetSerial(nvmlDevice_t handle, char *text, unsigned int size)
{
        if (view_is_guest() && text)
                return NVML_ERROR_NOT_SUPPORTED;
        return answer_label(handle, text, size, offsetof(struct state_device_detail, serial));
}

nvmlReturn_t our_nvmlDeviceGetVbiosVersion(nvmlDevice_t handle, char *text, unsigned int size)
{
        return answer_label(handle, text, size, offsetof(struct state_device_detail, vbios));
}

nvmlReturn_t our_nvmlDeviceGetBoardPartNumber(nvmlDevice_t handle, char *text, unsigned int size)
{
        return answer_label(handle, text, size, offsetof(struct state_device_detail, part_number));
}

#define MEMORY_SLICES 8

/*
 * Vendors' windows are as large as the memory behind; who uses how much of one is not counted. A MIG
 * device has the part of its GPU instance.
 */
nvmlReturn_t our_nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *memory)
{
        struct state_device_detail detail;
        struct state_device device;
        struct compute_instance mig;
        bool is_mig = memory && compute_instance_find_mig(&mig, handle);
        nvmlReturn_t r = find(&detail, &device,
                              is_mig ? view_get_handle(mig.record.device) : handle, memory);

        if (r != NVML_SUCCESS)
                return r;
        if (detail.bar1_total == 0)
                return NVML_ERROR_NOT_SUPPORTED;
        if (is_mig)
                detail.bar1_total = detail.bar1_total / MEMORY_SLICES * mig.part.placement_size;
        *memory =
                (nvmlBAR1Memory_t){ .bar1Total = detail.bar1_total, .bar1Free = detail.bar1_total };
        return NVML_SUCCESS;
}

/* There are no others. */
nvmlReturn_t our_nvmlDeviceGetBusType(nvmlDevice_t handle, nvmlBusType_t *type)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, type);

        if (r == NVML_SUCCESS)
                *type = NVML_BUS_TYPE_PCIE;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetPcieReplayCounter(nvmlDevice_t handle, unsigned int *count)
{
        struct state_sensors sensors;
        nvmlReturn_t r = sensors_find(&sensors, handle, count);

        if (r == NVML_SUCCESS)
                *count = 0;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetIrqNum(nvmlDevice_t handle, unsigned int *number)
{
        struct state_device_detail detail;
        struct state_device device;
        nvmlReturn_t r = find(&detail, &device, handle, number);

        if (r == NVML_SUCCESS && detail.irq == 0)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                *number = detail.irq;
        return r;
}
