/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver reads metadata without a length: it uses the length inside the bytes. So this length
 * is compared with the real one, and the driver gets a copy with zeros behind it.
 */
#include <openvgpu/metadata.h>

#include "lib/answer.h"

#define PADDING 4096

#define INSTANCE_HEAD offsetof(nvmlVgpuMetadata_t, opaqueData)
#define DEVICE_HEAD   offsetof(nvmlVgpuPgpuMetadata_t, opaqueData)

/* Room for the texts of both kinds, with a NUL that the bytes may lack. */
struct texts {
        char host_driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE + 1];
        char guest_driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE + 1];
};

static void decode_instance(struct vgpu_metadata *metadata, struct texts *texts,
                            const nvmlVgpuMetadata_t *head)
{
        metadata->version = head->version;
        metadata->revision = head->revision;
        memcpy(texts->host_driver, head->hostDriverVersion, sizeof(head->hostDriverVersion));
        metadata->can_migrate =
                head->vgpuVirtualizationCaps & NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION;
        metadata->is_guest_known =
                head->guestInfoState == NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED;
        if (!metadata->is_guest_known)
                return;
        memcpy(texts->guest_driver, head->guestDriverVersion, sizeof(head->guestDriverVersion));
        metadata->guest_version = head->guestVgpuVersion;
}

static void decode_device(struct vgpu_metadata *metadata, struct texts *texts,
                          const nvmlVgpuPgpuMetadata_t *head)
{
        metadata->version = head->version;
        metadata->revision = head->revision;
        memcpy(texts->host_driver, head->hostDriverVersion, sizeof(head->hostDriverVersion));
        metadata->can_migrate =
                head->pgpuVirtualizationCaps & NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION;
        metadata->version_minimum = head->hostSupportedVgpuRange.minVersion;
        metadata->version_maximum = head->hostSupportedVgpuRange.maxVersion;
}

/* The length that @bytes claim; 0: they are too short to claim anything. */
static size_t get_claimed_size(enum vgpu_metadata_kind kind, const char *bytes, size_t size)
{
        nvmlVgpuPgpuMetadata_t device = { .version = 0 };
        nvmlVgpuMetadata_t instance = { .version = 0 };

        if (kind == VGPU_METADATA_INSTANCE && size >= INSTANCE_HEAD) {
                memcpy(&instance, bytes, INSTANCE_HEAD);
                return INSTANCE_HEAD + instance.opaqueDataSize;
        }
        if (kind == VGPU_METADATA_DEVICE && size >= DEVICE_HEAD) {
                memcpy(&device, bytes, DEVICE_HEAD);
                return DEVICE_HEAD + device.opaqueDataSize;
        }
        return 0;
}

static int decode(struct vgpu_host *host, enum vgpu_metadata_kind kind, const void *bytes,
                  size_t size, struct vgpu_metadata **ret_metadata)
{
        struct vgpu_metadata *metadata;
        struct texts *texts;
        union {
                nvmlVgpuMetadata_t instance;
                nvmlVgpuPgpuMetadata_t device;
        } head = { .instance = { .version = 0 } };

        metadata = answer_list(host, sizeof(*metadata), sizeof(*texts) + size, 1, &texts);
        if (!metadata)
                return -ENOMEM;
        memcpy(texts + 1, bytes, size);
        metadata->kind = kind;
        metadata->size = size;
        metadata->bytes = texts + 1;
        metadata->host_driver_version = texts->host_driver;
        metadata->guest_driver_version = texts->guest_driver;
        memcpy(&head, bytes, kind == VGPU_METADATA_INSTANCE ? INSTANCE_HEAD : DEVICE_HEAD);
        if (kind == VGPU_METADATA_INSTANCE)
                decode_instance(metadata, texts, &head.instance);
        else
                decode_device(metadata, texts, &head.device);
        *ret_metadata = metadata;
        return 0;
}

/* What the driver wrote, without the room that was left behind it. */
static int take(struct vgpu_host *host, enum vgpu_metadata_kind kind, const struct growing *growing,
                struct vgpu_metadata **ret_metadata)
{
        size_t size = get_claimed_size(kind, growing->items, growing->count);
        int r = answer_expect(host, size > 0 && size <= growing->count, "metadata");

        return r < 0 ? r : decode(host, kind, growing->items, size, ret_metadata);
}

