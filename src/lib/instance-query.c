/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML knows of an active vGPU; instance.c has what vgpud knows. */
#include <strings.h>

#include <openvgpu/device.h>
#include <openvgpu/instance.h>

#include "lib/answer.h"

/* One of the functions that write an unsigned int, and what it wrote. */
#define GET_NUMBER(host_, instance_, ret_, name_)                                                \
        __extension__({                                                                          \
                unsigned int number_ = 0;                                                        \
                int get_ =                                                                       \
                        HOST_CALL(host_, ABOUT_INSTANCE(instance_), name_, instance_, &number_); \
                                                                                                 \
                if (get_ == 0)                                                                   \
                        *(ret_) = number_;                                                       \
                get_;                                                                            \
        })

/* One of the functions that write a text and are told the room; the text, without junk. */
#define GET_TEXT(host_, instance_, ret_, name_)                                           \
        __extension__({                                                                   \
                CLEANUP(growing_deinit)                                                   \
                struct growing text_ = GROWING(char, NVML_VGPU_TEXT_BUFFER_SIZE);         \
                int get_ = growing_start(host_, &text_);                                  \
                                                                                          \
                if (get_ == 0)                                                            \
                        do                                                                \
                                get_ = HOST_CALL(host_, ABOUT_INSTANCE(instance_), name_, \
                                                 instance_, text_.items, text_.room);     \
                        while (growing_again(host_, &text_, &get_));                      \
                get_ < 0 ? get_ : answer_text(host_, &text_, ret_);                       \
        })

int vgpu_instance_check(struct vgpu_host *host, uint32_t instance)
{
        uint32_t type;

        return vgpu_instance_get_type(host, instance, &type);
}

int vgpu_instance_get_type(struct vgpu_host *host, uint32_t instance, uint32_t *ret_type)
{
        return GET_NUMBER(host, instance, ret_type, nvmlVgpuInstanceGetType);
}

#define NO_DEVICE UINT32_MAX

/*
 * The first active vGPU that @matches says yes to, and the device that it is on; or else a device
 * that could not be asked.
 */
static int search(struct vgpu_host *host,
                  int (*matches)(struct vgpu_host *, uint32_t, const void *), const void *wanted,
                  uint32_t *ret_instance, uint32_t *ret_device)
{
        uint32_t count = 0;
        int r;

        *ret_device = NO_DEVICE;
        r = vgpu_device_count(host, &count);
        for (uint32_t device = 0; r >= 0 && device < count; device++) {
                CLEANUP(freep) struct vgpu_number_list *list = NULL;

                if (vgpu_device_lookup_instances(host, device, VGPU_WHOLE_DEVICE, &list) < 0) {
                        if (host->error.value.kind == VGPU_ERROR_DEVICE_LOST)
                                *ret_device = device;
                        continue; /* one without vGPUs has none */
                }
                for (size_t i = 0; i < list->n_numbers; i++) {
                        if (matches(host, list->numbers[i], wanted) <= 0)
                                continue;
                        *ret_instance = list->numbers[i];
                        *ret_device = device;
                        error_clear(&host->error);
                        return 1;
                }
        }
        return r;
}

static int has_id(struct vgpu_host *host, uint32_t instance, const void *wanted)
{
        (void)host;
        return instance == *(const uint32_t *)wanted;
}

static int has_uuid(struct vgpu_host *host, uint32_t instance, const void *wanted)
{
        CLEANUP(freep) char *uuid = NULL;
        int r = vgpu_instance_get_uuid(host, instance, &uuid);

        return r < 0 ? r : strcasecmp(uuid, wanted) == 0;
}

int vgpu_instance_get_device(struct vgpu_host *host, uint32_t instance, uint32_t *ret_device)
{
        uint32_t found, device;
        int r;

        r = search(host, has_id, &instance, &found, &device);
        if (r < 0)
                return r;
        if (r == 0 && device != NO_DEVICE)
                return host_set_error(host, ABOUT_INSTANCE(instance), VGPU_ERROR_DEVICE_LOST,
                                      "see the kernel's log",
                                      "it may be on device %u, which fell off the bus", device);
        if (r == 0)
                return host_set_error(host, ABOUT_INSTANCE(instance), VGPU_ERROR_NO_SUCH_VGPU,
                                      "'vgpu ls' lists all; a suspended one is not active",
                                      "there is no such active vGPU");
        *ret_device = device;
        return 0;
}

int vgpu_instance_find(struct vgpu_host *host, const char *text, uint32_t *ret_instance)
{
        bool is_id = *text != '\0' && strspn(text, "0123456789") == strlen(text);
        uint32_t found = 0, device;
        int r;

        if (is_id && strlen(text) <= 10 && strtoull(text, NULL, 10) <= UINT32_MAX) {
                found = (uint32_t)strtoull(text, NULL, 10);
                r = vgpu_instance_check(host, found);
                if (r == 0)
                        *ret_instance = found;
                return r;
        }
        r = search(host, has_uuid, text, &found, &device);
        if (r < 0)
                return r;
        if (r == 0)
                return host_set_error(host, ABOUT_HOST, VGPU_ERROR_NO_SUCH_VGPU,
                                      "'vgpu ls' lists all; a suspended one is not active",
                                      "there is no active vGPU '%s'", text);
        *ret_instance = found;
        return 0;
}

