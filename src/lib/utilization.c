/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four calls of NVML have four layouts: for vGPUs and for processes, each in the form of R550, which
 * knows JPEG and OFA, and in the form before. One table has all four; one loop serves them.
 */
#include <openvgpu/utilization.h>

#include "lib/answer.h"

#define NAME_ROOM (NVML_VGPU_NAME_BUFFER_SIZE + 1) /* the driver's may lack the NUL */

/* What is asked. */
struct question {
        uint32_t device;
        nvmlDevice_t handle;
        uint64_t since_us;
};

struct source {
        size_t item_size;
        int (*call)(struct vgpu_host *host, const struct question *question,
                    struct growing *growing);
        void (*take)(struct vgpu_utilization *to, char *name, const void *items, size_t i);
};

/* A count of 0 is an error by some texts, 1 without an array by none. */
static unsigned int get_capacity(const struct growing *growing)
{
        return growing->items ? growing->room : 1;
}

static int call_instances(struct vgpu_host *host, const struct question *question,
                          struct growing *growing)
{
        nvmlVgpuInstancesUtilizationInfo_v1_t info = {
                .version = NVML_VERSION(nvmlVgpuInstancesUtilizationInfo_v1_t, 1),
                .vgpuInstanceCount = get_capacity(growing),
                .lastSeenTimeStamp = question->since_us,
                .vgpuUtilArray = growing->items
        };
        int r = HOST_CALL(host, ABOUT_DEVICE(question->device),
                          nvmlDeviceGetVgpuInstancesUtilizationInfo, question->handle, &info);

        growing->count = info.vgpuInstanceCount;
        return r;
}

static void take_instance(struct vgpu_utilization *to, char *name, const void *items, size_t i)
{
        const nvmlVgpuInstanceUtilizationInfo_v1_t *from = items;

        *to = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                         .name = name,
                                         .time_us = from[i].timeStamp,
                                         .sm = from[i].smUtil.uiVal,
                                         .memory = from[i].memUtil.uiVal,
                                         .encoder = from[i].encUtil.uiVal,
                                         .decoder = from[i].decUtil.uiVal,
                                         .jpeg = from[i].jpgUtil.uiVal,
                                         .ofa = from[i].ofaUtil.uiVal };
}

static int call_old_instances(struct vgpu_host *host, const struct question *question,
                              struct growing *growing)
{
        nvmlValueType_t value_type = NVML_VALUE_TYPE_UNSIGNED_INT;

        return HOST_CALL(host, ABOUT_DEVICE(question->device), nvmlDeviceGetVgpuUtilization,
                         question->handle, question->since_us, &value_type, &growing->count,
                         growing->items);
}

static void take_old_instance(struct vgpu_utilization *to, char *name, const void *items, size_t i)
{
        const nvmlVgpuInstanceUtilizationSample_t *from = items;

        *to = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                         .name = name,
                                         .time_us = from[i].timeStamp,
                                         .sm = from[i].smUtil.uiVal,
                                         .memory = from[i].memUtil.uiVal,
                                         .encoder = from[i].encUtil.uiVal,
                                         .decoder = from[i].decUtil.uiVal,
                                         .jpeg = VGPU_UNKNOWN,
                                         .ofa = VGPU_UNKNOWN };
}

static int call_processes(struct vgpu_host *host, const struct question *question,
                          struct growing *growing)
{
        nvmlVgpuProcessesUtilizationInfo_v1_t info = {
                .version = NVML_VERSION(nvmlVgpuProcessesUtilizationInfo_v1_t, 1),
                .vgpuProcessCount = get_capacity(growing),
                .lastSeenTimeStamp = question->since_us,
                .vgpuProcUtilArray = growing->items
        };
        int r = HOST_CALL(host, ABOUT_DEVICE(question->device),
                          nvmlDeviceGetVgpuProcessesUtilizationInfo, question->handle, &info);

        growing->count = info.vgpuProcessCount;
        return r;
}

