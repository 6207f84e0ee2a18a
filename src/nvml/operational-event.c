/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU operational events (R615), where NVIDIA's library is not in use: records of what a scenario has happen to a
 * device. Each is alone in its group. The XID that belongs to it is its only context, in the layout that NVIDIA
 * publishes of CPER records: the number, then room for a message.
 */
#include <string.h>
#include <unistd.h>

#include "nvml/event.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* What the source calls the context of an XID. */
#define SOURCE_LEGACY_XID 0x8001u

struct legacy_xid {
        uint32_t code;
        char message[236];
};

static bool is_log_level(unsigned int value)
{
        return value % 10 == 0 && value <= NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_ERROR;
}

static bool is_severity(unsigned int value)
{
        return value % 10 == 0 && value <= NVML_OPERATIONAL_EVENT_SEVERITY_FATAL;
}

static nvmlReturn_t find_device(struct state_device *ret_device, const char *uuid)
{
        size_t n = strnlen(uuid, NVML_DEVICE_UUID_V2_BUFFER_SIZE);

        if (n == NVML_DEVICE_UUID_V2_BUFFER_SIZE)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (strncmp(uuid, "MIG-", 4) == 0)
                return NVML_ERROR_NOT_SUPPORTED;
        for (uint32_t i = 0; view_device_at(ret_device, i); i++)
                if (strncmp(ret_device->uuid, uuid, sizeof(ret_device->uuid)) == 0)
                        return ret_device->is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
        return NVML_ERROR_INVALID_ARGUMENT;
}

/* The same subscription twice is one. */
static nvmlReturn_t add_filter(struct event_interest *interest, uint32_t device,
                               struct event_filter filter)
{
        for (uint32_t i = 0; i < interest->n_filters; i++)
                if (interest->filters[i].log_level == filter.log_level &&
                    interest->filters[i].severity == filter.severity)
                        return NVML_SUCCESS;
        if (interest->n_filters == EVENT_FILTERS_MAX)
                return NVML_ERROR_INSUFFICIENT_RESOURCES;
        event_begin(interest, device);
        interest->filters[interest->n_filters++] = filter;
        return NVML_SUCCESS;
}

