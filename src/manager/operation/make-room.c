/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/make-room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "manager/model/account.h"
#include "manager/model/backing.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/model/reading.h"
#include "manager/model/reserve.h"
#include "manager/model/spill-use.h"
#include "manager/model/spilling.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"

/* How often those that wait look whether there is room by other means. */
#define LOOK_US 100000u

/* A disk that is slower than this is not waited for: 30 s, and 20 ns for each byte (50 MB/s). */
#define DISK_NS          30000000000ull
#define DISK_NS_PER_BYTE 20

/* Users. */

struct user {
        uid_t uid;
        uint64_t pool, spilled; /* bytes; of the spill also what is on its way */
};

struct users {
        struct user *users;
        size_t n, n_spilled; /* those with something in the spill */
        uint64_t spilled;
};

static void users_deinit(struct users *users)
{
        free(users->users);
}

static struct user *find_user(const struct users *users, uid_t uid)
{
        for (size_t i = 0; i < users->n; i++)
                if (users->users[i].uid == uid)
                        return &users->users[i];
        return NULL;
}

static uint64_t get_pool_bytes(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                sum += pool_get_length(guest->reservation);
        return sum;
}

/* There is room for one more in the array. */
static void add_instance(struct users *users, const struct instance *instance)
{
        struct user *user = find_user(users, instance->owner);

        if (!user) {
                user = &users->users[users->n++];
                *user = (struct user){ .uid = instance->owner,
                                       .spilled = spill_use_get_coming(instance->manager,
                                                                       instance->owner) };
        }
        user->pool += get_pool_bytes(instance);
        user->spilled += spill_use_get_own(instance);
        user->spilled += instance->reserve ? instance->reserve->size : 0;
}

static int users_init(struct users *users, const struct manager *manager)
{
        const struct instance *instance;

        users->users = calloc(list_count(&manager->instances) + 1, sizeof(*users->users));
        if (!users->users)
                return -ENOMEM;
        list_for_each(instance, &manager->instances, link)
                add_instance(users, instance);
        for (size_t i = 0; i < users->n; i++) {
                users->spilled += users->users[i].spilled;
                users->n_spilled += users->users[i].spilled > 0;
        }
        return 0;
}

/* What may go to the spill of @user's: as with the pool, nobody has it all (account.h). */
static uint64_t get_spill_room(const struct manager *manager, const struct users *users,
                               const struct user *user)
{
        uint64_t limit = manager->options->spill_limit;

        if (!manager->options->spill_directory[0])
                return 0;
        if (limit == 0)
                return UINT64_MAX;
        if (account_is_operator(user->uid))
                return users->spilled < limit ? limit - users->spilled : 0;
        return account_room(limit, users->spilled, user->spilled,
                            users->n_spilled + (user->spilled == 0));
}

/* Who goes. */

bool make_room_can_go(const struct instance *instance)
{
        const struct guest *guest;

        if (!instance_is_off(instance) || instance->operation || instance->image ||
            instance->is_unsettled)
                return false;
        list_for_each(guest, &instance->guests, link)
                if (guest_is_dead(guest) || guest->spilling)
                        return false;
        return get_pool_bytes(instance) > 0;
}

struct search {
        const struct operation *operation;
        struct users users;
        bool is_own;      /* only vGPUs of the operation's user */
        uint64_t surplus; /* backing.h */
        uint64_t sum;
        struct instance *first;
};

static void search_deinit(struct search *search)
{
        users_deinit(&search->users);
}

static bool goes_before(const struct search *search, const struct instance *one,
                        const struct instance *other)
{
        const struct user *of_one = find_user(&search->users, one->owner);
        const struct user *of_other = find_user(&search->users, other->owner);

        if (of_one->pool != of_other->pool)
                return of_one->pool > of_other->pool;
        return one->off_since_ns < other->off_since_ns;
}

/* Also when nothing of the operation's user can go, nobody is sent away who has less than him. */
static bool has_less(const struct search *search, const struct instance *instance)
{
        const struct user *own = find_user(&search->users, search->operation->instance->owner);

        return find_user(&search->users, instance->owner)->pool < own->pool;
}