int vgpu_metadata_lookup_instance(struct vgpu_host *host, uint32_t instance,
                                  struct vgpu_metadata **ret_metadata)
{
        CLEANUP(growing_deinit) struct growing bytes = GROWING(char, 0);
        int r;

        do
                r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetMetadata, instance,
                              bytes.items, &bytes.count);
        while (growing_again(host, &bytes, &r));
        return r < 0 ? r : take(host, VGPU_METADATA_INSTANCE, &bytes, ret_metadata);
}

int vgpu_metadata_lookup_device(struct vgpu_host *host, uint32_t device,
                                struct vgpu_metadata **ret_metadata)
{
        CLEANUP(growing_deinit) struct growing bytes = GROWING(char, 0);
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuMetadata, handle,
                              bytes.items, &bytes.count);
        while (growing_again(host, &bytes, &r));
        return r < 0 ? r : take(host, VGPU_METADATA_DEVICE, &bytes, ret_metadata);
}

int vgpu_metadata_new(struct vgpu_host *host, enum vgpu_metadata_kind kind, const void *bytes,
                      size_t size, struct vgpu_metadata **ret_metadata)
{
        size_t claimed = get_claimed_size(kind, bytes, size);

        error_clear(&host->error);
        if (claimed == 0 || claimed > size)
                return host_set_error(host, ABOUT_HOST, VGPU_ERROR_INVALID_PARAMETER,
                                      "export it anew",
                                      "these %zu bytes are no metadata of a %s: %s", size,
                                      kind == VGPU_METADATA_DEVICE ? "device" : "vGPU",
                                      claimed == 0 ? "they are too short" : "the end is missing");
        return decode(host, kind, bytes, claimed, ret_metadata);
}

static uint32_t get_limits(uint32_t code)
{
        uint32_t known = NVML_VGPU_COMPATIBILITY_LIMIT_HOST_DRIVER |
                         NVML_VGPU_COMPATIBILITY_LIMIT_GUEST_DRIVER |
                         NVML_VGPU_COMPATIBILITY_LIMIT_GPU;

        return (code & known) | (code & ~known ? (uint32_t)VGPU_LIMIT_OTHER : 0);
}

int vgpu_metadata_check(struct vgpu_host *host, const struct vgpu_metadata *instance,
                        const struct vgpu_metadata *device,
                        struct vgpu_compatibility **ret_compatibility)
{
        CLEANUP(freep) nvmlVgpuMetadata_t *from = calloc(1, instance->size + PADDING);
        CLEANUP(freep) nvmlVgpuPgpuMetadata_t *to = calloc(1, device->size + PADDING);
        nvmlVgpuPgpuCompatibility_t answer = { .vgpuVmCompatibility =
                                                       NVML_VGPU_VM_COMPATIBILITY_NONE };
        struct vgpu_compatibility *compatibility;
        int r;

        error_clear(&host->error);
        if (!from || !to)
                return host_set_no_memory(host);
        if (instance->kind != VGPU_METADATA_INSTANCE || device->kind != VGPU_METADATA_DEVICE)
                return host_set_error(host, ABOUT_HOST, VGPU_ERROR_INVALID_PARAMETER,
                                      "the vGPU's first, then the device's",
                                      "metadata of a vGPU and of a device are needed");
        memcpy(from, instance->bytes, instance->size);
        memcpy(to, device->bytes, device->size);
        r = HOST_CALL(host, ABOUT_HOST, nvmlGetVgpuCompatibility, from, to, &answer);
        if (r < 0)
                return r;
        compatibility = malloc(sizeof(*compatibility));
        if (!compatibility)
                return host_set_no_memory(host);
        compatibility->power_states = (uint32_t)answer.vgpuVmCompatibility;
        compatibility->limits = get_limits((uint32_t)answer.compatibilityLimitCode);
        *ret_compatibility = compatibility;
        return 0;
}

int vgpu_metadata_get_device_text(struct vgpu_host *host, uint32_t device, char **ret_text)
{
        CLEANUP(growing_deinit) struct growing text = GROWING(char, 0);
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetPgpuMetadataString, handle,
                              text.items, &text.count);
        while (growing_again(host, &text, &r));
        if (r == 0)
                r = answer_expect(host, text.items, "text");
        return r < 0 ? r : answer_text(host, &text, ret_text);
}
