/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/type.h>

#include "base/size.h"
#include "lib/answer.h"

static const char *const capability_names[] = {
        [VGPU_TYPE_NVLINK_P2P] = "nvlink-p2p",
        [VGPU_TYPE_GPUDIRECT] = "gpudirect",
        [VGPU_TYPE_MULTI_VGPU_EXCLUSIVE] = "multi-vgpu-exclusive",
        [VGPU_TYPE_EXCLUSIVE_TYPE] = "exclusive-type",
        [VGPU_TYPE_EXCLUSIVE_SIZE] = "exclusive-size",
};

_Static_assert(sizeof(capability_names) / sizeof(capability_names[0]) == VGPU_TYPE_CAPABILITY_COUNT,
               "each has a name");

const char *vgpu_type_capability_get_name(enum vgpu_type_capability capability)
{
        return HOST_NAME(capability_names, capability);
}

/* Fails or ends in @name_, one of the functions that write an unsigned long long. */
#define GET_BYTES(host_, type_, ret_, name_)                                           \
        __extension__({                                                                \
                unsigned long long bytes_ = 0;                                         \
                int get_ = HOST_CALL(host_, ABOUT_TYPE(type_), name_, type_, &bytes_); \
                                                                                       \
                if (get_ == 0)                                                         \
                        *(ret_) = bytes_;                                              \
                get_;                                                                  \
        })

#define GET_NUMBER(host_, type_, ret_, name_)                                           \
        __extension__({                                                                 \
                unsigned int number_ = 0;                                               \
                int get_ = HOST_CALL(host_, ABOUT_TYPE(type_), name_, type_, &number_); \
                                                                                        \
                if (get_ == 0)                                                          \
                        *(ret_) = number_;                                              \
                get_;                                                                   \
        })

int vgpu_type_get_name(struct vgpu_host *host, uint32_t type, char **ret_name)
{
        CLEANUP(growing_deinit)
        struct growing text = GROWING(char, NVML_VGPU_NAME_BUFFER_SIZE);
        int r;

        r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetName, type, text.items,
                              &text.count);
        while (growing_again(host, &text, &r));
        return r < 0 ? r : answer_text(host, &text, ret_name);
}

int vgpu_type_get_class(struct vgpu_host *host, uint32_t type, char **ret_class)
{
        CLEANUP(growing_deinit)
        struct growing text = GROWING(char, NVML_VGPU_NAME_BUFFER_SIZE);
        int r;

        r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetClass, type, text.items,
                              &text.count);
        while (growing_again(host, &text, &r));
        return r < 0 ? r : answer_text(host, &text, ret_class);
}

int vgpu_type_get_licence(struct vgpu_host *host, uint32_t type, char **ret_licence)
{
        CLEANUP(growing_deinit) struct growing text = GROWING(char, NVML_GRID_LICENSE_BUFFER_SIZE);
        int r;

        r = growing_start(host, &text);
        if (r < 0)
                return r;
        do
                r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetLicense, type, text.items,
                              text.room);
        while (growing_again(host, &text, &r));
        return r < 0 ? r : answer_text(host, &text, ret_licence);
}

int vgpu_type_get_profile_id(struct vgpu_host *host, uint32_t type, uint32_t *ret_profile)
{
        return GET_NUMBER(host, type, ret_profile, nvmlVgpuTypeGetGpuInstanceProfileId);
}

int vgpu_type_get_device_id(struct vgpu_host *host, uint32_t type, uint32_t *ret_device_id,
                            uint32_t *ret_subsystem_id)
{
        unsigned long long device_id = 0, subsystem_id = 0;
        int r;

        r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetDeviceID, type, &device_id,
                      &subsystem_id);
        if (r < 0)
                return r;
        *ret_device_id = (uint32_t)device_id;
        *ret_subsystem_id = (uint32_t)subsystem_id;
        return 0;
}

