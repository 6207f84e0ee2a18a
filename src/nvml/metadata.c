/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a vGPU and a device before a migration, and tells whether they fit.
 *
 * The answer depends on the two blobs alone, which may come from other hosts. Each blob
 * therefore has the kind of its device in its opaque part, with a magic number; a blob without
 * it is "other". A vGPU moves while it runs (live) to a device of the same kind whose host has
 * the same driver: the driver's restore accepts nothing else. The answer does not depend on
 * room.
 */
#include <stdio.h>
#include <string.h>

#include "nvml/answer.h"
#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/view.h"
#include "state/kind.h"

#define OPAQUE_MAGIC     0x4d475056u /* "VPGM" */
#define METADATA_VERSION 1

#define COMPATIBLE_ALWAYS                                                         \
        (NVML_VGPU_VM_COMPATIBILITY_COLD | NVML_VGPU_VM_COMPATIBILITY_HIBERNATE | \
         NVML_VGPU_VM_COMPATIBILITY_SLEEP | NVML_VGPU_VM_COMPATIBILITY_LIVE)

/*
 * Of what kind the device is, and of a vGPU what would have to move. As long as what NVIDIA's
 * library was seen to have: clients may count on it.
 */
struct opaque {
        uint32_t magic;
        uint32_t version;
        uint32_t pci_device_id;
        uint32_t pci_subsystem_id;
        uint32_t is_sriov;
        uint32_t ecc; /* 0, 1, or STATE_NONE */
        uint32_t type_id;
        uint32_t reserved;
        uint32_t frame_buffer[2];  /* bytes; low word first, since a blob may lie anywhere */
        uint32_t uses[2];          /* bits of state_vm.uses */
        char uuid[STATE_UUID_MAX]; /* of the vGPU; empty for a device */
        char kind[STATE_TEXT_MAX]; /* equal on two devices between which vGPUs can move */
        char tail[260 - 12 * sizeof(uint32_t) - STATE_UUID_MAX - STATE_TEXT_MAX];
};

_Static_assert(sizeof(struct opaque) == 260, "four bytes are in the declared struct");

#define VGPU_METADATA_SIZE \
        ((unsigned int)(offsetof(nvmlVgpuMetadata_t, opaqueData) + sizeof(struct opaque)))
#define DEVICE_METADATA_SIZE \
        ((unsigned int)(offsetof(nvmlVgpuPgpuMetadata_t, opaqueData) + sizeof(struct opaque)))

static struct opaque describe(const struct state_page *state_page, uint32_t device)
{
        struct opaque opaque = { .magic = OPAQUE_MAGIC, .version = METADATA_VERSION };
        struct state_kind kind;

        if (!state_read_kind(state_page, device, &kind))
                return opaque;
        opaque.pci_device_id = kind.pci_device_id;
        opaque.pci_subsystem_id = kind.pci_subsystem_id;
        opaque.is_sriov = kind.is_sriov;
        opaque.ecc = kind.ecc;
        memcpy(opaque.kind, kind.text, sizeof(opaque.kind));
        return opaque;
}

static void describe_instance(struct opaque *opaque, const struct view_instance *instance)
{
        const struct state_instance *value = &instance->value;
        struct state_vm vm;

        opaque->type_id = value->type_id;
        opaque->frame_buffer[0] = (uint32_t)value->frame_buffer_quota;
        opaque->frame_buffer[1] = (uint32_t)(value->frame_buffer_quota >> 32);
        snprintf(opaque->uuid, sizeof(opaque->uuid), "%s", value->uuid);
        if (state_read_vm(instance->state_page, instance->slot, &vm)) {
                opaque->uses[0] = (uint32_t)vm.uses;
                opaque->uses[1] = (uint32_t)(vm.uses >> 32);
        }
}

/* @size against @needed; true when the caller may go on to write. */
static bool fits(unsigned int *size, unsigned int needed)
{
        bool does = *size >= needed;

        *size = does ? *size : needed;
        return does;
}

static unsigned int get_capability(uint32_t can_migrate)
{
        return can_migrate ? NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION : 0;
}