/* The driver gives these events to root only (CAP_SYS_ADMIN). */
nvmlReturn_t
our_nvmlEventSetRegisterGpuOperationalEvents_v1(nvmlEventSet_t handle,
                                                const nvmlGpuOperationalEventConfig_v1_t *config)
{
        struct state_device device;
        struct event_set *set;
        nvmlReturn_t r;

        if (view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        set = event_lock(handle);
        if (!set || !config || !is_log_level(config->minLogLevel) ||
            !is_severity(config->minSeverity))
                r = NVML_ERROR_INVALID_ARGUMENT;
        else
                r = find_device(&device, config->uuid);
        if (r == NVML_SUCCESS && geteuid() != 0)
                r = NVML_ERROR_NO_PERMISSION;
        if (r == NVML_SUCCESS)
                r = add_filter(&set->of[device.index][EVENT_OPERATIONAL], device.index,
                               (struct event_filter){ config->minLogLevel, config->minSeverity });
        event_unlock();
        return r;
}

static void tell_operational(nvmlEventSetWait_v3_t *data, const struct event_told *told)
{
        const struct state_operational *operational = &told->event.operational;

        data->dataType = NVML_EVENT_DATA_TYPE_GPU_OPERATIONAL_EVENT;
        memcpy(data->sourceModule, operational->module, sizeof(data->sourceModule));
        data->groupCursor = data->instanceId = data->traceId = told->number + 1;
        data->severity = operational->severity;
        data->categoryId = operational->category;
        data->moduleEventCode = operational->code;
        data->logLevel = operational->log_level;
        data->attributes = NVML_OPERATIONAL_EVENT_ATTR_PRIMARY;
        data->groupAttributes = NVML_OPERATIONAL_EVENT_GROUP_ATTR_SIMULATED;
        data->groupSize = 1;
}

nvmlReturn_t our_nvmlEventSetWait_v3(nvmlEventSet_t handle, nvmlEventSetWait_v3_t *data)
{
        struct state_device device = { 0 };
        struct event_told told;
        nvmlReturn_t r;

        if (!data)
                return NVML_ERROR_INVALID_ARGUMENT;
        r = event_wait(handle, EVENT_OPERATIONAL, data->timeoutMs, &told);
        if (r != NVML_SUCCESS)
                return r;
        *data = (nvmlEventSetWait_v3_t){ .timeoutMs = data->timeoutMs,
                                         .timestampUsec = told.event.timestamp_us,
                                         .gpuInstanceId = NVML_GPU_INSTANCE_ID_ANY,
                                         .computeInstanceId = NVML_COMPUTE_INSTANCE_ID_ANY };
        if (state_read_device(view_state_page(), told.device, &device))
                memcpy(data->uuid, device.uuid, strnlen(device.uuid, sizeof(device.uuid) - 1));
        if (told.event.kind == 0) {
                tell_operational(data, &told);
        } else {
                data->eventType = told.event.kind;
                data->eventData = told.event.data;
        }
        return NVML_SUCCESS;
}

/* The event that was told last; NOT_FOUND: none was told. Its XID is 0 if it has no context. */
static nvmlReturn_t get_last(struct legacy_xid *ret_xid, nvmlEventSet_t handle, const void *answer)
{
        const struct event_set *set = event_lock(handle);
        nvmlReturn_t r = NVML_SUCCESS;

        if (!set || !answer)
                r = NVML_ERROR_INVALID_ARGUMENT;
        else if (!set->has_last)
                r = NVML_ERROR_NOT_FOUND;
        else
                *ret_xid = (struct legacy_xid){
                        .code = set->last.kind == 0 ? (uint32_t)set->last.data : 0,
                };
        event_unlock();
        return r;
}

static nvmlReturn_t get_context(struct legacy_xid *ret_xid, nvmlEventSet_t handle,
                                const unsigned int *index)
{
        nvmlReturn_t r = get_last(ret_xid, handle, index);

        return r == NVML_SUCCESS && (ret_xid->code == 0 || *index > 0) ? NVML_ERROR_INVALID_ARGUMENT
                                                                       : r;
}

nvmlReturn_t our_nvmlEventSetGetContextCount_v1(nvmlEventSet_t set,
                                                nvmlEventSetGetContextCount_v1_t *count)
{
        struct legacy_xid xid;
        nvmlReturn_t r = get_last(&xid, set, count);

        if (r == NVML_SUCCESS)
                count->count = xid.code != 0;
        return r;
}

nvmlReturn_t our_nvmlEventSetGetContextInfo_v1(nvmlEventSet_t set,
                                               nvmlEventSetGetContextInfo_v1_t *info)
{
        struct legacy_xid xid;
        nvmlReturn_t r = get_context(&xid, set, info ? &info->index : NULL);

        if (r == NVML_SUCCESS)
                *info = (nvmlEventSetGetContextInfo_v1_t){
                        .index = info->index,
                        .nvmlGpuOperationalEventContextType =
                                NVML_GPU_OPERATIONAL_EVENT_CONTEXT_TYPE_LEGACY_XID,
                        .sourceEventContextType = SOURCE_LEGACY_XID,
                        .dataSize = sizeof(xid),
                };
        return r;
}

nvmlReturn_t our_nvmlEventSetGetContextData_v1(nvmlEventSet_t set,
                                               nvmlEventSetGetContextData_v1_t *data)
{
        struct legacy_xid xid;
        nvmlReturn_t r = get_context(&xid, set, data ? &data->index : NULL);
        bool fits;

        if (r != NVML_SUCCESS)
                return r;
        fits = data->data && data->dataSize >= sizeof(xid);
        data->dataSize = sizeof(xid);
        if (!fits)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        memcpy(data->data, &xid, sizeof(xid));
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(
        nvmlEventSet_t set, nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t *xid)
{
        struct legacy_xid context;
        nvmlReturn_t r = get_context(&context, set, xid ? &xid->index : NULL);

        if (r == NVML_SUCCESS)
                xid->xidCode = context.code;
        return r;
}
