/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/write-ahead.h"

#include "base/clock.h"
#include "manager/model/backing.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/policy.h"
#include "manager/model/reading.h"
#include "manager/model/reserve.h"
#include "manager/model/spilling.h"
#include "manager/operation/make-room.h"

/* Who comes back within that time does not come from the disk. It is also the time between two looks. */
#define COLD_NS 1000000000ull
#define LOOK_US (COLD_NS / 1000)

static bool has_place_on_disk(const struct instance *instance)
{
        return backing_is_needed(instance) && reserve_is_backed(instance);
}

/* Would one of those on a device not find room for what its quota allows? */
static bool is_tight(const struct manager *manager)
{
        const struct instance *instance;
        char owner[POOL_OWNER_MAX];

        list_for_each(instance, &manager->instances, link) {
                if (!has_place_on_disk(instance) || instance_is_off(instance) ||
                    list_is_empty(&instance->guests))
                        continue;
                policy_name_owner(instance, owner);
                if (policy_get_available(instance, owner) < instance_get_quota(instance))
                        return true;
        }
        return false;
}

static bool is_cold(const struct instance *instance, uint64_t now)
{
        return instance->residency.wanted_ns == 0 && now - instance->off_since_ns >= COLD_NS;
}

static struct instance *find_coldest(const struct manager *manager, uint64_t now)
{
        struct instance *instance, *first = NULL;

        list_for_each(instance, &manager->instances, link)
                if (has_place_on_disk(instance) && make_room_can_go(instance) &&
                    is_cold(instance, now) &&
                    (!first || instance->off_since_ns < first->off_since_ns))
                        first = instance;
        return first;
}

static bool has_young(const struct manager *manager)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (has_place_on_disk(instance) && make_room_can_go(instance))
                        return true;
        return false;
}

static void look_later(struct manager *manager);

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;
        struct instance *coldest;

        (void)source, (void)usec;
        manager->write_ahead = sd_event_source_disable_unref(manager->write_ahead);
        if (reading_is_busy(manager)) {
                look_later(manager); /* it is not tight any more when that has ended */
                return 0;
        }
        if (!spilling_is_idle(manager) || !is_tight(manager))
                return 0;
        coldest = find_coldest(manager, clock_now(CLOCK_MONOTONIC));
        if (coldest)
                (void)make_room_send(coldest);
        else if (has_young(manager))
                look_later(manager);
        return 0;
}

static void look_later(struct manager *manager)
{
        if (!manager->write_ahead && reserve_get_sum(manager) > 0)
                (void)sd_event_add_time_relative(manager->event, &manager->write_ahead,
                                                 CLOCK_MONOTONIC, LOOK_US, 0, on_time, manager);
}

static void on_operation(const struct operation *operation, bool has_succeeded, void *userdata)
{
        (void)operation, (void)has_succeeded;
        look_later(userdata);
}

static struct observer observer = { .of_operation = on_operation };

void write_ahead_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, manager);
        manager->after_spill = look_later;
}

void write_ahead_end(struct manager *manager)
{
        manager->write_ahead = sd_event_source_disable_unref(manager->write_ahead);
}