static void take_process(struct vgpu_utilization *to, char *name, const void *items, size_t i)
{
        const nvmlVgpuProcessUtilizationInfo_v1_t *from = items;

        memcpy(name, from[i].processName, NVML_VGPU_NAME_BUFFER_SIZE);
        *to = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                         .pid = from[i].pid,
                                         .name = name,
                                         .time_us = from[i].timeStamp,
                                         .sm = from[i].smUtil,
                                         .memory = from[i].memUtil,
                                         .encoder = from[i].encUtil,
                                         .decoder = from[i].decUtil,
                                         .jpeg = from[i].jpgUtil,
                                         .ofa = from[i].ofaUtil };
}

static int call_old_processes(struct vgpu_host *host, const struct question *question,
                              struct growing *growing)
{
        return HOST_CALL(host, ABOUT_DEVICE(question->device), nvmlDeviceGetVgpuProcessUtilization,
                         question->handle, question->since_us, &growing->count, growing->items);
}

static void take_old_process(struct vgpu_utilization *to, char *name, const void *items, size_t i)
{
        const nvmlVgpuProcessUtilizationSample_t *from = items;

        memcpy(name, from[i].processName, NVML_VGPU_NAME_BUFFER_SIZE);
        *to = (struct vgpu_utilization){ .instance = from[i].vgpuInstance,
                                         .pid = from[i].pid,
                                         .name = name,
                                         .time_us = from[i].timeStamp,
                                         .sm = from[i].smUtil,
                                         .memory = from[i].memUtil,
                                         .encoder = from[i].encUtil,
                                         .decoder = from[i].decUtil,
                                         .jpeg = VGPU_UNKNOWN,
                                         .ofa = VGPU_UNKNOWN };
}

/* The newer form first. */
static const struct source of_instances[] = {
        { sizeof(nvmlVgpuInstanceUtilizationInfo_v1_t), call_instances, take_instance },
        { sizeof(nvmlVgpuInstanceUtilizationSample_t), call_old_instances, take_old_instance },
};

static const struct source of_processes[] = {
        { sizeof(nvmlVgpuProcessUtilizationInfo_v1_t), call_processes, take_process },
        { sizeof(nvmlVgpuProcessUtilizationSample_t), call_old_processes, take_old_process },
};

static int make_list(struct vgpu_host *host, const struct source *source,
                     const struct question *question, const struct growing *growing,
                     struct vgpu_utilization_list **ret_list)
{
        struct named {
                struct vgpu_utilization value;
                char name[NAME_ROOM];
        } * samples, **pointers;
        struct vgpu_utilization_list *list;

        list = answer_records(host, sizeof(*list), growing->count, sizeof(*samples), &samples,
                              &pointers);
        if (!list)
                return -ENOMEM;
        list->last_us = question->since_us;
        list->n_samples = growing->count;
        list->samples = (const void *)pointers;
        for (size_t i = 0; i < growing->count; i++) {
                source->take(&samples[i].value, samples[i].name, growing->items, i);
                if (samples[i].value.time_us > list->last_us)
                        list->last_us = samples[i].value.time_us;
        }
        *ret_list = list;
        return 0;
}

static int get(struct vgpu_host *host, const struct source *source, const struct question *question,
               struct vgpu_utilization_list **ret_list)
{
        CLEANUP(growing_deinit) struct growing growing = { .item_size = source->item_size };
        int r;

        do
                r = source->call(host, question, &growing);
        while (growing_again(host, &growing, &r));
        if (r < 0 && host->code == NVML_ERROR_NOT_FOUND) { /* the driver's word for nothing new */
                growing.count = 0;
                error_clear(&host->error);
                r = 0;
        }
        return r < 0 ? r : make_list(host, source, question, &growing, ret_list);
}

static int lookup(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                  const struct source *sources, struct vgpu_utilization_list **ret_list)
{
        struct question question = { .device = device, .since_us = since_us };
        int r;

        r = host_device(host, device, &question.handle);
        if (r < 0)
                return r;
        r = get(host, &sources[0], &question, ret_list);
        if (host_lacks(host, r))
                r = get(host, &sources[1], &question, ret_list);
        return r;
}

int vgpu_utilization_lookup_instances(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                                      struct vgpu_utilization_list **ret_list)
{
        return lookup(host, device, since_us, of_instances, ret_list);
}

int vgpu_utilization_lookup_processes(struct vgpu_host *host, uint32_t device, uint64_t since_us,
                                      struct vgpu_utilization_list **ret_list)
{
        return lookup(host, device, since_us, of_processes, ret_list);
}
