/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/keep-once.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "daemon/log.h"
#include "hash/hash.h"
#include "manager/model/equal-blocks.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/pool-group.h"
#include "manager/model/promise.h"

/* Of the memory of one that may have to hand over. */
#define WORTH_PART 16

struct comparison {
        struct list link; /* in the manager's comparisons */
        struct guest *guest;
        struct pool_place *places; /* of the others; NULL: it has not begun */
        size_t n, next;
        sd_event_source *source;
        kept_once_fn then;
};

/* In one turn of the event loop: about a millisecond. */
#define BLOCKS_A_TURN 2

/* Comparing. */

static const void *map_block(const struct pool *pool, const struct pool_place *place)
{
        const void *address = mmap(NULL, HASH_BLOCK, PROT_READ, MAP_SHARED,
                                   pool_get_slab(pool, place->slab), (off_t)place->offset);

        return address == MAP_FAILED ? NULL : address;
}

static void unmap_block(const void *address)
{
        if (address)
                munmap((void *)(uintptr_t)address, HASH_BLOCK);
}

static bool is_equal(const struct guest *guest, const struct pool_place *own,
                     const struct pool_place *place)
{
        const struct pool *pool = guest->instance->manager->pool;
        const void *one = map_block(pool, own), *other = map_block(pool, place);
        bool is_equal = one && other && memcmp(one, other, HASH_BLOCK) == 0;

        if (one && other && !is_equal)
                log_event_of(guest->payer, LOG_LEVEL_ERROR,
                             "memory that is not the same was taken for the same; both are kept",
                             "vgpu=%s pid=%d bytes=%" PRIu64, guest->instance->name,
                             (int)guest->pid, HASH_BLOCK);
        unmap_block(one);
        unmap_block(other);
        return is_equal;
}

/* What is not the same, or could not be compared, stays twice. */
static void compare_next(struct guest *guest)
{
        struct pool_place *places = guest->comparison->places;
        size_t n = guest->comparison->n, n_compared = 0, i;
        CLEANUP(freep) struct pool_place *own = calloc(n + 1, sizeof(*own));

        if (own)
                pool_get_places(guest->reservation, HASH_BLOCK, own, n);
        for (i = guest->comparison->next; i < n && n_compared < BLOCKS_A_TURN; i++) {
                if (!places[i].slab)
                        continue;
                n_compared++;
                if (!own || !own[i].slab || !is_equal(guest, &own[i], &places[i]))
                        places[i].slab = 0;
        }
        guest->comparison->next = i;
}

/* Joining. */

static bool join(struct guest *guest, const struct pool_place *places, size_t n)
{
        return places && pool_join(guest->instance->manager->pool, guest->reservation, HASH_BLOCK,
                                   places, n) == 0;
}

/* Of what was compared, what is still there: others have come and gone meanwhile. */
static bool join_compared(struct guest *guest)
{
        CLEANUP(freep) struct pool_place *places = NULL;
        const struct pool_place *compared = guest->comparison->places;
        size_t n = 0;

        if (equal_blocks_find(guest, &places, &n) < 0)
                return false;
        for (size_t i = 0; i < n && places; i++)
                if (compared[i].slab != places[i].slab || compared[i].offset != places[i].offset)
                        places[i].slab = 0;
        return join(guest, places, n);
}

/*
 * Turns. Of the guests of one group one compares at a time: two would join each other's blocks and leave those
 * that a third has. Guests of several groups compare in turn.
 */

static struct comparison *find_first(const struct instance *instance)
{
        struct comparison *comparison;

        list_for_each(comparison, &instance->manager->comparisons, link)
                if (pool_group_is_same(comparison->guest->instance, instance))
                        return comparison;
        return NULL;
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata);

/*
 * A timer of its own for each turn, and no deferred event that is enabled again: that counts as pending since
 * its creation, and nobody else would have a turn.
 */
static int wait_for_turn(struct comparison *comparison)
{
        comparison->source = sd_event_source_disable_unref(comparison->source);
        return sd_event_add_time_relative(comparison->guest->instance->manager->event,
                                          &comparison->source, CLOCK_MONOTONIC, 0, 1, on_turn,
                                          comparison->guest);
}

static void comparison_free(struct comparison *comparison)
{
        sd_event_source_disable_unref(comparison->source);
        list_remove(&comparison->link);
        comparison->guest->comparison = NULL;
        free(comparison->places);
        free(comparison);
}

static void end(struct comparison *comparison, bool has_moved)
{
        struct guest *guest = comparison->guest;
        kept_once_fn then = comparison->then;

        comparison_free(comparison);
        then(guest, has_moved);
}

/* Without memory for a turn, what is equal stays twice. */
static void wake_next(const struct instance *instance)
{
        struct comparison *next = find_first(instance);

        while (next && !next->source && wait_for_turn(next) < 0) {
                end(next, false);
                next = find_first(instance);
        }
}

void keep_once_forget(struct guest *guest)
{
        if (!guest->comparison)
                return;
        comparison_free(guest->comparison);
        wake_next(guest->instance);
}

/* False: nothing is equal any more. */
static bool begin(struct comparison *comparison)
{
        comparison->next = 0;
        return equal_blocks_find(comparison->guest, &comparison->places, &comparison->n) >= 0 &&
               comparison->places;
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;
        struct comparison *comparison = guest->comparison;
        const struct instance *instance = guest->instance;
        kept_once_fn then = comparison->then;
        bool has_moved = false;

        (void)source, (void)usec;
        if (comparison->places || begin(comparison)) {
                compare_next(guest);
                if (comparison->next < comparison->n && wait_for_turn(comparison) >= 0)
                        return 0;
                if (comparison->next == comparison->n)
                        has_moved = join_compared(guest);
        }
        comparison_free(comparison);
        wake_next(instance);
        then(guest, has_moved);
        return 0;
}

/*
 * Blocks that are held twice keep their vGPU from handing over (operation/handover.h). Where vGPUs take turns that
 * costs more than a few blocks are worth, and almost all programs have a few: of zeros, say.
 */
static bool are_worth_it(const struct guest *guest, const struct pool_place *places, size_t n)
{
        size_t n_equal = 0;

        for (size_t i = 0; i < n; i++)
                n_equal += places[i].slab != 0;
        return n_equal >= n / WORTH_PART || !promise_is_any_overcommitted(guest->instance);
}

static bool compare(struct guest *guest, kept_once_fn then)
{
        struct comparison *comparison = calloc(1, sizeof(*comparison));
        const bool is_first = !find_first(guest->instance);

        if (!comparison)
                return false;
        comparison->guest = guest;
        comparison->then = then;
        list_init(&comparison->link);
        guest->comparison = comparison;
        if (is_first && wait_for_turn(comparison) < 0) {
                comparison_free(comparison);
                return false;
        }
        list_append(&guest->instance->manager->comparisons, &comparison->link);
        return true;
}

bool keep_once(struct guest *guest, bool must_verify, bool *ret_has_moved, kept_once_fn then)
{
        CLEANUP(freep) struct pool_place *places = NULL;
        size_t n = 0;

        *ret_has_moved = false;
        if (equal_blocks_find(guest, &places, &n) < 0 || !places || !are_worth_it(guest, places, n))
                return false;
        if (must_verify)
                return compare(guest, then);
        *ret_has_moved = join(guest, places, n);
        return false;
}