/* What only the guest's driver knows is unset until it runs. */
static void describe_guest(nvmlVgpuMetadata_t *head, const struct view_instance *instance)
{
        struct state_vm vm;

        if (instance->value.guest_driver != STATE_GUEST_DRIVER_RUNNING)
                return;
        head->guestInfoState = NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED;
        head->vgpuVirtualizationCaps = get_capability(instance->value.can_migrate);
        head->guestVgpuVersion = instance->value.vgpu_version;
        if (state_read_vm(instance->state_page, instance->slot, &vm))
                snprintf(head->guestDriverVersion, sizeof(head->guestDriverVersion), "%.79s",
                         vm.driver_version);
}

nvmlReturn_t our_nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t id, nvmlVgpuMetadata_t *metadata,
                                             unsigned int *size)
{
        nvmlVgpuMetadata_t head = { .version = METADATA_VERSION,
                                    .opaqueDataSize = sizeof(struct opaque) };
        struct view_instance instance;
        struct opaque opaque;
        nvmlReturn_t r;

        if (!size)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!fits(size, VGPU_METADATA_SIZE))
                return NVML_ERROR_INSUFFICIENT_SIZE; /* before the handle */
        r = view_instance(&instance, id, metadata);
        if (r != NVML_SUCCESS)
                return r;

        describe_guest(&head, &instance);
        answer_text(head.hostDriverVersion, sizeof(head.hostDriverVersion), view_driver_name());
        opaque = describe(instance.state_page, instance.value.device);
        describe_instance(&opaque, &instance);
        memcpy(metadata, &head, offsetof(nvmlVgpuMetadata_t, opaqueData));
        memcpy((char *)metadata + offsetof(nvmlVgpuMetadata_t, opaqueData), &opaque,
               sizeof(opaque));
        *size = VGPU_METADATA_SIZE;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuMetadata(nvmlDevice_t handle, nvmlVgpuPgpuMetadata_t *metadata,
                                           unsigned int *size)
{
        nvmlVgpuPgpuMetadata_t head = { .version = METADATA_VERSION,
                                        .opaqueDataSize = sizeof(struct opaque) };
        struct state_host host;
        struct opaque opaque;
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, size);

        if (r != NVML_SUCCESS)
                return r;
        if (!fits(size, DEVICE_METADATA_SIZE))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        if (!metadata)
                return NVML_ERROR_INVALID_ARGUMENT;

        head.pgpuVirtualizationCaps = get_capability(site.device.can_migrate);
        if (state_read_host(site.state_page, 0, &host))
                head.hostSupportedVgpuRange =
                        (nvmlVgpuVersion_t){ host.current_min, host.current_max };
        answer_text(head.hostDriverVersion, sizeof(head.hostDriverVersion), view_driver_name());
        opaque = describe(site.state_page, site.device.index);
        memcpy(metadata, &head, offsetof(nvmlVgpuPgpuMetadata_t, opaqueData));
        memcpy((char *)metadata + offsetof(nvmlVgpuPgpuMetadata_t, opaqueData), &opaque,
               sizeof(opaque));
        *size = DEVICE_METADATA_SIZE;
        return NVML_SUCCESS;
}

/* Made for comparison only. */
nvmlReturn_t our_nvmlDeviceGetPgpuMetadataString(nvmlDevice_t handle, char *text,
                                                 unsigned int *size)
{
        struct state_device_detail detail;
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, size);

        if (r != NVML_SUCCESS)
                return r;
        if (!state_read_device_detail(site.state_page, site.device.index, &detail))
                return NVML_ERROR_NOT_SUPPORTED;
        if (!fits(size, (unsigned int)strlen(detail.metadata_text) + 1))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        if (!text)
                return NVML_ERROR_INVALID_ARGUMENT;
        *size = (unsigned int)strlen(detail.metadata_text) + 1;
        return answer_text(text, *size, detail.metadata_text);
}

static bool read_opaque(struct opaque *ret_opaque, const char *from, unsigned int size)
{
        if (size != sizeof(*ret_opaque))
                return false;
        memcpy(ret_opaque, from, sizeof(*ret_opaque));
        return ret_opaque->magic == OPAQUE_MAGIC && ret_opaque->version == METADATA_VERSION;
}

static struct state_kind get_kind(const struct opaque *opaque)
{
        struct state_kind kind = {
                .pci_device_id = opaque->pci_device_id,
                .pci_subsystem_id = opaque->pci_subsystem_id,
                .is_sriov = opaque->is_sriov,
                .ecc = opaque->ecc,
        };

