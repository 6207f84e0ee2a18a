/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a vGPU and a device tell of themselves before a migration, and whether the two fit.
 *
 * The answer is a function of the two blobs alone, which may come from other hosts: so
 * each blob carries in its opaque part what kind of device it is about, with a magic number, and
 * whatever lacks that is "other". A vGPU moves while it runs (live) to a device of the
 * same kind whose host has the same driver: the driver's restore accepts nothing else. Room is
 * not part of the answer.
 */
#include <stdio.h>
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

#define OPAQUE_MAGIC     0x4d475056u /* "VPGM" */
#define METADATA_VERSION 1

/* The version of what we move, and all that we can read. */
#define VGPU_VERSION_MIN (1u << 16)
#define VGPU_VERSION_MAX (1u << 16)

#define COMPATIBLE_ALWAYS                                                         \
        (NVML_VGPU_VM_COMPATIBILITY_COLD | NVML_VGPU_VM_COMPATIBILITY_HIBERNATE | \
         NVML_VGPU_VM_COMPATIBILITY_SLEEP | NVML_VGPU_VM_COMPATIBILITY_LIVE)

/* As long as what NVIDIA's library was seen to have: clients may count on it. */
struct opaque {
        uint32_t magic;
        uint32_t version;
        uint32_t pci_device_id;
        uint32_t pci_subsystem_id;
        char uuid[BOARD_UUID_MAX]; /* of the vGPU; empty for a device */
        char reserved[260 - 4 * sizeof(uint32_t) - BOARD_UUID_MAX];
};

_Static_assert(sizeof(struct opaque) == 260, "four bytes are in the declared struct");

#define VGPU_METADATA_SIZE \
        ((unsigned int)(offsetof(nvmlVgpuMetadata_t, opaqueData) + sizeof(struct opaque)))
#define DEVICE_METADATA_SIZE \
        ((unsigned int)(offsetof(nvmlVgpuPgpuMetadata_t, opaqueData) + sizeof(struct opaque)))

static void write_opaque(char *to, const struct board_device *device, const char *uuid)
{
        struct opaque opaque = { .magic = OPAQUE_MAGIC,
                                 .version = METADATA_VERSION,
                                 .pci_device_id = device->pci_device_id,
                                 .pci_subsystem_id = device->pci_subsystem_id };

        snprintf(opaque.uuid, sizeof(opaque.uuid), "%s", uuid);
        memcpy(to, &opaque, sizeof(opaque));
}

/* @size against @needed; true when the caller may go on to write. */
static bool fits(unsigned int *size, unsigned int needed)
{
        bool does = *size >= needed;

        *size = does ? *size : needed;
        return does;
}

nvmlReturn_t our_nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t id, nvmlVgpuMetadata_t *metadata,
                                             unsigned int *size)
{
        nvmlVgpuMetadata_t head = {
                .version = METADATA_VERSION,
                .guestInfoState = NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED,
                .vgpuVirtualizationCaps = NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION,
                .guestVgpuVersion = VGPU_VERSION_MAX,
                .opaqueDataSize = sizeof(struct opaque),
        };
        struct board_instance instance;
        struct board_device device;

        if (!size)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!fits(size, VGPU_METADATA_SIZE))
                return NVML_ERROR_INSUFFICIENT_SIZE; /* before the handle */
        if (!metadata || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!view_instance(&instance, id) || !view_physical(&device, instance.device))
                return NVML_ERROR_NOT_FOUND;

        answer_text(head.guestDriverVersion, sizeof(head.guestDriverVersion), view_driver_name());
        answer_text(head.hostDriverVersion, sizeof(head.hostDriverVersion), view_driver_name());
        memcpy(metadata, &head, offsetof(nvmlVgpuMetadata_t, opaqueData));
        write_opaque((char *)metadata + offsetof(nvmlVgpuMetadata_t, opaqueData), &device,
                     instance.uuid);
        *size = VGPU_METADATA_SIZE;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuMetadata(nvmlDevice_t handle, nvmlVgpuPgpuMetadata_t *metadata,
                                           unsigned int *size)
{
        nvmlVgpuPgpuMetadata_t head = {
                .version = METADATA_VERSION,
                .pgpuVirtualizationCaps = NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION,
                .hostSupportedVgpuRange = { VGPU_VERSION_MIN, VGPU_VERSION_MAX },
                .opaqueDataSize = sizeof(struct opaque),
        };
        struct board_device device;
        nvmlReturn_t r = size ? view_host_device(&device, handle) : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        if (!fits(size, DEVICE_METADATA_SIZE))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        if (!metadata)
                return NVML_ERROR_INVALID_ARGUMENT;

        answer_text(head.hostDriverVersion, sizeof(head.hostDriverVersion), view_driver_name());
        memcpy(metadata, &head, offsetof(nvmlVgpuPgpuMetadata_t, opaqueData));
        write_opaque((char *)metadata + offsetof(nvmlVgpuPgpuMetadata_t, opaqueData), &device, "");
        *size = DEVICE_METADATA_SIZE;
        return NVML_SUCCESS;
}

