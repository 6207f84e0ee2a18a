/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a vGPU and a device before a migration, and tells whether they fit.
 *
 * The answer depends on the two blobs alone, which may come from other hosts. Each blob
 * therefore has in its opaque part, with a magic number, what state/kind.h compares; a blob
 * without it is "other". A vGPU moves while it runs (live) to a device of the same kind that can
 * host it and whose host has the same driver: the driver's restore accepts nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "nvml/answer.h"
#include "nvml/site.h"
#include "nvml/slots.h"
#include "nvml/view.h"
#include "state/kind.h"

#define OPAQUE_MAGIC     0x4d475056u /* "VPGM" */
#define OPAQUE_VERSION   2
#define METADATA_VERSION 1 /* of the declared structs */

#define COMPATIBLE_ALWAYS                                                         \
        (NVML_VGPU_VM_COMPATIBILITY_COLD | NVML_VGPU_VM_COMPATIBILITY_HIBERNATE | \
         NVML_VGPU_VM_COMPATIBILITY_SLEEP | NVML_VGPU_VM_COMPATIBILITY_LIVE)

/*
 * Of what kind the device is; of a vGPU also what it asks for and what would have to move, and of a device
 * what it can host. Words of 32 bits, low word first, since a blob may lie anywhere. As long as what
 * NVIDIA's library was seen to have, because clients may count on it; longer only for a device that hosts
 * more types than fit.
 */
#define OPAQUE_SIZE 260

struct opaque {
        uint32_t magic;
        uint32_t version;
        uint32_t pci_device_id;
        uint32_t pci_subsystem_id;
        uint32_t is_sriov;
        uint32_t ecc;              /* 0, 1, or STATE_NONE */
        char kind[STATE_TEXT_MAX]; /* equal on two devices between which vGPUs can move */
        union {
                struct {
                        uint32_t type_id; /* that it was made with; 0: the type follows the quota */
                        uint32_t quota[2];         /* bytes */
                        uint32_t uses[2];          /* bits of state_vm.uses */
                        char uuid[STATE_UUID_MAX]; /* of the vGPU */
                } vgpu;
                struct {
                        uint32_t memory_total[2]; /* bytes */
                        uint32_t n_types;
                        uint32_t type_id[STATE_OFFERS_MAX]; /* as many as there are */
                } device;
        };
};

_Static_assert(offsetof(struct opaque, vgpu.uuid) + STATE_UUID_MAX <= OPAQUE_SIZE, "it fits");

#define VGPU_METADATA_SIZE ((unsigned int)(offsetof(nvmlVgpuMetadata_t, opaqueData) + OPAQUE_SIZE))

static void put_wide(uint32_t *words, uint64_t value)
{
        words[0] = (uint32_t)value;
        words[1] = (uint32_t)(value >> 32);
}

static uint64_t get_wide(const uint32_t *words)
{
        return words[0] | (uint64_t)words[1] << 32;
}

static struct opaque describe_kind(const struct state_kind *kind)
{
        struct opaque opaque = {
                .magic = OPAQUE_MAGIC,
                .version = OPAQUE_VERSION,
                .pci_device_id = kind->pci_device_id,
                .pci_subsystem_id = kind->pci_subsystem_id,
                .is_sriov = kind->is_sriov,
                .ecc = kind->ecc,
        };

        memcpy(opaque.kind, kind->text, sizeof(opaque.kind));
        return opaque;
}

static struct opaque describe_instance(const struct view_instance *instance)
{
        struct state_claim claim = { 0 };
        struct opaque opaque;
        struct state_vm vm;

        (void)state_read_claim(instance->state_page, &instance->value, &claim);
        opaque = describe_kind(&claim.kind);
        opaque.vgpu.type_id = claim.type_id;
        put_wide(opaque.vgpu.quota, claim.quota);
        memcpy(opaque.vgpu.uuid, instance->value.uuid, sizeof(opaque.vgpu.uuid));
        if (state_read_vm(instance->state_page, instance->slot, &vm))
                put_wide(opaque.vgpu.uses, vm.uses);
        return opaque;
}

static struct opaque describe_device(const struct site *site)
{
        struct state_target target;
        struct opaque opaque;

        (void)state_read_target(site->state_page, site->device.index, &target);
        opaque = describe_kind(&target.kind);
        put_wide(opaque.device.memory_total, target.memory_total);
        opaque.device.n_types = target.n_types;
        memcpy(opaque.device.type_id, target.type_id, target.n_types * sizeof(target.type_id[0]));
        return opaque;
}

/* The bytes of a device's blob; 0: @n_types is more than any device has. */
static unsigned int get_device_size(uint32_t n_types)
{
        unsigned int size =
                (unsigned int)(offsetof(struct opaque, device.type_id) +
                               (n_types <= STATE_OFFERS_MAX ? n_types : 0) * sizeof(uint32_t));

        if (n_types > STATE_OFFERS_MAX)
                return 0;
        return size > OPAQUE_SIZE ? size : OPAQUE_SIZE;
}

