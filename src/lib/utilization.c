/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of R550, which know JPEG and OFA, and where they are missing, those before. */
#include <openvgpu/utilization.h>

#include "lib/answer.h"

/* The driver's way to say: nothing new. */
static bool is_nothing(const struct vgpu_host *host, int r)
{
        return r < 0 && host->code == NVML_ERROR_NOT_FOUND;
}

static int make_list(struct vgpu_host *host, uint64_t since_us, size_t n,
                     struct vgpu_utilization_list **ret_list, struct vgpu_utilization **ret_samples,
                     char (**ret_names)[NVML_VGPU_NAME_BUFFER_SIZE + 1])
{
        size_t names = n * (NVML_VGPU_NAME_BUFFER_SIZE + 1);
        struct vgpu_utilization_list *list;

        list = answer_list(host, sizeof(*list), n * sizeof(**ret_samples) + names, 1, ret_samples);
        if (!list)
                return -ENOMEM;
        error_clear(&host->error);
        list->last_us = since_us;
        list->n_samples = n;
        list->samples = *ret_samples;
        if (ret_names)
                *ret_names = (char(*)[NVML_VGPU_NAME_BUFFER_SIZE + 1])(*ret_samples + n);
        *ret_list = list;
        return 0;
}

static void note_time(struct vgpu_utilization_list *list, uint64_t time_us)
{
        if (time_us > list->last_us)
                list->last_us = time_us;
}

static int get_instances_new(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                             uint64_t since_us, struct vgpu_utilization_list **ret_list)
{
        CLEANUP(growing_deinit)
        struct growing growing = GROWING(nvmlVgpuInstanceUtilizationInfo_v1_t, 0);
        const nvmlVgpuInstanceUtilizationInfo_v1_t *from;
        struct vgpu_utilization *to;
        int r;

        do {
                /* A count of 0 is an error by some texts, 1 without an array by none. */
                nvmlVgpuInstancesUtilizationInfo_v1_t info = {
                        .version = NVML_VERSION(nvmlVgpuInstancesUtilizationInfo_v1_t, 1),
                        .vgpuInstanceCount = growing.items ? growing.room : 1,
                        .lastSeenTimeStamp = since_us,
                        .vgpuUtilArray = growing.items
                };

                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuInstancesUtilizationInfo,
                              handle, &info);
                growing.count = info.vgpuInstanceCount;
        } while (growing_again(host, &growing, &r));
        if (is_nothing(host, r))
                growing.count = 0;
        else if (r < 0)
                return r;

        r = make_list(host, since_us, growing.count, ret_list, &to, NULL);
        from = growing.items;
        for (unsigned int i = 0; r == 0 && i < growing.count; i++) {
                to[i] = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                                   .name = "",
                                                   .time_us = from[i].timeStamp,
                                                   .sm = from[i].smUtil.uiVal,
                                                   .memory = from[i].memUtil.uiVal,
                                                   .encoder = from[i].encUtil.uiVal,
                                                   .decoder = from[i].decUtil.uiVal,
                                                   .jpeg = from[i].jpgUtil.uiVal,
                                                   .ofa = from[i].ofaUtil.uiVal };
                note_time(*ret_list, to[i].time_us);
        }
        return r;
}

static int get_instances_old(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                             uint64_t since_us, struct vgpu_utilization_list **ret_list)
{
        CLEANUP(growing_deinit)
        struct growing growing = GROWING(nvmlVgpuInstanceUtilizationSample_t, 0);
        nvmlValueType_t value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        const nvmlVgpuInstanceUtilizationSample_t *from;
        struct vgpu_utilization *to;
        int r;

        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuUtilization, handle,
                              since_us, &value_type, &growing.count, growing.items);
        while (growing_again(host, &growing, &r));
        if (is_nothing(host, r))
                growing.count = 0;
        else if (r < 0)
                return r;

        r = make_list(host, since_us, growing.count, ret_list, &to, NULL);
        from = growing.items;
        for (unsigned int i = 0; r == 0 && i < growing.count; i++) {
                to[i] = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                                   .name = "",
                                                   .time_us = from[i].timeStamp,
                                                   .sm = from[i].smUtil.uiVal,
                                                   .memory = from[i].memUtil.uiVal,
                                                   .encoder = from[i].encUtil.uiVal,
                                                   .decoder = from[i].decUtil.uiVal,
                                                   .jpeg = VGPU_UNKNOWN,
                                                   .ofa = VGPU_UNKNOWN };
                note_time(*ret_list, to[i].time_us);
        }
        return r;
}

