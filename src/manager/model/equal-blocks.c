/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/equal-blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hash/hash.h"
#include "manager/model/clean-copy.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/model/pool-group.h"

/* Each is a row in the store and an entry in the answer to who writes an image. */
#define RUNS_MAX 4096

/* A table from hash to place, with open addressing. The hashes are random numbers already. */

struct entry {
        struct hash_value hash;
        struct pool_place place; /* slab 0: unused */
};

struct table {
        struct entry *entries;
        size_t mask;
};

static int table_init(struct table *table, size_t n)
{
        size_t size = 64;

        while (size < 2 * n)
                size *= 2;
        table->entries = calloc(size, sizeof(*table->entries));
        table->mask = size - 1;
        return table->entries ? 0 : -ENOMEM;
}

static void table_deinit(struct table *table)
{
        free(table->entries);
}

/* The entry of @hash, or the one that it would have. */
static struct entry *look_up(const struct table *table, const struct hash_value *hash)
{
        size_t i = hash->half[0] & table->mask;

        while (table->entries[i].place.slab && !hash_is_equal(&table->entries[i].hash, hash))
                i = (i + 1) & table->mask;
        return &table->entries[i];
}

static void add(struct table *table, const struct hash_value *hash, const struct pool_place *place)
{
        struct entry *entry = look_up(table, hash);

        if (place->slab && !entry->place.slab)
                *entry = (struct entry){ .hash = *hash, .place = *place };
}

/* Whose blocks there are. */

/* What is settled is not written to; of the guest's own vGPU it is this operation that would. */
static bool is_source(const struct instance *instance, const struct guest *guest)
{
        if (instance == guest->instance)
                return true;
        return pool_group_is_same(instance, guest->instance) && !policy_is_for_anybody(instance) &&
               instance_is_off(instance) && !instance->operation && !instance->image;
}

static bool is_in_slabs_of(const struct guest *other, const struct guest *guest)
{
        return strcmp(pool_get_owner(other->reservation), pool_get_owner(guest->reservation)) == 0;
}

static int add_guest(struct table *table, const struct guest *guest)
{
        CLEANUP(freep) struct pool_place *places = NULL;
        const struct hash_value *hashes;
        size_t n;

        hashes = clean_copy_get_hashes(guest, &n);
        if (!hashes)
                return 0;
        places = calloc(n + 1, sizeof(*places));
        if (!places)
                return -ENOMEM;
        pool_get_places(guest->reservation, HASH_BLOCK, places, n);
        for (size_t i = 0; i < n; i++)
                add(table, &hashes[i], &places[i]);
        return 0;
}

static size_t count_blocks(const struct guest *guest)
{
        const struct instance *instance;
        const struct guest *other;
        size_t sum = 0, n;

        list_for_each(instance, &guest->instance->manager->instances, link)
                if (is_source(instance, guest))
                        list_for_each(other, &instance->guests, link)
                                if (clean_copy_get_hashes(other, &n))
                                        sum += n;
        return sum;
}

/*
 * The guest's own come last: of two that are equal the one that somebody holds already is kept. Whoever still
 * compares is about to hold other blocks, and is no source: else of three that are equal two would be left.
 */
static int fill(struct table *table, const struct guest *guest)
{
        const struct instance *instance;
        const struct guest *other;
        int r = 0;

        list_for_each(instance, &guest->instance->manager->instances, link) {
                if (!is_source(instance, guest))
                        continue;
                list_for_each(other, &instance->guests, link)
                        if (r == 0 && other != guest && !guest_is_dead(other) &&
                            other->reservation && !other->comparison &&
                            is_in_slabs_of(other, guest))
                                r = add_guest(table, other);
        }
        return r < 0 ? r : add_guest(table, guest);
}

static bool is_next(const struct pool_place *place, const struct pool_place *before)
{
        return place->slab == before->slab && place->offset == before->offset + HASH_BLOCK;
}

/* The places, less those that are the guest's own. False: none are left, or in too many pieces. */
static bool find_all(const struct table *table, const struct hash_value *hashes,
                     struct pool_place *places, size_t n)
{
        struct pool_place before = { 0 };
        size_t n_runs = 0, n_found = 0;

        for (size_t i = 0; i < n; i++) {
                const struct pool_place own = places[i];
                const struct pool_place found = look_up(table, &hashes[i])->place;

                n_runs += !is_next(&found, &before);
                before = found;
                places[i] = own.slab == found.slab && own.offset == found.offset
                                    ? (struct pool_place){ 0 }
                                    : found;
                n_found += places[i].slab != 0;
        }
        return n_found > 0 && n_runs <= RUNS_MAX;
}

int equal_blocks_find(const struct guest *guest, struct pool_place **ret_places, size_t *ret_n)
{
        CLEANUP(table_deinit) struct table table = { 0 };
        CLEANUP(freep) struct pool_place *places = NULL;
        const struct hash_value *hashes = clean_copy_get_hashes(guest, ret_n);
        int r;

        *ret_places = NULL;
        if (!hashes)
                return 0;
        r = table_init(&table, count_blocks(guest));
        if (r == 0)
                r = fill(&table, guest);
        places = calloc(*ret_n + 1, sizeof(*places));
        if (!places)
                r = -ENOMEM;
        if (r < 0)
                return r;
        pool_get_places(guest->reservation, HASH_BLOCK, places, *ret_n);
        if (find_all(&table, hashes, places, *ret_n))
                *ret_places = TAKE(places);
        return 0;
}
