/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is free. Where quotas are promised as they are, that is known from the books. On an overcommitted device it is
 * what vGPUs really hold that counts, so the driver is asked. Devices that vGPUs of several join are decided together:
 * when the driver has answered for each of them.
 */
#include "base/clock.h"
#include "base/fault.h"
#include "manager/model/ceiling.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/pending.h"
#include "manager/model/promise.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"

/* Between two questions to the driver while somebody waits; and when an answer will not come any more. */
#define ASK_NS      (20 * NS_PER_MS)
#define ASK_LOST_NS (5 * NS_PER_S)

/* Without room for the mover's context there is little hope, and each question is a line of the log. */
#define NO_CONTEXT_NS NS_PER_S

/* All that vGPUs of several join to @devices, also by way of others. */
static uint64_t find_group(const struct manager *manager, uint64_t devices)
{
        const struct instance *instance;
        uint64_t before;

        do {
                before = devices;
                list_for_each(instance, &manager->instances, link)
                        if (instance->n_parts > 1 && residency_is_played(instance) &&
                            (residency_get_devices(instance) & devices))
                                devices |= residency_get_devices(instance);
        } while (devices != before);
        return devices;
}

/* By the books, and by the driver. */

static int64_t get_free_by_books(const struct device *device)
{
        return (int64_t)device->memory_total - (int64_t)promise_get_sum(device, NULL);
}

/* One that has just begun to come in has not been promised yet what it takes. */
static bool is_unpromised(const struct instance *instance, size_t part)
{
        const struct guest *guest;

        if (!instance->operation || residency_awaits_turn(instance) ||
            instance->operation->step > 0 || instance->operation->kind->number != OPERATION_RESUME)
                return false;
        list_for_each(guest, &instance->guests, link)
                if (guest->room[part].coming.room || guest->room[part].arriving.room)
                        return false;
        return true;
}

static int64_t get_unpromised(const struct device *device)
{
        const struct instance *instance;
        int64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (instance->part[i].device == device && is_unpromised(instance, i))
                                sum += (int64_t)residency_get_return(instance, i);
        return sum;
}

/* The bytes that were promised to waiting vGPUs count as free: they are for these vGPUs. */
static int64_t get_free(const struct residency *residency, const struct device *device)
{
        const struct residency_look *look = &residency->look[device->index];

        if (!residency_is_known(residency, device))
                return 0;
        if (!promise_is_overcommitted(device))
                return get_free_by_books(device);
        return room_balance(&device->room, look->memory_free, look->mark) +
               ceiling_get_promised(device) - get_unpromised(device) -
               (int64_t)ceiling_get_pending(device);
}

static void decide(struct residency *residency, uint64_t group)
{
        const struct manager *manager = residency->manager;
        int64_t free[STATE_DEVICES_MAX] = { 0 };

        for (size_t i = 0; i < manager->n_devices; i++) {
                if (!(group >> i & 1))
                        continue;
                free[i] = get_free(residency, &manager->device[i]);
                residency->look[i].is_answered = false;
        }
        residency_decide(residency, group, free, clock_now(CLOCK_MONOTONIC));
}

/* Asking the driver. */

/* What it has said is of before if this is another number now. */
static uint64_t count_moves(const struct residency *residency)
{
        const struct instance *instance;
        uint64_t n = residency->n_ends;

        list_for_each(instance, &residency->manager->instances, link)
                n += instance->operation != NULL;
        return n;
}

static void forget_answer(struct residency_look *look)
{
        look->is_answered = false;
        look->asked_ns = 0;
        residency_look_in(look->residency, 0);
}

/* Has it answered for all of them, and is it still so? */
static bool has_answered(struct residency *residency, uint64_t group)
{
        uint64_t n_moves = count_moves(residency);
        bool has = true;

        for (size_t i = 0; i < residency->manager->n_devices; i++) {
                const struct device *device = &residency->manager->device[i];
                struct residency_look *look = &residency->look[i];

                if (!(group >> i & 1) || !promise_is_overcommitted(device) ||
                    !residency_is_known(residency, device))
                        continue;
                if (look->is_answered && look->n_moves != n_moves)
                        forget_answer(look);
                has &= look->is_answered;
        }
        return has;
}

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        struct residency_look *look = userdata;
        struct residency *residency = look->residency;
        uint64_t group;

        (void)mover;
        look->is_looking = false;
        look->is_blind = error != 0;
        if (error)
                return;
        if (look->asked_moves != count_moves(residency)) {
                forget_answer(look);
                return;
        }
        look->is_answered = true;
        look->memory_free = info->memory_free;
        look->mark = look->asked_mark;
        look->n_moves = look->asked_moves;
        group = find_group(residency->manager, 1ull << look->device->index);
        if (!has_answered(residency, group))
                return;
        decide(residency, group);
        observer_tell_changed(&residency->manager->observers);
}

static void look_at_pending(const struct device *device)
{
        struct instance *instance;

        list_for_each(instance, &device->manager->instances, link) {
                struct instance_part *part =
                        instance_is_off(instance) ? NULL : instance_find_part(instance, device);

                if (part)
                        pending_look(instance, part);
        }
}

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct residency_look *look = userdata;

        look->device->has_context |= done->error == 0;
        look->asked_mark = room_mark(&look->device->room);
        look_at_pending(look->device);
        if (done->error == 0 && mover_info(mover, on_info, look) == 0)
                return;
        look->not_before_ns = clock_now(CLOCK_MONOTONIC) + NO_CONTEXT_NS;
        look->is_looking = false;
        look->is_blind = true;
}

static void ask(struct residency_look *look, uint64_t now)
{
        struct mover *mover;

        if (now - look->asked_ns < (look->is_looking ? ASK_LOST_NS : ASK_NS) ||
            now < look->not_before_ns)
                return;
        look->asked_ns = now;
        look->asked_moves = count_moves(look->residency);
        look->is_looking = device_get_mover(look->device, &mover) == 0 &&
                           mover_context(mover, on_context, look) == 0;
        look->is_blind |= !look->is_looking;
}

void residency_ask_again(struct residency *residency, const struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++) {
                struct residency_look *look = &residency->look[instance->part[i].device->index];

                if (!look->is_looking) /* else it will soon be told */
                        look->asked_ns = 0;
        }
}

static bool is_lost(struct device *device)
{
        if (fault_point("device.lost"))
                device->meter.is_lost = true;
        return device->meter.is_lost;
}

static void look_at_group(struct residency *residency, uint64_t group, uint64_t now)
{
        bool asks = false;

        for (size_t i = 0; i < residency->manager->n_devices; i++) {
                struct device *device = &residency->manager->device[i];
                struct residency_look *look = &residency->look[i];

                if (!(group >> i & 1))
                        continue;
                look->residency = residency;
                look->device = device;
                if (is_lost(device)) {
                        residency_give_up(device);
                } else if (promise_is_overcommitted(device)) {
                        ask(look, now);
                        asks |= residency_is_known(residency, device);
                }
        }
        if (!asks)
                decide(residency, group);
}

void residency_give_room(struct residency *residency, uint64_t devices, uint64_t now)
{
        uint64_t group;

        for (; devices != 0; devices &= ~group) {
                group = find_group(residency->manager, devices & -devices);
                look_at_group(residency, group, now);
        }
}
