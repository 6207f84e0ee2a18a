/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/backing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "manager/model/account.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/place-text.h"
#include "manager/model/pool-group.h"
#include "manager/model/promise.h"
#include "manager/model/reserve.h"

/* In the pool a vGPU has whole slabs. */
static uint64_t round_up(uint64_t bytes, uint64_t slab_size)
{
        return (bytes + slab_size - 1) / slab_size * slab_size;
}

/* Do the vGPUs of @device not fit on it all together? */
static bool is_needed_on(const struct device *device)
{
        return promise_is_overcommitted(device) &&
               promise_get_sum(device, NULL) > device->memory_total;
}

bool backing_is_needed(const struct instance *instance)
{
        bool is = false;

        for (size_t i = 0; i < instance->n_parts; i++)
                is |= is_needed_on(instance->part[i].device);
        return is;
}

static uint64_t get_owned(const struct instance *instance)
{
        uint64_t room;

        return pool_get_owned(instance->manager->pool, instance->uuid, &room);
}

/* Who needs a place. */

struct place_of {
        const struct instance *of; /* NULL: a new one */
        struct instance *instance; /* the same, if something is to be held */
        uint64_t quota, bytes;     /* of all of its parts */
        bool is_backed, was_backed;
        struct payer *payer; /* once it is asked whether it can be on the disk */
};

/* A user, and how much more of the disk may be held for that user's vGPUs. */
struct payer {
        uid_t user;
        uint64_t left;
};

/* One vGPU is or will be somewhere with a quota that it has not yet. */
struct wish {
        const struct place *place;     /* nowhere: there is no such */
        uint64_t bytes;                /* on each device */
        const struct instance *except; /* that is it */
        struct instance
                *instance; /* the same, if something is to be held for it; NULL: only asked */
};

struct plan {
        const struct manager *manager;
        struct pool_info info;
        struct place_of *places;
        size_t n;
        struct payer *payers;
        size_t n_payers;
        uint64_t others;       /* what those have of the pool that have no place */
        uint64_t pool, window; /* of those with a place in the pool, and on the disk */
        uint64_t disk, free;   /* what they take of the disk that is not held yet, and may */
};

static void plan_deinit(struct plan *plan)
{
        free(plan->payers);
        free(plan->places);
}

static bool is_of(const struct instance *instance, const struct device *device)
{
        return instance_is_on(instance, device) || instance_is_bound_for(instance, device);
}

static bool is_wished_on(const struct wish *wish, const struct device *device)
{
        uint64_t bytes = place_has(wish->place, device) ? wish->bytes : 0;

        return promise_is_overcommitted(device) &&
               promise_get_sum(device, wish->except) + bytes > device->memory_total;
}

/* Is what it wishes for too much for one of its devices? */
static bool is_wished(const struct wish *wish)
{
        bool is = false;

        for (size_t i = 0; i < place_count(wish->place); i++)
                is |= is_wished_on(wish, wish->place->device[i]);
        return is;
}

static void add_place(struct plan *plan, const struct instance *of, struct instance *instance,
                      uint64_t quota)
{
        struct place_of *place = &plan->places[plan->n++];

        *place = (struct place_of){ .of = of,
                                    .instance = instance,
                                    .quota = quota,
                                    .bytes = round_up(quota, plan->info.slab_size) };
        place->is_backed = place->was_backed = of && reserve_has(of, quota);
        if (place->is_backed && place->bytes > plan->window)
                plan->window = place->bytes;
        if (!place->is_backed)
                plan->pool += place->bytes;
}

static void add_all(struct plan *plan, const struct wish *wish)
{
        const struct manager *manager = plan->manager;
        struct instance *instance;

        list_for_each(instance, &manager->instances, link) {
                bool has_place = false;

                if (instance == wish->except)
                        continue;
                for (size_t i = 0; i < manager->n_devices; i++)
                        has_place |= is_of(instance, &manager->device[i]) &&
                                     is_wished_on(wish, &manager->device[i]);
                if (has_place)
                        add_place(plan, instance, instance, instance_get_quota(instance));
                else
                        plan->others += get_owned(instance);
        }
        if (is_wished(wish))
                add_place(plan, wish->except, wish->instance,
                          wish->bytes * place_count(wish->place));
}

static int plan_init(struct plan *plan, const struct manager *manager, const struct wish *wish)
{
        const struct instance *instance;

        *plan = (struct plan){ .manager = manager };
        pool_get_info(manager->pool, &plan->info);
        plan->places = calloc(list_count(&manager->instances) + 1, sizeof(*plan->places));
        plan->payers = calloc(list_count(&manager->instances) + 1, sizeof(*plan->payers));
        if (!plan->places || !plan->payers)
                return -ENOMEM;
        plan->others = plan->info.held;
        add_all(plan, wish);
        list_for_each(instance, &manager->instances, link)
                plan->others +=
                        pool_group_get_owned(instance); /* none of an overcommitted device's */
        return 0;
}

