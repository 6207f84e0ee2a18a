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
        struct pool_place *places = guest->comparison.places;
        size_t n = guest->comparison.n, n_compared = 0, i;
        CLEANUP(freep) struct pool_place *own = calloc(n + 1, sizeof(*own));

        if (own)
                pool_get_places(guest->reservation, HASH_BLOCK, own, n);
        for (i = guest->comparison.next; i < n && n_compared < BLOCKS_A_TURN; i++) {
                if (!places[i].slab)
                        continue;
                n_compared++;
                if (!own || !own[i].slab || !is_equal(guest, &own[i], &places[i]))
                        places[i].slab = 0;
        }
        guest->comparison.next = i;
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
        const struct pool_place *compared = guest->comparison.places;
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

static struct guest *find_first(const struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->manager->comparisons, comparison.link)
                if (pool_group_is_same(guest->instance, instance))
                        return guest;
        return NULL;
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata);

/*
 * A timer of its own for each turn, and no deferred event that is enabled again: that counts as pending since
 * its creation, and nobody else would have a turn.
 */
static int wait_for_turn(struct guest *guest)
{
        guest->comparison.source = sd_event_source_disable_unref(guest->comparison.source);
        return sd_event_add_time_relative(guest->instance->manager->event,
                                          &guest->comparison.source, CLOCK_MONOTONIC, 0, 1, on_turn,
                                          guest);
}

/* Without memory for a turn, what is equal stays twice. */
static void wake_next(const struct instance *instance)
{
        struct guest *next = find_first(instance);

        while (next && !next->comparison.source && wait_for_turn(next) < 0) {
                list_remove(&next->comparison.link);
                next->comparison.then(next);
                next = find_first(instance);
        }
}

void keep_once_forget(struct guest *guest)
{
        guest->comparison.source = sd_event_source_disable_unref(guest->comparison.source);
        free(TAKE(guest->comparison.places));
        if (list_is_empty(&guest->comparison.link))
                return;
        list_remove(&guest->comparison.link);
        wake_next(guest->instance);
}

/* False: nothing is equal any more. */
static bool begin(struct guest *guest)
{
        guest->comparison.next = 0;
        return equal_blocks_find(guest, &guest->comparison.places, &guest->comparison.n) >= 0 &&
               guest->comparison.places;
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        if (guest->comparison.places || begin(guest)) {
                compare_next(guest);
                if (guest->comparison.next < guest->comparison.n && wait_for_turn(guest) >= 0)
                        return 0;
                if (guest->comparison.next == guest->comparison.n)
                        guest->copy.has_moved |= join_compared(guest);
        }
        keep_once_forget(guest);
        guest->comparison.then(guest);
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

bool keep_once(struct guest *guest, bool must_verify, kept_once_fn then)
{
        struct manager *manager = guest->instance->manager;
        CLEANUP(freep) struct pool_place *places = NULL;
        size_t n = 0;

        if (equal_blocks_find(guest, &places, &n) < 0 || !places || !are_worth_it(guest, places, n))
                return false;
        if (!must_verify) {
                guest->copy.has_moved |= join(guest, places, n);
                return false;
        }
        if (!find_first(guest->instance) && wait_for_turn(guest) < 0)
                return false;
        guest->comparison.then = then;
        list_append(&manager->comparisons, &guest->comparison.link);
        return true;
}
