/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers for events if NVIDIA's library is not in use: a scenario says what happens to a device. nvidia-smi
 * makes a set at every start and gives up if it can't. The plugin of Kubernetes takes a device for broken if
 * it can't be registered.
 *
 * The state page wakes nobody, so a wait looks again and again. The last nvmlShutdown() frees a set that its
 * client did not free.
 */
#include "nvml/event.h"

#include <errno.h>
#include <pthread.h>
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

static struct {
        pthread_mutex_t lock;
        struct event_set set[SETS_MAX];
} events = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct event_set *event_lock(nvmlEventSet_t handle)
{
        uintptr_t index = (uintptr_t)handle - SET_BASE;

        pthread_mutex_lock(&events.lock);
        return index < SETS_MAX && events.set[index].is_there ? &events.set[index] : NULL;
}

void event_unlock(void)
{
        pthread_mutex_unlock(&events.lock);
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

        set = event_lock(handle);
        if (set)
                set->is_there = false;
        event_unlock();
        return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static bool is_wanted(const struct event_interest *interest, const struct state_event *event)
{
        const struct state_operational *operational = &event->operational;

        for (uint32_t i = 0; event->kind == 0 && i < interest->n_filters; i++)
                if (operational->log_level >= interest->filters[i].log_level &&
                    operational->severity >= interest->filters[i].severity)
                        return true;
        return event->kind & interest->mask;
}

/* The next event of the ring of @device that is waited for. Another state page is one of another manager. */
static bool take_event(struct event_interest *interest, uint32_t device,
                       struct event_told *ret_told)
{
        const struct state_page *state_page = view_state_page();
        uint64_t end = state_count_event(state_page, device),
                 first = state_first_event(state_page, device);

        if (interest->state_page != state_page) {
                interest->state_page = state_page;
                interest->next = 0;
        }
        if (interest->next < first)
                interest->next = first;
        while (interest->next < end) {
                *ret_told = (struct event_told){ .device = device, .number = interest->next++ };
                if (state_read_event(state_page, device, ret_told->number, &ret_told->event) &&
                    is_wanted(interest, &ret_told->event))
                        return true;
        }
        return false;
}

static bool is_interested(const struct event_interest *interest)
{
        return interest->mask || interest->n_filters > 0;
}

/* TIMEOUT: nothing has happened yet. What has happened to a device is told before its loss. */
static nvmlReturn_t look(struct event_set *set, enum event_form last, struct event_told *ret_told)
{
        struct state_device device;
        bool has_lost = false;

        for (uint32_t i = 0; i < STATE_DEVICES_MAX; i++)
                for (int form = 0; form <= (int)last; form++) {
                        struct event_interest *interest = &set->of[i][form];

                        if (!is_interested(interest))
                                continue;
                        if (take_event(interest, i, ret_told))
                                return NVML_SUCCESS;
                        has_lost |=
                                state_read_device(view_state_page(), i, &device) && device.is_lost;
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

nvmlReturn_t event_wait(nvmlEventSet_t handle, enum event_form last, unsigned int timeout_ms,
                        struct event_told *ret_told)
{
        uint64_t end_ns = clock_now(CLOCK_MONOTONIC) + timeout_ms * 1000000ull, now_ns;
        struct event_set *set;
        nvmlReturn_t r;

        for (;;) {
                set = event_lock(handle);
                r = set ? look(set, last, ret_told) : NVML_ERROR_INVALID_ARGUMENT;
                if (r == NVML_SUCCESS && last == EVENT_OPERATIONAL) {
                        set->has_last = true;
                        set->last = ret_told->event;
                }
                event_unlock();
                now_ns = clock_now(CLOCK_MONOTONIC);
                if (r != NVML_ERROR_TIMEOUT || now_ns >= end_ns)
                        return r;
                pause_until(now_ns, end_ns);
        }
}

nvmlReturn_t our_nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t *event,
                                  unsigned int timeout_ms)
{
        struct event_told told;
        nvmlReturn_t r =
                event ? event_wait(set, EVENT_BIT, timeout_ms, &told) : NVML_ERROR_INVALID_ARGUMENT;

        if (r == NVML_SUCCESS)
                *event = (nvmlEventData_v1_t){ .device = view_get_handle(told.device),
                                               .eventType = told.event.kind,
                                               .eventData = told.event.data };
        return r;
}

nvmlReturn_t our_nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event,
                                     unsigned int timeout_ms)
{
        struct event_told told;
        nvmlReturn_t r =
                event ? event_wait(set, EVENT_BIT, timeout_ms, &told) : NVML_ERROR_INVALID_ARGUMENT;

        if (r == NVML_SUCCESS)
                *event = (nvmlEventData_t){ .device = view_get_handle(told.device),
                                            .eventType = told.event.kind,
                                            .eventData = told.event.data,
                                            .gpuInstanceId = NVML_GPU_INSTANCE_ID_ANY,
                                            .computeInstanceId = NVML_COMPUTE_INSTANCE_ID_ANY };
        return r;
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

void event_begin(struct event_interest *interest, uint32_t device)
{
        const struct state_page *state_page = view_state_page();

        if (!is_interested(interest))
                *interest =
                        (struct event_interest){ .state_page = state_page,
                                                 .next = state_count_event(state_page, device) };
}

/* A guest is told nothing: what happens to the device may be about others on it. */
static void add_interest(struct event_interest *interest, uint32_t device, unsigned long long mask)
{
        if (view_is_guest())
                return;
        event_begin(interest, device);
        interest->mask |= mask;
}

nvmlReturn_t our_nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long mask,
                                          nvmlEventSet_t set_handle)
{
        struct state_device device;
        struct event_set *set = event_lock(set_handle);
        nvmlReturn_t r = view_device(&device, handle, set);

        if (r == NVML_SUCCESS && mask & ~EVENT_TYPES)
                r = NVML_ERROR_NOT_SUPPORTED;
        if (r == NVML_SUCCESS)
                add_interest(&set->of[device.index][EVENT_BIT], device.index, mask);
        event_unlock();
        return r;
}