/* What is kept for vGPUs of overcommitted devices is theirs alone, and that they can leave was promised. */
static bool would_help(const struct search *search, const struct instance *instance)
{
        const struct instance *own = search->operation->instance;
        bool is_promised = backing_is_needed(own);

        if (search->is_own && instance->owner != own->owner)
                return false;
        if (backing_is_needed(instance) && reserve_is_backed(instance))
                return is_promised || (search->surplus > 0 && !has_less(search, instance));
        return !has_less(search, instance) && (is_promised || !backing_is_needed(instance));
}

/* Those that have no place of their own on the disk get what is left of it. */
static bool has_place(const struct search *search, const struct instance *instance)
{
        const struct manager *manager = instance->manager;
        const struct user *user = find_user(&search->users, instance->owner);
        uint64_t bytes = get_pool_bytes(instance);

        return reserve_is_backed(instance) ||
               ((manager->spill_too_much == 0 || bytes < manager->spill_too_much) &&
                bytes <= get_spill_room(manager, &search->users, user));
}

/* What an operation of others may have of it. */
static uint64_t get_gain(struct search *search, const struct instance *instance)
{
        uint64_t bytes = get_pool_bytes(instance);

        if (!backing_is_needed(instance) || !reserve_is_backed(instance) ||
            backing_is_needed(search->operation->instance))
                return bytes;
        if (bytes > search->surplus)
                bytes = search->surplus;
        search->surplus -= bytes;
        return bytes;
}

static void look_at(struct search *search, struct instance *instance)
{
        if (instance == search->operation->instance || !make_room_can_go(instance) ||
            !would_help(search, instance) || !has_place(search, instance))
                return;
        search->sum += get_gain(search, instance);
        if (!search->first || goes_before(search, instance, search->first))
                search->first = instance;
}

static int look(struct search *search, const struct operation *operation, bool is_own)
{
        const struct manager *manager = operation->instance->manager;
        struct instance *instance;
        int r = users_init(&search->users, manager);

        search->operation = operation;
        search->is_own = is_own;
        search->surplus = backing_get_surplus(manager);
        if (r < 0)
                return r;
        list_for_each(instance, &manager->instances, link)
                look_at(search, instance);
        return 0;
}

/* Waiting. */

static void end(struct operation *operation)
{
        operation->making.timer = sd_event_source_disable_unref(operation->making.timer);
        operation->making.then = NULL; /* it waits no more */
        list_remove(&operation->making.link);
        operation_end_part(operation);
}

static void on_spilled(struct manager *manager, int error);

/* All of it: each process has a file of its own. */
int make_room_send(struct instance *victim)
{
        struct guest *guest;
        int r = 0;

        list_for_each(guest, &victim->guests, link)
                if (r == 0 && pool_get_length(guest->reservation) > 0)
                        r = spilling_begin(guest, on_spilled);
        return r;
}

static const char *explain(const struct manager *manager, const struct search *search)
{
        if (!manager->options->spill_directory[0])
                return NULL;
        if (manager->spill_too_much > 0)
                return "the spill takes no more (No space left on device)";
        return search->sum > 0 || manager->options->spill_limit == 0
                       ? "what could go to the spill is too little"
                       : "and the spill has no room for more (--spill-limit)";
}

/*
 * Is another vGPU on its way, which can go to the disk when it is off its device, or gives room back? One that waits
 * for room itself is none.
 */
static bool has_others_under_way(const struct operation *operation)
{
        const struct manager *manager = operation->instance->manager;
        const struct instance *instance;

        if (!backing_is_needed(operation->instance))
                return false;
        list_for_each(instance, &manager->instances, link)
                if (instance != operation->instance && instance->operation &&
                    !instance->operation->making.then && backing_is_needed(instance))
                        return true;
        return false;
}

/* Starts what is still to be done. False: @ret_why it cannot be done. */
static bool try_to_spill(struct operation *operation, uint64_t missing, bool is_own,
                         const char **ret_why)
{
        struct manager *manager = operation->instance->manager;
        CLEANUP(search_deinit) struct search search = { 0 };
        int r;

        if (reading_give_up(manager) || !spilling_is_idle(manager))
                return true;
        r = look(&search, operation, is_own);
        *ret_why = explain(manager, &search);
        if (r < 0 || !search.first || search.sum < missing)
                return r == 0 && has_others_under_way(operation);
        manager->spill_tried = get_pool_bytes(search.first);
        r = make_room_send(search.first);
        if (r == 0 || !spilling_is_idle(manager))
                return true;
        *ret_why = strerror(-r);
        return false;
}