static int get_processes_new(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                             uint64_t since_us, struct vgpu_utilization_list **ret_list)
{
        CLEANUP(growing_deinit)
        struct growing growing = GROWING(nvmlVgpuProcessUtilizationInfo_v1_t, 0);
        const nvmlVgpuProcessUtilizationInfo_v1_t *from;
        char(*names)[NVML_VGPU_NAME_BUFFER_SIZE + 1];
        struct vgpu_utilization *to;
        int r;

        do {
                nvmlVgpuProcessesUtilizationInfo_v1_t info = {
                        .version = NVML_VERSION(nvmlVgpuProcessesUtilizationInfo_v1_t, 1),
                        .vgpuProcessCount = growing.items ? growing.room : 1,
                        .lastSeenTimeStamp = since_us,
                        .vgpuProcUtilArray = growing.items
                };

                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuProcessesUtilizationInfo,
                              handle, &info);
                growing.count = info.vgpuProcessCount;
        } while (growing_again(host, &growing, &r));
        if (is_nothing(host, r))
                growing.count = 0;
        else if (r < 0)
                return r;

        r = make_list(host, since_us, growing.count, ret_list, &to, &names);
        from = growing.items;
        for (unsigned int i = 0; r == 0 && i < growing.count; i++) {
                memcpy(names[i], from[i].processName, NVML_VGPU_NAME_BUFFER_SIZE);
                to[i] = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                                   .pid = from[i].pid,
                                                   .name = names[i],
                                                   .time_us = from[i].timeStamp,
                                                   .sm = from[i].smUtil,
                                                   .memory = from[i].memUtil,
                                                   .encoder = from[i].encUtil,
                                                   .decoder = from[i].decUtil,
                                                   .jpeg = from[i].jpgUtil,
                                                   .ofa = from[i].ofaUtil };
                note_time(*ret_list, to[i].time_us);
        }
        return r;
}

static int get_processes_old(struct vgpu_host *host, uint32_t device, nvmlDevice_t handle,
                             uint64_t since_us, struct vgpu_utilization_list **ret_list)
{
        CLEANUP(growing_deinit)
        struct growing growing = GROWING(nvmlVgpuProcessUtilizationSample_t, 0);
        const nvmlVgpuProcessUtilizationSample_t *from;
        char(*names)[NVML_VGPU_NAME_BUFFER_SIZE + 1];
        struct vgpu_utilization *to;
        int r;

        do
                r = HOST_CALL(host, ABOUT_DEVICE(device), nvmlDeviceGetVgpuProcessUtilization,
                              handle, since_us, &growing.count, growing.items);
        while (growing_again(host, &growing, &r));
        if (is_nothing(host, r))
                growing.count = 0;
        else if (r < 0)
                return r;

        r = make_list(host, since_us, growing.count, ret_list, &to, &names);
        from = growing.items;
        for (unsigned int i = 0; r == 0 && i < growing.count; i++) {
                memcpy(names[i], from[i].processName, NVML_VGPU_NAME_BUFFER_SIZE);
                to[i] = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                                   .pid = from[i].pid,
                                                   .name = names[i],
                                                   .time_us = from[i].timeStamp,
                                                   .sm = from[i].smUtil,
                                                   .memory = from[i].memUtil,
                                                   .encoder = from[i].encUtil,
                                                   .decoder = from[i].decUtil,
                                                   .jpeg = VGPU_UNKNOWN,
                                                   .ofa = VGPU_UNKNOWN };
                note_time(*ret_list, to[i].time_us);
        }
        return r;
}

int vgpu_utilization_lookup_instances(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                                      struct vgpu_utilization_list **ret_list)
{
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = get_instances_new(host, device, handle, since_us, ret_list);
        if (host_lacks(host, r))
                r = get_instances_old(host, device, handle, since_us, ret_list);
        return r;
}

int vgpu_utilization_lookup_processes(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                                      struct vgpu_utilization_list **ret_list)
{
        nvmlDevice_t handle;
        int r;

        r = host_device(host, device, &handle);
        if (r == 0)
                r = get_processes_new(host, device, handle, since_us, ret_list);
        if (host_lacks(host, r))
                r = get_processes_old(host, device, handle, since_us, ret_list);
        return r;
}