int vgpu_instance_get_placement(struct vgpu_host *host, uint32_t instance, uint32_t *ret_placement)
{
        nvmlVgpuPlacementId_v1_t placement = { .version =
                                                       NVML_VERSION(nvmlVgpuPlacementId_v1_t, 1) };
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetPlacementId, instance,
                      &placement);
        if (r < 0)
                return r;
        *ret_placement = placement.placementId == NVML_INVALID_VGPU_PLACEMENT_ID
                                 ? VGPU_UNKNOWN
                                 : placement.placementId;
        return 0;
}

int vgpu_instance_get_gpu_instance(struct vgpu_host *host, uint32_t instance,
                                   uint32_t *ret_gpu_instance)
{
        return GET_NUMBER(host, instance, ret_gpu_instance, nvmlVgpuInstanceGetGpuInstanceId);
}

int vgpu_instance_get_uuid(struct vgpu_host *host, uint32_t instance, char **ret_uuid)
{
        return GET_TEXT(host, instance, ret_uuid, nvmlVgpuInstanceGetUUID);
}

int vgpu_instance_get_mdev_uuid(struct vgpu_host *host, uint32_t instance, char **ret_uuid)
{
        return GET_TEXT(host, instance, ret_uuid, nvmlVgpuInstanceGetMdevUUID);
}

int vgpu_instance_get_vm_driver_version(struct vgpu_host *host, uint32_t instance,
                                        char **ret_version)
{
        char *version = NULL;
        int r = GET_TEXT(host, instance, &version, nvmlVgpuInstanceGetVmDriverVersion);

        if (r < 0)
                return r;
        /* What drivers from R450 on, and before, say when there is none. */
        if (strcmp(version, "Not Available") == 0 || strcmp(version, "Unknown") == 0)
                version[0] = '\0';
        *ret_version = version;
        return 0;
}

int vgpu_instance_lookup_vm(struct vgpu_host *host, uint32_t instance, struct vgpu_vm **ret_vm)
{
        CLEANUP(growing_deinit) struct growing text = GROWING(char, NVML_VGPU_TEXT_BUFFER_SIZE);
        nvmlVgpuVmIdType_t kind = NVML_VGPU_VM_ID_DOMAIN_ID;
        struct vgpu_vm *vm;
        char *id;
        int r;

        r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetVmID, instance,
                              text.items, text.room, &kind);
        while (growing_again(host, &text, &r));
        if (r < 0)
                return r;

        vm = answer_list(host, sizeof(*vm), text.room + 1, sizeof(*id), &id);
        if (!vm)
                return -ENOMEM;
        memcpy(id, text.items, text.room);
        vm->id_kind = (enum vgpu_vm_id_kind)kind;
        vm->id = id;
        *ret_vm = vm;
        return 0;
}

int vgpu_instance_get_pci_bus_id(struct vgpu_host *host, uint32_t instance, char **ret_bus_id)
{
        CLEANUP(growing_deinit)
        struct growing text = GROWING(char, NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE);
        int r;

        r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetGpuPciId, instance,
                              text.items, &text.count);
        while (growing_again(host, &text, &r));
        return r < 0 ? r : answer_text(host, &text, ret_bus_id);
}

int vgpu_instance_get_frame_buffer_used(struct vgpu_host *host, uint32_t instance,
                                        uint64_t *ret_bytes)
{
        unsigned long long bytes = 0;
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetFbUsage, instance, &bytes);
        if (r == 0)
                *ret_bytes = bytes;
        return r;
}

int vgpu_instance_get_runtime_state_size(struct vgpu_host *host, uint32_t instance,
                                         uint64_t *ret_bytes)
{
        nvmlVgpuRuntimeState_v1_t state = { .version = NVML_VERSION(nvmlVgpuRuntimeState_v1_t, 1) };
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetRuntimeStateSize, instance,
                      &state);
        if (r == 0)
                *ret_bytes = state.size;
        return r;
}

int vgpu_instance_get_frame_rate_limit(struct vgpu_host *host, uint32_t instance, uint32_t *ret_fps)
{
        return GET_NUMBER(host, instance, ret_fps, nvmlVgpuInstanceGetFrameRateLimit);
}

int vgpu_instance_get_ecc(struct vgpu_host *host, uint32_t instance, bool *ret_is_on)
{
        nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetEccMode, instance, &mode);
        if (r == 0)
                *ret_is_on = mode == NVML_FEATURE_ENABLED;
        return r;
}

int vgpu_instance_get_encoder_capacity(struct vgpu_host *host, uint32_t instance,
                                       uint32_t *ret_percent)
{
        return GET_NUMBER(host, instance, ret_percent, nvmlVgpuInstanceGetEncoderCapacity);
}

int vgpu_instance_set_encoder_capacity(struct vgpu_host *host, uint32_t instance, uint32_t percent)
{
        error_clear(&host->error);
        /* The driver has one code for a wrong number and a wrong vGPU. */
        if (percent > 100)
                return host_set_parameter(host, ABOUT_INSTANCE(instance), "percent",
                                          "the percentage of the encoder is 0 to 100, not %u",
                                          percent);
        return HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceSetEncoderCapacity,
                         instance, percent);
}
