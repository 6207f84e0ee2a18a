/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to a vGPU in the terms of the policy (scheduler/stay.h). */
#include "base/clock.h"
#include "daemon/options.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/residency-view.h"
#include "manager/model/way-back.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"
#include "scheduler/stay.h"

static uint64_t movable_bytes(const struct guest *guest, size_t part)
{
        const struct instance *instance = guest->instance;
        struct page_use use;

        if (guest->n_memory > 0)
                return instance->n_parts == 1 ? guest->memory_bytes : guest_sum_memory(guest, part);
        guest_get_use_of(guest, &instance->part[part], &use);
        return use.movable;
}

/* One that has joined and has not come to make a context yet has nothing there: it is in nobody's way. */
static bool has_context(const struct guest *guest, size_t part)
{
        struct page_use use;

        guest_get_use_of(guest, &guest->instance->part[part], &use);
        return use.had_context || use.fixed > 0 || guest->context.bytes > 0 ||
               guest->meter.part[part].context_bytes > 0;
}

/*
 * What is free there when it has left. While it leaves, that does not get less because some of it is free already.
 *
 * What it asks the driver for is not free either (residency-look.c). In it counts what is charged already, so it has the
 * larger one of both.
 */
static uint64_t get_bytes(const struct instance *instance, size_t part)
{
        const struct device *device = instance->part[part].device;
        uint64_t sum = 0, pending = instance->part[part].claim.pending;
        const struct guest *guest;

        if (!promise_is_overcommitted(device))
                return instance->frame_buffer;
        if (instance->part[part].residency.leaving_bytes)
                return instance->part[part].residency.leaving_bytes;
        list_for_each(guest, &instance->guests, link) {
                if (!residency_takes_part(guest))
                        continue;
                sum += movable_bytes(guest, part);
                if (!instance->residency.keeps_context && has_context(guest, part))
                        sum += footprint_get(guest, part, device);
        }
        return sum > pending ? sum : pending;
}

/* What it takes to go on: its allocations wait for it. */
static uint64_t get_wanted(const struct instance *instance, size_t part)
{
        struct page_claim claim;

        page_read_claim(&instance->part[part].page, instance->frame_buffer, &claim);
        return claim.wanted + instance->part[part].residency.extra;
}

uint64_t residency_get_return(const struct instance *instance, size_t part)
{
        uint64_t sum = get_wanted(instance, part);
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                if (!residency_takes_part(guest))
                        continue;
                sum += movable_bytes(guest, part);
                if (guest->context.state != GUEST_CONTEXT_RUNNING)
                        sum += footprint_get(guest, part, instance->part[part].device);
        }
        return sum;
}

/* Off its devices until residency brings it back; or on its way back to them. */
static bool is_to_come(const struct instance *instance)
{
        return instance_is_off(instance) || residency_awaits_turn(instance) ||
               way_back_lacks_room(instance);
}

/* What it has there still is not to come. */
static uint64_t get_arrival(const struct instance *instance, size_t part)
{
        if (way_back_lacks_room(instance))
                return way_back_get_bytes(instance, part) + instance->part[part].residency.extra;
        return residency_get_return(instance, part);
}

static uint64_t get_needs(const struct instance *instance, size_t part)
{
        if (!promise_is_overcommitted(instance->part[part].device))
                return instance->frame_buffer;
        return is_to_come(instance) ? get_arrival(instance, part) : get_wanted(instance, part);
}

/* Those on the device without a share divide what is left. */
static uint32_t get_weight_on(const struct instance *instance, const struct device *device)
{
        const struct instance *other;
        uint32_t shares = 0, n = 0;

        list_for_each(other, &instance->manager->instances, link) {
                if (!instance_is_on(other, device))
                        continue;
                shares += other->share;
                n += other->share == 0;
        }
        return shares + n < 100 ? (100 - shares) / n : 1;
}

/* Of the most crowded of its devices. */
static uint32_t get_weight(const struct instance *instance)
{
        uint32_t least = UINT32_MAX;

        if (instance->share)
                return instance->share;
        for (size_t i = 0; i < instance->n_parts; i++) {
                uint32_t weight = get_weight_on(instance, instance->part[i].device);

                least = weight < least ? weight : least;
        }
        return least;
}