static bool is_enough(const struct plan *plan)
{
        return plan->others + plan->pool + plan->window <= plan->info.limit;
}

static struct payer *find_payer(struct plan *plan, const struct reserve_users *users, uid_t user)
{
        struct payer *payer = plan->payers;

        while (payer < plan->payers + plan->n_payers && payer->user != user)
                payer++;
        if (payer == plan->payers + plan->n_payers) {
                *payer = (struct payer){ user, reserve_get_share(plan->manager, users, user,
                                                                 plan->free) };
                plan->n_payers++;
        }
        return payer;
}

/* As with the pool, no user has it all. A vGPU that is only asked about has no owner yet: it may have what root may. */
static void find_payers(struct plan *plan)
{
        const struct reserve_users users = reserve_count_users(plan->manager);

        plan->free = reserve_get_free(plan->manager, NULL);
        for (size_t i = 0; i < plan->n; i++)
                plan->places[i].payer = find_payer(
                        plan, &users, plan->places[i].of ? plan->places[i].of->owner : 0);
}

/* What it needs of the disk beyond what is held for it. */
static uint64_t get_need(const struct place_of *place)
{
        const struct reserve *reserve = place->of ? place->of->reserve : NULL;
        uint64_t size = reserve_get_size(place->quota), has = reserve ? reserve->size : 0;

        return size > has ? size - has : 0;
}

static bool can_move(const struct place_of *place)
{
        return !place->is_backed && get_need(place) <= place->payer->left;
}

/* The new one; else the largest that makes the window no larger, and if there is none, the smallest. */
static bool goes_before(const struct plan *plan, const struct place_of *one,
                        const struct place_of *other)
{
        bool fits = one->bytes <= plan->window, other_fits = other->bytes <= plan->window;

        if (fits != other_fits)
                return fits;
        return fits ? one->bytes > other->bytes : one->bytes < other->bytes;
}

static struct place_of *choose(struct plan *plan)
{
        struct place_of *first = NULL;

        for (size_t i = 0; i < plan->n; i++) {
                struct place_of *place = &plan->places[i];

                if (can_move(place) && (!first || goes_before(plan, place, first)))
                        first = place;
        }
        return first;
}

static void move_to_disk(struct plan *plan, struct place_of *place)
{
        uint64_t need = get_need(place);

        place->is_backed = true;
        plan->pool -= place->bytes;
        plan->disk += need;
        place->payer->left -= need;
        if (place->bytes > plan->window)
                plan->window = place->bytes;
}

/* False: pool and disk together have not enough. */
static bool plan_make(struct plan *plan)
{
        struct place_of *place;

        if (is_enough(plan) || plan->n == 0)
                return true;
        find_payers(plan);
        place = &plan->places[plan->n - 1]; /* the new one comes last */
        while (place && !is_enough(plan) && plan->disk <= plan->free) {
                if (can_move(place))
                        move_to_disk(plan, place);
                place = choose(plan);
        }
        return is_enough(plan) && plan->disk <= plan->free;
}

static bool is_possible(const struct manager *manager, const struct place *place, uint64_t bytes,
                        const struct instance *except)
{
        const struct wish wish = { place, bytes, except, NULL };
        CLEANUP(plan_deinit) struct plan plan = { 0 };

        if (!is_wished(&wish))
                return true;
        return plan_init(&plan, manager, &wish) == 0 && plan_make(&plan);
}

static uint64_t smaller(uint64_t one, uint64_t other)
{
        return one < other ? one : other;
}

static uint64_t larger(uint64_t one, uint64_t other)
{
        return one > other ? one : other;
}

/* Of the smallest of its devices. */
static uint64_t get_size(const struct place *place)
{
        uint64_t size = UINT64_MAX;

        for (size_t i = 0; i < place_count(place); i++)
                size = smaller(size, place->device[i]->memory_total);
        return size;
}

/* In whole slabs, as far as one vGPU can be: up to the device's own size. */
static uint64_t search_left(const struct manager *manager, const struct place *place,
                            const struct instance *except, uint64_t slab_size)
{
        uint64_t low = 0, high = get_size(place) / slab_size + 1;

        while (high - low > 1) {
                uint64_t middle = low + (high - low) / 2;

                if (is_possible(manager, place, middle * slab_size, except))
                        low = middle;
                else
                        high = middle;
        }
        return low * slab_size;
}