        memcpy(kind.text, opaque->kind, sizeof(kind.text));
        return kind;
}

static bool is_same_kind(const struct opaque *from, const struct opaque *to)
{
        struct state_kind a = get_kind(from), b = get_kind(to);

        return state_is_same_kind(&a, &b);
}

/* What stands in the way, or NVML_VGPU_COMPATIBILITY_LIMIT_NONE; the first of several. */
static nvmlVgpuPgpuCompatibilityLimitCode_t find_limit(const nvmlVgpuMetadata_t *vgpu,
                                                       const nvmlVgpuPgpuMetadata_t *pgpu)
{
        const char *vgpu_data = (const char *)vgpu + offsetof(nvmlVgpuMetadata_t, opaqueData);
        const char *pgpu_data = (const char *)pgpu + offsetof(nvmlVgpuPgpuMetadata_t, opaqueData);
        struct opaque from, to;

        if (vgpu->version != METADATA_VERSION || pgpu->version != METADATA_VERSION ||
            !read_opaque(&from, vgpu_data, vgpu->opaqueDataSize) ||
            !read_opaque(&to, pgpu_data, pgpu->opaqueDataSize))
                return NVML_VGPU_COMPATIBILITY_LIMIT_OTHER;
        if (strncmp(vgpu->hostDriverVersion, pgpu->hostDriverVersion,
                    sizeof(pgpu->hostDriverVersion)) != 0)
                return NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER;
        if (!is_same_kind(&from, &to))
                return NVML_VGPU_COMPATIBILITY_LIMIT_GPU;
        if (vgpu->guestInfoState == NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED &&
            (vgpu->guestVgpuVersion < pgpu->hostSupportedVgpuRange.minVersion ||
             vgpu->guestVgpuVersion > pgpu->hostSupportedVgpuRange.maxVersion))
                return NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER;
        return NVML_VGPU_COMPATIBILITY_LIMIT_NONE;
}

/* Both can, and the vGPU uses nothing that has to stay. */
static bool can_migrate(const nvmlVgpuMetadata_t *vgpu, const nvmlVgpuPgpuMetadata_t *pgpu)
{
        struct opaque from;

        memcpy(&from, (const char *)vgpu + offsetof(nvmlVgpuMetadata_t, opaqueData), sizeof(from));
        return vgpu->vgpuVirtualizationCaps & pgpu->pgpuVirtualizationCaps &
                       NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION &&
               from.uses[0] == 0 && from.uses[1] == 0;
}

/* Where nothing is in the way, only a start from nothing does without what runs, or without a move. */
nvmlReturn_t our_nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *vgpu, nvmlVgpuPgpuMetadata_t *pgpu,
                                          nvmlVgpuPgpuCompatibility_t *compatibility)
{
        nvmlVgpuPgpuCompatibilityLimitCode_t limit;
        unsigned int states = NVML_VGPU_VM_COMPATIBILITY_NONE;

        if (!vgpu || !pgpu || !compatibility)
                return NVML_ERROR_INVALID_ARGUMENT;

        limit = find_limit(vgpu, pgpu);
        if (limit == NVML_VGPU_COMPATIBILITY_LIMIT_NONE) {
                states = COMPATIBLE_ALWAYS;
                if (vgpu->guestInfoState != NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED)
                        limit = NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER;
                else if (!can_migrate(vgpu, pgpu))
                        limit = NVML_VGPU_COMPATIBILITY_LIMIT_OTHER;
                if (limit != NVML_VGPU_COMPATIBILITY_LIMIT_NONE)
                        states = NVML_VGPU_VM_COMPATIBILITY_COLD;
        }
        compatibility->vgpuVmCompatibility = (nvmlVgpuVmCompatibility_t)states;
        compatibility->compatibilityLimitCode = limit;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGetVgpuVersion(nvmlVgpuVersion_t *supported, nvmlVgpuVersion_t *current)
{
        struct state_host host;

        if (!supported || !current)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (view_is_guest() || !state_read_host(view_state_page(), 0, &host))
                return NVML_ERROR_NOT_SUPPORTED;
        *supported = (nvmlVgpuVersion_t){ host.supported_min, host.supported_max };
        *current = (nvmlVgpuVersion_t){ host.current_min, host.current_max };
        return NVML_SUCCESS;
}
