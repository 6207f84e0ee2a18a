/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/context-closing.h"

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/model/ceiling.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

#define ASKING_LOOK_US 2000

/*
 * So long a restore waits for the gates: a call of the driver takes milliseconds, a gate waits 3 s for its ceiling,
 * and a guest that says for ever that it asks is no reason for more.
 */
#define ASKING_MAX_MS 2500u

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        guest->participant->context.timer =
                sd_event_source_disable_unref(guest->participant->context.timer);
        guest->participant->context.again(guest);
        return 0;
}

bool context_wait(struct guest *guest, uint64_t us)
{
        return sd_event_add_time_relative(guest->instance->manager->event,
                                          &guest->participant->context.timer, CLOCK_MONOTONIC, us,
                                          1000, on_time, guest) >= 0;
}

void context_open_ceilings(struct guest *guest)
{
        guest->participant->context.closed_timer =
                sd_event_source_disable_unref(guest->participant->context.closed_timer);
        for (size_t i = 0; i < place_count(&guest->participant->context.closed); i++)
                ceiling_open(guest->participant->context.closed.device[i]);
        guest->participant->context.closed = place_nowhere;
        guest->participant->context.asking_deadline_ns = 0;
}

bool context_waits_for_gates(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        uint32_t ms = operation->request.timeout_ms < ASKING_MAX_MS ? operation->request.timeout_ms
                                                                    : ASKING_MAX_MS;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (guest->participant->context.asking_deadline_ns == 0)
                guest->participant->context.asking_deadline_ns = now_ns + ms * 1000000ull;
        return now_ns < guest->participant->context.asking_deadline_ns &&
               context_wait(guest, ASKING_LOOK_US);
}

/* All at once: no two wait for each other. False: it is the gates' turn on one of them. */
static bool close_ceilings(struct guest *guest, const struct place *place)
{
        if (!place_is_nowhere(&guest->participant->context.closed))
                return true;
        for (size_t i = 0; i < place_count(place); i++)
                if (!ceiling_may_close(place->device[i]))
                        return false;
        for (size_t i = 0; i < place_count(place); i++)
                ceiling_close(place->device[i]);
        guest->participant->context.closed = *place;
        return true;
}

static uint64_t sum_asked(const struct guest *guest)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < place_count(&guest->participant->context.closed); i++)
                sum += ceiling_get_asked(guest->participant->context.closed.device[i],
                                         guest->instance);
        return sum;
}

bool context_waits_for_those_who_ask(struct guest *guest, const struct place *target)
{
        uint64_t asked;

        if (!close_ceilings(guest, target) && context_waits_for_gates(guest))
                return true;
        asked = sum_asked(guest);
        if (asked == 0)
                return false;
        if (guest->participant->context.asking_deadline_ns == 0)
                log_event_of(guest->payer, LOG_LEVEL_INFO,
                             guest->instance->operation->is_undoing
                                     ? "waiting for those who ask for memory before going back"
                                     : "waiting for those who ask for memory before coming back",
                             "vgpu=%s pid=%d bytes=%llu", guest->instance->name, (int)guest->pid,
                             (unsigned long long)asked);
        return context_waits_for_gates(guest);
}

/*
 * A call that takes longer than they ever do is waited for with the gates let on: what it was promised is kept from them
 * then, which is as much as its process was seen to take. For a gate gives up after 3 s.
 */
#define CLOSED_CALL_NS  1500000000u
#define CLOSED_LEAST_NS 250000000u
#define CLOSED_MOST_NS  2500000000u

static uint64_t find_closed_ns(const struct guest *guest)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC), ns = CLOSED_CALL_NS;

        for (size_t i = 0; i < place_count(&guest->participant->context.closed); i++) {
                uint64_t age_ns =
                        now_ns - guest->participant->context.closed.device[i]->ceiling.closed_ns;

                if (age_ns + CLOSED_LEAST_NS >= CLOSED_MOST_NS)
                        return CLOSED_LEAST_NS;
                if (ns > CLOSED_MOST_NS - age_ns)
                        ns = CLOSED_MOST_NS - age_ns;
        }
        return ns;
}

static int on_closed_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        log_event_of(guest->payer, LOG_LEVEL_WARNING,
                     "a restore takes long: allocations beside it wait no longer", "vgpu=%s pid=%d",
                     guest->instance->name, (int)guest->pid);
        context_open_ceilings(guest);
        return 0;
}

void context_limit_closing(struct guest *guest)
{
        if (place_is_nowhere(&guest->participant->context.closed))
                return;
        (void)sd_event_add_time_relative(guest->instance->manager->event,
                                         &guest->participant->context.closed_timer, CLOCK_MONOTONIC,
                                         find_closed_ns(guest) / 1000, 1000, on_closed_time, guest);
}
