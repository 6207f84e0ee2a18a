/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, where NVIDIA's library is not in use: what a scenario has happen to a device. nvidia-smi makes
 * a set at every start and gives up when it can't; the plugin of Kubernetes takes a device for broken
 * that can't be registered.
 *
 * A set remembers which events of which device it waits for, and up to which place of the device's ring
 * they were told. The state page wakes nobody, so a wait looks again and again. A set that its client
 * does not free is free with the last nvmlShutdown().
 */
#include "nvml/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "nvml/slots.h"
#include "nvml/view.h"

#define EVENT_TYPES                                                                    \
        (NVML_EVENT_TYPE_SINGLE_BIT_ECC_ERROR | NVML_EVENT_TYPE_DOUBLE_BIT_ECC_ERROR | \
         NVML_EVENT_TYPE_PSTATE | NVML_EVENT_TYPE_XID_CRITICAL_ERROR | NVML_EVENT_TYPE_CLOCK)

#define SETS_MAX 64

#define LOOK_NS 20000000u

/* No address, like the device handles: the sets follow one another. */
#define SET_BASE ((uintptr_t)0x4f56470000010001)

#define NO_INSTANCE 0xffffffffu /* the event is of no GPU or compute instance */

/* What a set waits for of one device. */
struct interest {
        unsigned long long mask; /* 0: of nothing */
        const struct state_page *state_page;
        uint64_t next; /* number in the ring of that state page */
};

static struct {
        pthread_mutex_t lock;
        struct event_set {
                bool is_there;
                struct interest of[STATE_DEVICES_MAX];
        } set[SETS_MAX];
} events = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct event_set *find(nvmlEventSet_t handle)
{
        uintptr_t index = (uintptr_t)handle - SET_BASE;

        return index < SETS_MAX && events.set[index].is_there ? &events.set[index] : NULL;
}

void event_forget(void)
{
        pthread_mutex_lock(&events.lock);
        for (size_t i = 0; i < SETS_MAX; i++)
                events.set[i].is_there = false;
        pthread_mutex_unlock(&events.lock);
}

nvmlReturn_t our_nvmlEventSetCreate(nvmlEventSet_t *set)
{
        nvmlReturn_t r = NVML_ERROR_MEMORY;

        if (!set)
                return NVML_ERROR_INVALID_ARGUMENT;
        pthread_mutex_lock(&events.lock);
        for (size_t i = 0; i < SETS_MAX && r != NVML_SUCCESS; i++) {
                if (events.set[i].is_there)
                        continue;
                events.set[i] = (struct event_set){ .is_there = true };
                *set = (nvmlEventSet_t)(SET_BASE + i);
                r = NVML_SUCCESS;
        }
        pthread_mutex_unlock(&events.lock);
        return r;
}

nvmlReturn_t our_nvmlEventSetFree(nvmlEventSet_t handle)
{
        struct event_set *set;

        pthread_mutex_lock(&events.lock);
        set = find(handle);
        if (set)
                set->is_there = false;
        pthread_mutex_unlock(&events.lock);
        return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* The next event of the ring of @device that is waited for. Another state page is one of another manager. */
static bool take_event(struct interest *interest, uint32_t device, struct state_event *ret_event)
{
        const struct state_page *state_page = view_state_page();
        uint64_t end = state_count_event(state_page, device),
                 first = state_first_event(state_page, device);

        if (interest->state_page != state_page)
                *interest = (struct interest){ .mask = interest->mask, .state_page = state_page };
        if (interest->next < first)
                interest->next = first;
        while (interest->next < end)
                if (state_read_event(state_page, device, interest->next++, ret_event) &&
                    ret_event->kind & interest->mask)
                        return true;
        return false;
}

/* TIMEOUT: nothing has happened yet. What has happened to a device is told before its loss. */
static nvmlReturn_t look(nvmlEventSet_t handle, nvmlEventData_t *ret_event)
{
        struct event_set *set = find(handle);
        struct state_device device;
        struct state_event event;
        bool has_lost = false;

        if (!set)
                return NVML_ERROR_INVALID_ARGUMENT;
        for (uint32_t i = 0; i < STATE_DEVICES_MAX; i++) {
                if (!set->of[i].mask)
                        continue;
                if (!take_event(&set->of[i], i, &event)) {
                        has_lost |=
                                state_read_device(view_state_page(), i, &device) && device.is_lost;
                        continue;
                }
                *ret_event = (nvmlEventData_t){ .device = view_get_handle(i),
                                                .eventType = event.kind,
                                                .eventData = event.data,
                                                .gpuInstanceId = NO_INSTANCE,
                                                .computeInstanceId = NO_INSTANCE };
                return NVML_SUCCESS;
        }
        return has_lost ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_TIMEOUT;
}

static void pause_until(uint64_t now_ns, uint64_t end_ns)
{
        uint64_t left = end_ns - now_ns;
        struct timespec rest = { .tv_nsec = (long)(left < LOOK_NS ? left : LOOK_NS) };
        int saved_errno = errno;

        (void)nanosleep(&rest, NULL);
        errno = saved_errno;
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, nvmlEventData_t *ret_event,
                             unsigned int timeout_ms)
{
        uint64_t end_ns = clock_now(CLOCK_MONOTONIC) + timeout_ms * 1000000ull, now_ns;
        nvmlReturn_t r;

        for (;;) {
                pthread_mutex_lock(&events.lock);
                r = look(set, ret_event);
                pthread_mutex_unlock(&events.lock);
                now_ns = clock_now(CLOCK_MONOTONIC);
                if (r != NVML_ERROR_TIMEOUT || now_ns >= end_ns)
                        return r;
                pause_until(now_ns, end_ns);
        }
}

nvmlReturn_t our_nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *event,
                                  unsigned int timeout_ms)
{
        nvmlEventData_t found;
        nvmlReturn_t r = event ? wait_for(set, &found, timeout_ms) : NVML_ERROR_INVALID_ARGUMENT;

        if (r == NVML_SUCCESS)
                *event = (nvmlEventData_v1_t){ .device = found.device,
                                               .eventType = found.eventType,
                                               .eventData = found.eventData };
        return r;
}

nvmlReturn_t our_nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event,
                                     unsigned int timeout_ms)
{
        return event ? wait_for(set, event, timeout_ms) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t our_nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *mask)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, mask);

        if (r != NVML_SUCCESS)
                return r;
        *mask = EVENT_TYPES;
        return NVML_SUCCESS;
}

/* From now on. A guest is told nothing: what happens to the device may be about others on it. */
static void add_interest(struct interest *interest, uint32_t device, unsigned long long mask)
{
        const struct state_page *state_page = view_state_page();

        if (view_is_guest())
                return;
        if (!interest->mask)
                *interest = (struct interest){ .state_page = state_page,
                                               .next = state_count_event(state_page, device) };
        interest->mask |= mask;
}

nvmlReturn_t our_nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long mask,
                                          nvmlEventSet_t set_handle)
{
        struct state_device device;
        struct event_set *set;
        nvmlReturn_t r;

        pthread_mutex_lock(&events.lock);
        set = find(set_handle);
        r = view_device(&device, handle, set);
        if (r == NVML_SUCCESS && mask & ~EVENT_TYPES)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                add_interest(&set->of[device.index], device.index, mask);
        pthread_mutex_unlock(&events.lock);
        return r;
}