/* True: it is over. */
static bool try(struct operation *operation)
{
        const struct instance *instance = operation->instance;
        uint64_t available, bytes = operation->making.bytes;
        struct failure failure = { 0 };
        bool is_own;
        const char *why = NULL;
        char owner[POOL_OWNER_MAX];

        policy_name_owner(instance, owner);
        if (policy_check_pool(instance, owner, bytes, &failure) == 0) {
                operation->making.then(operation);
                return true;
        }
        available = policy_get_available(instance, owner);
        is_own = policy_check_user(instance, owner, bytes, &failure) < 0;
        if ((!is_own || policy_may_user_ever(instance, owner, bytes)) &&
            try_to_spill(operation, bytes > available ? bytes - available : 0, is_own, &why))
                return false;
        lack_fail_pool(operation, bytes, why);
        return true;
}

/* The list of those that wait may change with each. */
static void try_all(struct manager *manager)
{
        struct list waiting;

        list_init(&waiting);
        while (!list_is_empty(&manager->room_makers)) {
                struct operation *operation =
                        list_entry(manager->room_makers.next, struct operation, making.link);

                list_remove(&operation->making.link);
                list_append(&waiting, &operation->making.link);
                if (try(operation))
                        end(operation);
        }
        while (!list_is_empty(&waiting)) {
                struct list *link = waiting.next;

                list_remove(link);
                list_append(&manager->room_makers, link);
        }
}

void make_room_again(struct manager *manager)
{
        try_all(manager);
}

/* A disk that fails does so for all of them. One that is full may have room for a smaller vGPU. */
static void on_spilled(struct manager *manager, int error)
{
        bool has_failed = error < 0 && error != -ECANCELED && error != -ENOSPC;
        char why[80];

        if (error == -ENOSPC)
                manager->spill_too_much = manager->spill_tried;
        snprintf(why, sizeof(why), "the spill takes no more (%s)", strerror(-error));
        while (has_failed && !list_is_empty(&manager->room_makers)) {
                struct operation *operation =
                        list_entry(manager->room_makers.next, struct operation, making.link);

                lack_fail_pool(operation, operation->making.bytes, why);
                end(operation);
        }
        try_all(manager);
        if (manager->after_spill && (error == 0 || error == -ECANCELED)) /* not again and again */
                manager->after_spill(manager);
}

static void wait_on(struct operation *operation);

/* Others may have given room back meanwhile, and a disk that hangs says nothing. */
static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct operation *operation = userdata;

        (void)source, (void)usec;
        operation->making.timer = sd_event_source_disable_unref(operation->making.timer);
        if (try(operation)) {
                end(operation);
        } else if (clock_now(CLOCK_MONOTONIC) >= operation->making.deadline_ns) {
                lack_fail_pool(operation, operation->making.bytes,
                               "the disk of the spill does not answer");
                end(operation);
        } else {
                wait_on(operation);
        }
        return 0;
}

/* Without a timer it waits for the disk alone. */
static void wait_on(struct operation *operation)
{
        (void)sd_event_add_time_relative(operation->instance->manager->event,
                                         &operation->making.timer, CLOCK_MONOTONIC, LOOK_US, 0,
                                         on_time, operation);
}

void make_room(struct operation *operation, uint64_t bytes,
               void (*then)(struct operation *operation))
{
        operation->making.bytes = bytes;
        operation->making.then = then;
        operation->making.deadline_ns =
                clock_now(CLOCK_MONOTONIC) + DISK_NS + bytes * DISK_NS_PER_BYTE;
        operation->instance->manager->spill_too_much = 0; /* the disk may have room again */
        operation_begin_part(operation);
        list_append(&operation->instance->manager->room_makers, &operation->making.link);
        if (try(operation))
                end(operation);
        else
                wait_on(operation);
}