int vgpu_type_get_frame_buffer(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes)
{
        return GET_BYTES(host, type, ret_bytes, nvmlVgpuTypeGetFramebufferSize);
}

int vgpu_type_get_heads(struct vgpu_host *host, uint32_t type, uint32_t *ret_heads)
{
        return GET_NUMBER(host, type, ret_heads, nvmlVgpuTypeGetNumDisplayHeads);
}

int vgpu_type_get_resolution(struct vgpu_host *host, uint32_t type, uint32_t head,
                             uint32_t *ret_width, uint32_t *ret_height)
{
        unsigned int width = 0, height = 0;
        uint32_t heads;
        int r;

        /* The driver has one code for a wrong type and a wrong head. */
        r = vgpu_type_get_heads(host, type, &heads);
        if (r < 0)
                return r;
        if (head >= heads)
                return host_set_parameter(host, ABOUT_TYPE(type), "head",
                                          "it has %u %s, and no head %u", heads,
                                          heads == 1 ? "head" : "heads", head);
        r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetResolution, type, head, &width,
                      &height);
        if (r < 0)
                return r;
        *ret_width = width;
        *ret_height = height;
        return 0;
}

int vgpu_type_get_frame_rate_limit(struct vgpu_host *host, uint32_t type, uint32_t *ret_fps)
{
        return GET_NUMBER(host, type, ret_fps, nvmlVgpuTypeGetFrameRateLimit);
}

int vgpu_type_get_max_instances(struct vgpu_host *host, uint32_t device, uint32_t type,
                                uint32_t *ret_count)
{
        unsigned int count = 0;
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetMaxInstances, handle, type,
                              &count);
        if (r == 0)
                *ret_count = count;
        return r;
}

int vgpu_type_get_max_instances_per_vm(struct vgpu_host *host, uint32_t type, uint32_t *ret_count)
{
        return GET_NUMBER(host, type, ret_count, nvmlVgpuTypeGetMaxInstancesPerVm);
}

int vgpu_type_get_max_instances_per_gpu_instance(struct vgpu_host *host, uint32_t type,
                                                 uint32_t *ret_count)
{
        nvmlVgpuTypeMaxInstance_v1_t maximum = {
                .version = NVML_VERSION(nvmlVgpuTypeMaxInstance_v1_t, 1), .vgpuTypeId = type
        };
        int r;

        r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetMaxInstancesPerGpuInstance, &maximum);
        if (r == 0)
                *ret_count = maximum.maxInstancePerGI;
        return r;
}

int vgpu_type_get_bar1(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes)
{
        nvmlVgpuTypeBar1Info_v1_t info = { .version = NVML_VERSION(nvmlVgpuTypeBar1Info_v1_t, 1) };
        int r;

        r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetBAR1Info, type, &info);
        if (r == 0)
                *ret_bytes = info.bar1Size * MIB;
        return r;
}

int vgpu_type_get_gsp_heap(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes)
{
        return GET_BYTES(host, type, ret_bytes, nvmlVgpuTypeGetGspHeapSize);
}

int vgpu_type_get_reservation(struct vgpu_host *host, uint32_t type, uint64_t *ret_bytes)
{
        return GET_BYTES(host, type, ret_bytes, nvmlVgpuTypeGetFbReservation);
}

int vgpu_type_get_capability(struct vgpu_host *host, uint32_t type,
                             enum vgpu_type_capability capability, bool *ret_is_there)
{
        unsigned int flag = 0;
        int r;

        if ((unsigned int)capability >= VGPU_TYPE_CAPABILITY_COUNT)
                return host_set_parameter(host, ABOUT_TYPE(type), "capability",
                                          "there is no capability %d", (int)capability);
        r = HOST_CALL(host, ABOUT_TYPE(type), nvmlVgpuTypeGetCapabilities, type,
                      (nvmlVgpuCapability_t)capability, &flag);
        if (r == 0)
                *ret_is_there = flag != 0;
        return r;
}