/* What the pool alone has, which may be for several. */
static uint64_t get_left_of_pool(const struct manager *manager, const struct place *place,
                                 const struct instance *except)
{
        const struct wish wish = { place, get_size(place) + 1, except, NULL };
        CLEANUP(plan_deinit) struct plan plan = { 0 };
        uint64_t taken;

        if (!is_wished(&wish) || plan_init(&plan, manager, &wish) < 0)
                return 0;
        taken = plan.others + plan.pool + plan.window - plan.places[plan.n - 1].bytes;
        return taken < plan.info.limit ? (plan.info.limit - taken) / plan.info.slab_size *
                                                 plan.info.slab_size / place_count(place)
                                       : 0;
}

/* What all of its devices have themselves. */
static uint64_t get_left_there(const struct place *place, const struct instance *except)
{
        uint64_t left = UINT64_MAX;

        for (size_t i = 0; i < place_count(place); i++) {
                uint64_t promised = promise_get_sum(place->device[i], except);
                uint64_t total = place->device[i]->memory_total;

                left = smaller(left, promised < total ? total - promised : 0);
        }
        return left;
}

/* On each of its devices. */
static uint64_t get_left(const struct manager *manager, const struct place *place,
                         const struct instance *except)
{
        uint64_t left =
                larger(get_left_there(place, except), get_left_of_pool(manager, place, except));
        struct pool_info info;

        pool_get_info(manager->pool, &info);
        if (reserve_get_free(manager, NULL) > 0)
                left = larger(left, search_left(manager, place, except, info.slab_size));
        return left;
}

uint64_t backing_get_left(const struct device *device, const struct instance *except)
{
        const struct place place = { { &device->manager->device[device->index] } };

        return get_left(device->manager, &place, except);
}

/* "device 0 is", or "devices 0,1 are" */
static const char *name_place(const struct place *place, char text[PLACE_TEXT_MAX + 16])
{
        bool has_one = place_count(place) == 1;
        char devices[PLACE_TEXT_MAX];

        snprintf(text, PLACE_TEXT_MAX + 16, has_one ? "device %s is" : "devices %s are",
                 place_describe(place, devices));
        return text;
}

#define DISK_TEXT_MAX 512

/* What the disk has, and why a user does not get all of it. */
static const char *describe_disk(const struct manager *manager, const struct instance *asks,
                                 char text[DISK_TEXT_MAX])
{
        const char *directory = manager->options->spill_directory;
        char free_text[SIZE_TEXT_MAX], kept_text[SIZE_TEXT_MAX], share_text[SIZE_TEXT_MAX];
        struct reserve_users users = reserve_count_users(manager);
        uid_t owner = asks ? asks->owner : 0;
        uint64_t kept, free = reserve_get_free(manager, &kept);
        int n;

        if (manager->spill_failure[0]) {
                snprintf(text, DISK_TEXT_MAX, "%.200s is not counted, as it failed: %.200s",
                         directory, manager->spill_failure);
                return text;
        }
        size_format(free_text, free);
        size_format(kept_text, kept);
        size_format(share_text, reserve_get_share(manager, &users, owner, free));
        n = snprintf(text, DISK_TEXT_MAX,
                     "the disk of %.200s has room for %s more, beside %s that it keeps free",
                     directory, free_text, kept_text);
        if (!account_is_operator(owner))
                snprintf(text + n, DISK_TEXT_MAX - (size_t)n,
                         "; %s more of it can be held for user %u", share_text, owner);
        return text;
}

static int refuse(const struct manager *manager, const struct place *place, uint64_t bytes,
                  const struct instance *except, struct failure *failure)
{
        const char *directory = manager->options->spill_directory;
        char left_text[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX], disk[DISK_TEXT_MAX];
        char where[PLACE_TEXT_MAX + 16];
        bool has_one = place_count(place) == 1;
        const char *it_has = has_one ? "it has" : "each has";

        name_place(place, where);
        size_format(left_text, get_left(manager, place, except));
        size_format(wanted, bytes);
        if (!directory[0])
                return failure_set(failure, -ENOSPC, "NoRoom",
                                   "ask for less, remove a vGPU there, or start vgpud with a "
                                   "larger --pool-limit or with --spill",
                                   "%s overcommitted as far as the pool has room for all of %s "
                                   "vGPUs at once: %s %s left to promise, not %s",
                                   where, has_one ? "its" : "their", it_has, left_text, wanted);
        return failure_set(
                failure, -ENOSPC, "NoRoom",
                "ask for less, remove a vGPU there, make room on that disk, or start vgpud with "
                "a larger --pool-limit or --spill-limit",
                "%s overcommitted as far as pool and disk have room for all of %s vGPUs at once: "
                "%s %s left to promise, not %s; %s",
                where, has_one ? "its" : "their", it_has, left_text, wanted,
                describe_disk(manager, except, disk));
}

