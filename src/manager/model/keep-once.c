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

/* In one turn of the event loop: some milliseconds. */
#define BLOCKS_A_TURN 8

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

static int on_turn(sd_event_source *source, void *userdata)
{
        struct guest *guest = userdata;

        compare_next(guest);
        if (guest->comparison.next < guest->comparison.n)
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        guest->job.has_moved |= join_compared(guest);
        guest->comparison.source = sd_event_source_disable_unref(guest->comparison.source);
        free(TAKE(guest->comparison.places));
        guest->comparison.then(guest);
        return 0;
}

bool keep_once(struct guest *guest, bool must_verify, kept_once_fn then)
{
        CLEANUP(freep) struct pool_place *places = NULL;
        size_t n = 0;

        if (equal_blocks_find(guest, &places, &n) < 0 || !places)
                return false;
        if (!must_verify) {
                guest->job.has_moved |= join(guest, places, n);
                return false;
        }
        if (sd_event_add_defer(guest->instance->manager->event, &guest->comparison.source, on_turn,
                               guest) < 0)
                return false;
        guest->comparison.places = TAKE(places);
        guest->comparison.n = n;
        guest->comparison.next = 0;
        guest->comparison.then = then;
        return true;
}