/* Device, board, and a word of capabilities (ECC, SR-IOV: neither concerns a move of ours). */
nvmlReturn_t our_nvmlDeviceGetPgpuMetadataString(nvmlDevice_t handle, char *text,
                                                 unsigned int *size)
{
        struct board_device device;
        char string[17];
        nvmlReturn_t r = size ? view_host_device(&device, handle) : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        if (!fits(size, sizeof(string)))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        if (!text)
                return NVML_ERROR_INVALID_ARGUMENT;
        snprintf(string, sizeof(string), "%04X%04X%08X", device.pci_device_id >> 16,
                 device.pci_subsystem_id >> 16, 0u);
        *size = sizeof(string);
        return answer_text(text, *size, string);
}

static bool read_opaque(struct opaque *ret_opaque, const char *from, unsigned int size)
{
        if (size != sizeof(*ret_opaque))
                return false;
        memcpy(ret_opaque, from, sizeof(*ret_opaque));
        return ret_opaque->magic == OPAQUE_MAGIC && ret_opaque->version == METADATA_VERSION;
}

/* What stands in the way, or NVML_VGPU_COMPATIBILITY_LIMIT_NONE; the first of several. */
static nvmlVgpuPgpuCompatibilityLimitCode_t find_limit(const nvmlVgpuMetadata_t *vgpu,
                                                       const nvmlVgpuPgpuMetadata_t *pgpu)
{
        const char *vgpu_data = (const char *)vgpu + offsetof(nvmlVgpuMetadata_t, opaqueData);
        const char *pgpu_data = (const char *)pgpu + offsetof(nvmlVgpuPgpuMetadata_t, opaqueData);
        struct opaque from, to;

        if (pgpu->version != METADATA_VERSION ||
            strncmp(vgpu->hostDriverVersion, pgpu->hostDriverVersion,
                    sizeof(pgpu->hostDriverVersion)) != 0)
                return NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER;
        if (vgpu->version != METADATA_VERSION ||
            !read_opaque(&from, vgpu_data, vgpu->opaqueDataSize) ||
            !read_opaque(&to, pgpu_data, pgpu->opaqueDataSize))
                return NVML_VGPU_COMPATIBILITY_LIMIT_OTHER;
        if (vgpu->guestVgpuVersion < pgpu->hostSupportedVgpuRange.minVersion ||
            vgpu->guestVgpuVersion > pgpu->hostSupportedVgpuRange.maxVersion)
                return NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER;
        if (from.pci_device_id != to.pci_device_id || from.pci_subsystem_id != to.pci_subsystem_id)
                return NVML_VGPU_COMPATIBILITY_LIMIT_GPU;
        return NVML_VGPU_COMPATIBILITY_LIMIT_NONE;
}

static bool can_migrate(const nvmlVgpuMetadata_t *vgpu, const nvmlVgpuPgpuMetadata_t *pgpu)
{
        return vgpu->vgpuVirtualizationCaps & pgpu->pgpuVirtualizationCaps &
               NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION;
}

nvmlReturn_t our_nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *vgpu, nvmlVgpuPgpuMetadata_t *pgpu,
                                          nvmlVgpuPgpuCompatibility_t *compatibility)
{
        nvmlVgpuPgpuCompatibilityLimitCode_t limit;
        unsigned int states = NVML_VGPU_VM_COMPATIBILITY_NONE;

        if (!vgpu || !pgpu || !compatibility)
                return NVML_ERROR_INVALID_ARGUMENT;

        limit = find_limit(vgpu, pgpu);
        if (limit == NVML_VGPU_COMPATIBILITY_LIMIT_NONE && can_migrate(vgpu, pgpu)) {
                states = COMPATIBLE_ALWAYS;
        } else if (limit == NVML_VGPU_COMPATIBILITY_LIMIT_NONE) {
                states = NVML_VGPU_VM_COMPATIBILITY_COLD; /* nothing to carry over */
                limit = NVML_VGPU_COMPATIBILITY_LIMIT_OTHER;
        }
        compatibility->vgpuVmCompatibility = (nvmlVgpuVmCompatibility_t)states;
        compatibility->compatibilityLimitCode = limit;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGetVgpuVersion(nvmlVgpuVersion_t *supported, nvmlVgpuVersion_t *current)
{
        if (!supported || !current)
                return NVML_ERROR_INVALID_ARGUMENT;
        *supported = *current = (nvmlVgpuVersion_t){ VGPU_VERSION_MIN, VGPU_VERSION_MAX };
        return NVML_SUCCESS;
}

static bool any_runs(void)
{
        struct board_instance instance;

        for (uint32_t device = 0; device < view_count_devices(); device++)
                for (uint32_t cursor = 0; view_next_instance(&instance, &cursor, device);)
                        return true;
        return false;
}

nvmlReturn_t our_nvmlSetVgpuVersion(nvmlVgpuVersion_t *range)
{
        if (!range || range->minVersion > range->maxVersion ||
            range->minVersion < VGPU_VERSION_MIN || range->maxVersion > VGPU_VERSION_MAX)
                return NVML_ERROR_INVALID_ARGUMENT;
        return any_runs() ? NVML_ERROR_IN_USE : answer_change();
}
