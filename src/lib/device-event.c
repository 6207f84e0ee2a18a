/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include <openvgpu/device-event.h>
#include <openvgpu/device.h>

#include "abi/nvml-device.h"
#include "lib/host.h"

_Static_assert(VGPU_DEVICE_EVENT_XID == NVML_EVENT_TYPE_XID_CRITICAL_ERROR &&
                       VGPU_DEVICE_EVENT_CLOCK == NVML_EVENT_TYPE_CLOCK,
               "our numbers are NVML's");

struct vgpu_device_watch {
        struct vgpu_host *host;
        nvmlEventSet_t set;
        uint32_t n_devices;
        nvmlDevice_t devices[]; /* NULL: not watched */
};

DEFINE_CLEANUP(struct vgpu_device_watch *, vgpu_device_watch_free);

/* A device that cannot be watched is left out: it is lost, or tells nothing. */
static bool add_device(struct vgpu_device_watch *watch, uint32_t device, uint32_t kinds)
{
        struct about about = ABOUT_DEVICE(device);
        unsigned long long supported = 0;
        nvmlDevice_t handle;

        if (host_device(watch->host, device, &handle) < 0 ||
            HOST_CALL(watch->host, about, nvmlDeviceGetSupportedEventTypes, handle, &supported) < 0)
                return false;
        if (!(supported & kinds) || HOST_CALL(watch->host, about, nvmlDeviceRegisterEvents, handle,
                                              supported & kinds, watch->set) < 0)
                return false;
        watch->devices[device] = handle;
        return true;
}

int vgpu_device_watch_new(struct vgpu_device_watch **ret_watch, struct vgpu_host *host,
                          uint32_t kinds)
{
        CLEANUP(vgpu_device_watch_freep) struct vgpu_device_watch *watch = NULL;
        uint32_t n_devices, n_watched = 0;
        int r = vgpu_device_count(host, &n_devices);

        if (r < 0)
                return r;
        watch = calloc(1, sizeof(*watch) + n_devices * sizeof(nvmlDevice_t));
        if (!watch)
                return host_set_no_memory(host);
        watch->host = host;
        watch->n_devices = n_devices;
        r = HOST_CALL(host, ABOUT_HOST, nvmlEventSetCreate, &watch->set);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n_devices; i++)
                n_watched += add_device(watch, i, kinds);
        if (n_watched == 0)
                return host_set_error(host, ABOUT_HOST, VGPU_ERROR_NOT_SUPPORTED, "",
                                      "no device tells such events");
        error_clear(&host->error);
        *ret_watch = TAKE(watch);
        return 0;
}

struct vgpu_device_watch *vgpu_device_watch_free(struct vgpu_device_watch *watch)
{
        if (!watch)
                return NULL;
        if (watch->set && watch->host->calls.nvmlEventSetFree) /* keeps the host's last error */
                watch->host->calls.nvmlEventSetFree(watch->set);
        free(watch);
        return NULL;
}

/* The older call knows no MIG, which nobody asks of it here. */
static int wait_for(struct vgpu_device_watch *watch, uint32_t timeout_ms, nvmlEventData_t *data)
{
        struct vgpu_host *host = watch->host;
        nvmlEventData_v1_t old = { .device = NULL };
        int r = HOST_CALL(host, ABOUT_HOST, nvmlEventSetWait_v2, watch->set, data, timeout_ms);

        if (!host_lacks(host, r))
                return r;
        r = HOST_CALL(host, ABOUT_HOST, nvmlEventSetWait, watch->set, &old, timeout_ms);
        *data = (nvmlEventData_t){ .device = old.device,
                                   .eventType = old.eventType,
                                   .eventData = old.eventData };
        return r;
}

int vgpu_device_watch_wait(struct vgpu_device_watch *watch, uint32_t timeout_ms,
                           struct vgpu_device_event **ret_event)
{
        nvmlEventData_t data = { .device = NULL };
        struct vgpu_device_event *event;
        uint32_t device = 0;
        int r = wait_for(watch, timeout_ms, &data);

        if (r < 0)
                return r;
        while (device < watch->n_devices && watch->devices[device] != data.device)
                device++;
        if (device == watch->n_devices)
                return host_set_error(watch->host, ABOUT_HOST, VGPU_ERROR_DRIVER_FAILED, "",
                                      "an event is of a device that is not watched");
        event = malloc(sizeof(*event));
        if (!event)
                return host_set_no_memory(watch->host);
        *event = (struct vgpu_device_event){ .device = device,
                                             .kind = (uint32_t)data.eventType,
                                             .data = data.eventType == VGPU_DEVICE_EVENT_XID
                                                             ? data.eventData
                                                             : 0 };
        *ret_event = event;
        return 0;
}