static enum stay_place get_place(const struct instance *instance)
{
        if (!instance->operation || residency_awaits_turn(instance) ||
            way_back_lacks_room(instance))
                return is_to_come(instance) ? STAY_AWAY : STAY_HERE;
        return instance->operation->kind->number == OPERATION_SUSPEND ? STAY_LEAVING : STAY_COMING;
}

/*
 * Who could not come in does not send others away for that again at once; and not never, for the reason may be gone
 * and those that are there may stay for good.
 */
static bool is_modest(const struct instance *instance)
{
        const struct residency_instance *mine = &instance->residency;

        if (instance->image)
                return true;
        return mine->pause_ns > 0 && !mine->lacked_room &&
               clock_now(CLOCK_MONOTONIC) - mine->failed_ns < 2 * mine->pause_ns;
}

/* Where nobody knows what is free nobody waits: what others do elsewhere shall not depend on that. */
static bool is_known(const struct instance *instance, size_t part)
{
        const struct device *device = instance->part[part].device;

        return residency_is_known(instance->manager->residency, device);
}

/* Whose programs stand still for an operation that came to nothing is let go on before others get a turn. */
static enum stay_class get_class(const struct instance *instance)
{
        return instance->residency.is_interactive || way_back_lacks_room(instance)
                       ? STAY_INTERACTIVE
                       : STAY_BATCH;
}

static uint64_t get_wants(const struct instance *instance)
{
        if (!is_to_come(instance))
                return residency_get_asks(instance);
        for (size_t i = 0; i < instance->n_parts; i++)
                if (!is_known(instance, i))
                        return 0;
        return instance->residency.wanted_ns;
}

static struct stay_part get_part(const struct instance *instance, size_t part)
{
        return (struct stay_part){
                .device = instance->part[part].device->index,
                .bytes = get_bytes(instance, part),
                .needs = get_needs(instance, part),
                .is_content = !is_to_come(instance) && (!instance->part[part].residency.asks_ns ||
                                                        !is_known(instance, part)),
        };
}

struct stay residency_get_stay(const struct instance *instance)
{
        const struct residency_instance *mine = &instance->residency;
        char hold[sizeof(mine->reason)];
        struct stay stay;

        residency_find_hold(instance, hold, sizeof(hold));
        stay = (struct stay){
                .after = mine->after_ns,
                .last_work = mine->last_work_ns,
                .since = mine->since_ns,
                .guaranteed = stay_get_guaranteed(mine->cost_ns,
                                                  instance->manager->options->swap_percent),
                .not_before = mine->not_before_ns,
                .is_held = hold[0] != '\0',
                .takes_turns = promise_is_any_overcommitted(instance),
                .class = get_class(instance),
                .weight = get_weight(instance),
                .place = get_place(instance),
                .wants = get_wants(instance),
                .n_more = instance->n_parts - 1,
                .is_modest = is_modest(instance),
                .was_cut = mine->was_cut,
        };
        for (size_t i = 0; i < instance->n_parts; i++)
                stay.part[i] = get_part(instance, i);
        return stay;
}

/*
 * Not one that was suspended by hand, or is being: that may take as long as who asked for it likes. Who is resumed by
 * hand has a turn like all others, and so has one that was to be suspended or moved and finds no room to go back.
 */
bool residency_is_played(const struct instance *instance)
{
        const struct operation *operation = instance->operation;

        if (residency_awaits_turn(instance))
                return true;
        if (way_back_lacks_room(instance))
                return promise_is_any_overcommitted(instance);
        if (operation)
                return operation->request.is_by_itself &&
                       (operation->kind->number == OPERATION_SUSPEND ||
                        operation->kind->number == OPERATION_RESUME);
        if (instance_is_off(instance))
                return instance_is_away(instance);
        return instance->state == STATE_RUNNING &&
               (!instance->image || residency_get_asks(instance));
}
