/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/read-ahead.h"

#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/policy.h"
#include "manager/model/reading.h"
#include "manager/model/spill-use.h"
#include "manager/model/spilling.h"
#include "manager/operation/fetching.h"
#include "manager/operation/make-room.h"
#include "manager/operation/operation.h"

/* Who wants its memory mostly has its turn at once, or not for long; and what happens mostly does not happen alone. */
#define LOOK_US 300000u

/* Its operation has not come to what is on the disk: it waits for others to leave. */
static bool awaits_turn(const struct instance *instance)
{
        return instance->operation && instance->operation->admission.state == ADMISSION_AWAITS_TURN;
}

/* Could it need the pool where nothing is held for it? A suspend and a resume have theirs. */
static bool is_moving(const struct instance *instance)
{
        const struct operation *operation = instance->operation;

        return operation && operation->kind->number != OPERATION_SUSPEND &&
               operation->kind->number != OPERATION_RESUME;
}

static bool is_fetching(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->fetched)
                        return true;
        return false;
}

static bool must_wait(const struct manager *manager)
{
        const struct instance *instance;

        if (!spilling_is_idle(manager) || !list_is_empty(&manager->room_makers))
                return true;
        list_for_each(instance, &manager->instances, link)
                if (is_moving(instance) || is_fetching(instance))
                        return true;
        return false;
}

/* The first of its processes that is on the disk alone. NULL: none is, or it is not to be touched. */
static struct guest *find_guest(const struct instance *instance)
{
        struct guest *guest, *first = NULL;

        if (!awaits_turn(instance) && (!instance_is_off(instance) || instance->operation))
                return NULL;
        if (instance->image || instance->is_unsettled)
                return NULL;
        list_for_each(guest, &instance->guests, link) {
                if (guest_is_dead(guest) || guest->spilling)
                        return NULL;
                if (!first && guest->spilled && !guest->spilled->ahead &&
                    !guest->spilled->is_unreadable)
                        first = guest;
        }
        return first;
}

static bool wants(const struct instance *instance)
{
        return instance->residency.wanted_ns > 0 || awaits_turn(instance);
}

static bool comes_before(const struct instance *one, const struct instance *other)
{
        if (wants(one) != wants(other))
                return wants(one);
        return wants(one) ? one->residency.wanted_ns < other->residency.wanted_ns
                          : one->off_since_ns > other->off_since_ns;
}

/* Nothing spare goes for it either, as clean copies and what others have read ahead. */
static bool has_room(const struct guest *guest)
{
        const struct instance *instance = guest->instance;
        struct failure failure = { 0 };
        char owner[POOL_OWNER_MAX];
        struct pool_info info;

        pool_get_info(instance->manager->pool, &info);
        if (info.used + info.spare + info.held + guest->spilled->bytes > info.limit)
                return false;
        policy_name_owner(instance, owner);
        return policy_check_pool(instance, owner, guest->spilled->bytes, &failure) == 0;
}

static struct guest *choose(const struct manager *manager)
{
        const struct instance *instance, *best = NULL;
        struct guest *guest, *chosen = NULL;

        list_for_each(instance, &manager->instances, link) {
                guest = find_guest(instance);
                if (!guest || (best && !comes_before(instance, best)) || !has_room(guest))
                        continue;
                best = instance;
                chosen = guest;
        }
        return chosen;
}

static void look_later(struct manager *manager);

/* Who waits for the room that it had goes on, and so does who waits for what was read. */
static void on_done(struct manager *manager, struct instance *instance, int error)
{
        (void)error;
        make_room_again(manager);
        if (instance && instance->operation)
                fetching_go_on(instance->operation);
        look_later(manager);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;
        struct guest *guest;

        (void)source, (void)usec;
        manager->read_ahead = sd_event_source_disable_unref(manager->read_ahead);
        if (reading_is_busy(manager) || must_wait(manager))
                return 0; /* its end is told */
        guest = choose(manager);
        if (guest)
                (void)reading_begin(guest, on_done);
        return 0;
}

static void look_later(struct manager *manager)
{
        if (!manager->read_ahead && manager->options->spill_directory[0])
                (void)sd_event_add_time_relative(manager->event, &manager->read_ahead,
                                                 CLOCK_MONOTONIC, LOOK_US, 0, on_time, manager);
}

static void on_changed(void *userdata)
{
        struct manager *manager = userdata;

        if (reading_is_busy(manager) && must_wait(manager))
                (void)reading_give_up(manager);
        look_later(manager);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        (void)guest;
        if (event == GUEST_WANTS)
                look_later(userdata);
}

static struct observer observer = { .changed = on_changed, .of_guest = on_guest };

void read_ahead_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, manager);
}

void read_ahead_end(struct manager *manager)
{
        manager->read_ahead = sd_event_source_disable_unref(manager->read_ahead);
}