/* Who is there already has a place, or had none even then. */
static bool has_been_promised(const struct place *place, uint64_t bytes,
                              const struct instance *instance)
{
        if (!instance || bytes > instance->frame_buffer || list_is_empty(&instance->link))
                return false;
        for (size_t i = 0; i < place_count(place); i++)
                if (!instance_is_on(instance, place->device[i]))
                        return false;
        return true;
}

int backing_check(const struct place *place, uint64_t bytes, const struct instance *except,
                  struct failure *failure)
{
        const struct manager *manager = place->device[0]->manager;

        if (has_been_promised(place, bytes, except) || is_possible(manager, place, bytes, except))
                return 0;
        return refuse(manager, place, bytes, except, failure);
}

/* Holding. */

/* What no device needs any more. */
static void tidy(struct manager *manager, const struct instance *except)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance != except && instance->reserve && !instance->operation &&
                    !backing_is_needed(instance) && !reserve_is_used(instance))
                        reserve_drop(instance);
}

static void undo(const struct plan *plan)
{
        for (size_t i = 0; i < plan->n; i++) {
                const struct place_of *place = &plan->places[i];

                if (place->instance && !place->was_backed && !reserve_is_used(place->instance) &&
                    reserve_is_backed(place->instance))
                        reserve_drop(place->instance);
        }
}

static int carry_out(const struct plan *plan, struct failure *failure)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->n; i++) {
                const struct place_of *place = &plan->places[i];

                if (!place->is_backed || place->was_backed)
                        continue;
                r = reserve_hold(place->instance, place->quota, failure);
                if (r == 0)
                        log_event_of(place->instance->owner, LOG_LEVEL_INFO,
                                     "room on disk is held for a vGPU", "vgpu=%s bytes=%" PRIu64,
                                     place->instance->name, place->instance->reserve->size);
        }
        if (r < 0)
                undo(plan);
        return r;
}

static int hold(struct manager *manager, const struct wish *wish, struct failure *failure)
{
        CLEANUP(plan_deinit) struct plan plan = { 0 };
        int r = plan_init(&plan, manager, wish);

        if (r < 0)
                return failure_from_errno(failure, r, "holding room for the vGPUs");
        if (!plan_make(&plan))
                return -ENOSPC;
        return carry_out(&plan, failure);
}

int backing_hold(struct instance *instance, const struct place *place, uint64_t frame_buffer,
                 struct failure *failure)
{
        const struct wish wish = { place, frame_buffer, instance, instance };
        int r;

        tidy(instance->manager, instance);
        if (!is_wished(&wish) || has_been_promised(place, frame_buffer, instance))
                return 0;
        r = hold(instance->manager, &wish, failure);
        return r == -ENOSPC && !failure->name
                       ? refuse(instance->manager, place, frame_buffer, instance, failure)
                       : r;
}

int backing_hold_all(struct manager *manager, struct failure *failure)
{
        const struct wish nothing = { &place_nowhere, 0, NULL, NULL };
        int r;

        tidy(manager, NULL);
        r = hold(manager, &nothing, failure);
        if (r == -ENOSPC)
                return failure_set(failure, r, "NoRoom",
                                   "start vgpud with a larger --pool-limit, or with --spill",
                                   "pool and disk have not as much room as overcommitted devices "
                                   "have promised");
        return r;
}

/* What is held of the pool. */

uint64_t backing_get_held(const struct manager *manager, const struct instance *asks)
{
        bool is_needed = asks && backing_is_needed(asks),
             is_backed = is_needed && reserve_is_backed(asks);
        uint64_t sum = 0, window = 0, own_of_backed = 0;
        const struct instance *instance;
        struct pool_info info;

        if (is_needed && !is_backed)
                return 0; /* it is held for itself */
        pool_get_info(manager->pool, &info);
        list_for_each(instance, &manager->instances, link) {
                uint64_t need = round_up(instance_get_quota(instance), info.slab_size), own;

                if (!backing_is_needed(instance))
                        continue;
                own = get_owned(instance);
                if (!reserve_is_backed(instance)) {
                        sum += own < need ? need - own : 0;
                        continue;
                }
                own_of_backed += own;
                window = larger(window, need);
        }
        if (!is_backed && window > own_of_backed)
                sum += window - own_of_backed;
        return sum;
}

uint64_t backing_get_surplus(const struct manager *manager)
{
        const struct instance *instance;
        uint64_t sum = 0, window = 0;
        struct pool_info info;

        pool_get_info(manager->pool, &info);
        list_for_each(instance, &manager->instances, link) {
                if (!backing_is_needed(instance) || !reserve_is_backed(instance))
                        continue;
                sum += get_owned(instance);
                window = larger(window, round_up(instance_get_quota(instance), info.slab_size));
        }
        return sum > window ? sum - window : 0;
}