/* A caller that asks for the size alone passes no buffer and a size of 0; any other has a buffer. */
static bool can_answer(const void *buffer, const unsigned int *size)
{
        return buffer || *size == 0;
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
        nvmlVgpuMetadata_t head = { .version = METADATA_VERSION, .opaqueDataSize = OPAQUE_SIZE };
        struct view_instance instance;
        struct opaque opaque;
        nvmlReturn_t r;

        if (!size || !can_answer(metadata, size))
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!fits(size, VGPU_METADATA_SIZE))
                return NVML_ERROR_INSUFFICIENT_SIZE; /* before the handle */
        r = view_instance(&instance, id, metadata);
        if (r != NVML_SUCCESS)
                return r;

        describe_guest(&head, &instance);
        answer_text(head.hostDriverVersion, sizeof(head.hostDriverVersion), view_driver_name());
        opaque = describe_instance(&instance);
        memcpy(metadata, &head, offsetof(nvmlVgpuMetadata_t, opaqueData));
        memcpy((char *)metadata + offsetof(nvmlVgpuMetadata_t, opaqueData), &opaque, OPAQUE_SIZE);
        *size = VGPU_METADATA_SIZE;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetVgpuMetadata(nvmlDevice_t handle, nvmlVgpuPgpuMetadata_t *metadata,
                                           unsigned int *size)
{
        const size_t head_size = offsetof(nvmlVgpuPgpuMetadata_t, opaqueData);
        nvmlVgpuPgpuMetadata_t head = { .version = METADATA_VERSION };
        struct state_host host;
        struct opaque opaque;
        struct site site;
        nvmlReturn_t r = site_of_device(&site, handle, size);

        if (r != NVML_SUCCESS)
                return r;
        if (!can_answer(metadata, size))
                return NVML_ERROR_INVALID_ARGUMENT;
        opaque = describe_device(&site);
        head.opaqueDataSize = get_device_size(opaque.device.n_types);
        if (!fits(size, (unsigned int)head_size + head.opaqueDataSize))
                return NVML_ERROR_INSUFFICIENT_SIZE;

        head.pgpuVirtualizationCaps = get_capability(site.device.can_migrate);
        if (state_read_host(site.state_page, 0, &host))
                head.hostSupportedVgpuRange =
                        (nvmlVgpuVersion_t){ host.current_min, host.current_max };
        answer_text(head.hostDriverVersion, sizeof(head.hostDriverVersion), view_driver_name());
        memcpy(metadata, &head, head_size);
        memcpy((char *)metadata + head_size, &opaque, head.opaqueDataSize);
        *size = (unsigned int)head_size + head.opaqueDataSize;
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
        if (!can_answer(text, size))
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!state_read_device_detail(site.state_page, site.device.index, &detail))
                return NVML_ERROR_NOT_SUPPORTED;
        if (!fits(size, (unsigned int)strlen(detail.metadata_text) + 1))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        *size = (unsigned int)strlen(detail.metadata_text) + 1;
        return answer_text(text, *size, detail.metadata_text);
}

static bool read_opaque(struct opaque *ret_opaque, const char *from, unsigned int size)
{
        *ret_opaque = (struct opaque){ 0 };
        if (size < OPAQUE_SIZE || size > sizeof(*ret_opaque))
                return false;
        memcpy(ret_opaque, from, size);
        return ret_opaque->magic == OPAQUE_MAGIC && ret_opaque->version == OPAQUE_VERSION;
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

static bool read_claim(struct state_claim *ret_claim, struct opaque *ret_opaque,
                       const nvmlVgpuMetadata_t *metadata)
{
        const char *data = (const char *)metadata + offsetof(nvmlVgpuMetadata_t, opaqueData);

        if (metadata->version != METADATA_VERSION || metadata->opaqueDataSize != OPAQUE_SIZE ||
            !read_opaque(ret_opaque, data, metadata->opaqueDataSize))
                return false;
        *ret_claim = (struct state_claim){ .kind = get_kind(ret_opaque),
                                           .type_id = ret_opaque->vgpu.type_id,
                                           .quota = get_wide(ret_opaque->vgpu.quota) };
        return true;
}

static bool read_target(struct state_target *ret_target, const nvmlVgpuPgpuMetadata_t *metadata)
{
        const char *data = (const char *)metadata + offsetof(nvmlVgpuPgpuMetadata_t, opaqueData);
        struct opaque opaque;

        if (metadata->version != METADATA_VERSION ||
            !read_opaque(&opaque, data, metadata->opaqueDataSize) ||
            get_device_size(opaque.device.n_types) != metadata->opaqueDataSize)
                return false;
        *ret_target = (struct state_target){ .kind = get_kind(&opaque),
                                             .memory_total = get_wide(opaque.device.memory_total),
                                             .n_types = opaque.device.n_types };
        memcpy(ret_target->type_id, opaque.device.type_id, sizeof(ret_target->type_id));
        return true;
}

/* What stands in the way, or NVML_VGPU_COMPATIBILITY_LIMIT_NONE; the first of several. */
static nvmlVgpuPgpuCompatibilityLimitCode_t find_limit(const nvmlVgpuMetadata_t *vgpu,
                                                       const nvmlVgpuPgpuMetadata_t *pgpu)
{
        struct state_target target;
        struct state_claim claim;
        struct opaque opaque;

        if (!read_claim(&claim, &opaque, vgpu) || !read_target(&target, pgpu))
                return NVML_VGPU_COMPATIBILITY_LIMIT_OTHER;
        if (strncmp(vgpu->hostDriverVersion, pgpu->hostDriverVersion,
                    sizeof(pgpu->hostDriverVersion)) != 0)
                return NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER;
        if (state_find_misfit(&claim, &target) != STATE_FITS)
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
        struct state_claim claim;
        struct opaque opaque;

        return vgpu->vgpuVirtualizationCaps & pgpu->pgpuVirtualizationCaps &
                       NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION &&
               read_claim(&claim, &opaque, vgpu) && get_wide(opaque.vgpu.uses) == 0;
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
