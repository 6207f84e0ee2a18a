/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/residency-view.h"

#include "base/clock.h"
#include "manager/model/ceiling.h"
#include "manager/model/instance.h"
#include "manager/model/promise.h"
#include "manager/model/way-back.h"

/* Between two looks at one that has work or might get some: a part of its time. */
#define LOOK_PART   8
#define LOOK_MIN_NS 20000000u
#define LOOK_MAX_NS (NS_PER_S)

/* Where an allocation may wait for room. */
#define LOOK_SHARED_NS 50000000u

bool residency_may_leave(const struct instance *instance)
{
        return instance->state == STATE_RUNNING && !instance->operation && !instance->image &&
               (instance->residency.after_ns > 0 || promise_is_any_overcommitted(instance));
}

uint64_t residency_get_interval(const struct instance *instance)
{
        uint64_t part = instance->residency.after_ns / LOOK_PART;

        if (promise_is_any_overcommitted(instance) && (part == 0 || part > LOOK_SHARED_NS))
                return LOOK_SHARED_NS;
        if (part < LOOK_MIN_NS)
                return LOOK_MIN_NS;
        return part < LOOK_MAX_NS ? part : LOOK_MAX_NS;
}

uint64_t residency_get_asks(const struct instance *instance)
{
        uint64_t first = 0;

        for (size_t i = 0; i < instance->n_parts; i++) {
                uint64_t asks_ns = instance->part[i].residency.asks_ns;

                if (asks_ns && (first == 0 || asks_ns < first))
                        first = asks_ns;
        }
        return first;
}

const struct instance_part *residency_find_wanting(const struct instance *instance)
{
        struct page_claim claim;

        for (size_t i = 0; i < instance->n_parts; i++) {
                page_read_claim(&instance->part[i].page, instance->frame_buffer, &claim);
                if (claim.wanted > 0)
                        return &instance->part[i];
        }
        return NULL;
}

static const char *get_demand(const struct instance *instance)
{
        if (way_back_lacks_room(instance) && instance->residency.wanted_ns)
                return "waiting for memory";
        if (instance->residency.waits_for_room && instance->state == STATE_RESUMING)
                return "waiting for memory";
        if (instance->residency.is_coming && instance->state == STATE_RESUMING)
                return "coming in";
        if (instance->residency.is_leaving && instance->state == STATE_SUSPENDING)
                return "leaving";
        if (instance->state != STATE_RUNNING && !instance_is_away(instance))
                return ""; /* suspended by hand, nothing that it waits for comes by itself */
        if (residency_get_asks(instance) || instance->residency.wanted_ns ||
            (!instance_is_off(instance) && residency_find_wanting(instance)))
                return "waiting for memory";
        return instance_is_away(instance) ? "away" : "";
}

uint64_t residency_view_get_resident(const struct instance *instance)
{
        const struct residency_instance *mine = &instance->residency;

        return mine->sums.resident_ns +
               (mine->present_ns ? clock_now(CLOCK_MONOTONIC) - mine->present_ns : 0);
}

static const char *get_reason(const struct instance *instance, bool is_waiting)
{
        const struct residency_instance *mine = &instance->residency;
        const struct instance_part *part;

        if (instance->operation && !mine->waits_for_room && !way_back_lacks_room(instance))
                return ""; /* why it did not come before, or leave, is over */
        if (mine->reason[0] || !is_waiting)
                return mine->reason;
        part = residency_find_wanting(instance);
        if (part && ceiling_is_on(part->device))
                return "what is free of its device is promised to others";
        return mine->reason;
}

void residency_view_get(const struct instance *instance, struct residency_view *ret_view)
{
        const struct residency_instance *mine = &instance->residency;
        uint64_t idle_ns = clock_now(CLOCK_MONOTONIC) - mine->last_work_ns;
        const char *demand = get_demand(instance);

        *ret_view = (struct residency_view){ .idle = -1,
                                             .demand = demand,
                                             .reason = get_reason(instance, demand[0] != '\0') };
        if (instance->operation && (mine->is_leaving || mine->is_coming))
                ret_view->percent = mine->moved_percent;
        if (residency_may_leave(instance) && !ret_view->demand[0] &&
            idle_ns > residency_get_interval(instance))
                ret_view->idle = (double)idle_ns / NS_PER_S;
}
