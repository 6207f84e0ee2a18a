/* SPDX-License-Identifier: Apache-2.0 */
/* Clean copies: who may join their blocks, and what taking one costs its owner. */
#include <stdio.h>

#include "base/size.h"
#include "base/test.h"
#include "daemon/options.h"
#include "hash/hash.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

#define SLAB   (4 * HASH_BLOCK)
#define BLOCKS 4u /* of a guest */
#define SIZE   (BLOCKS * HASH_BLOCK)

/* Two vGPUs of a user on device 0, each with one process whose memory is one slab, and a third vGPU elsewhere. */
struct fixture {
        struct options options;
        struct device device[2];
        struct manager manager;
        struct instance instance[3];
        struct guest guest[2];
        struct guest_memory memory[2];
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        const struct pool_options pool = { .limit = 4 * SLAB, .slab_size = SLAB };

        assert_int_equal(pool_new(&fixture->manager.pool, &pool), 0);
        fixture->manager.options = &fixture->options;
        fixture->manager.device = fixture->device;
        fixture->manager.n_devices = 2;
        list_init(&fixture->manager.instances);
        for (uint32_t i = 0; i < 2; i++)
                fixture->device[i] = (struct device){ .manager = &fixture->manager,
                                                      .index = i,
                                                      .memory_total = SLAB };
        for (uint32_t i = 0; i < 3; i++) {
                struct instance *instance = &fixture->instance[i];

                instance->manager = &fixture->manager;
                instance->part[0].device = &fixture->device[i / 2];
                instance->n_parts = 1;
                instance->owner = geteuid() + 1;
                snprintf(instance->uuid, sizeof(instance->uuid), "vgpu-%u", i);
                list_init(&instance->guests);
                list_append(&fixture->manager.instances, &instance->link);
        }
        for (uint32_t i = 0; i < 2; i++) {
                struct guest *guest = &fixture->guest[i];

                fixture->memory[i] = (struct guest_memory){ .size = SIZE, .source = -1 };
                guest->instance = &fixture->instance[i];
                guest->memory = &fixture->memory[i];
                guest->n_memory = 1;
                guest->memory_bytes = SIZE;
                list_append(&guest->instance->guests, &guest->link);
        }
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        for (uint32_t i = 0; i < 2; i++)
                clean_copy_forget(&fixture->guest[i]);
        pool_free(fixture->manager.pool);
        free(fixture);
        return 0;
}

/* A suspend's copy out, all of whose blocks have the hash @value. */
static void go_out(struct fixture *fixture, struct guest *guest, uint64_t value)
{
        struct hash_value *hashes;
        bool has_moved;
        size_t n;

        if (!guest->reservation)
                assert_int_equal(pool_reserve_in(fixture->manager.pool, &guest->reservation,
                                                 "user 1", guest->instance->uuid, 0, SIZE),
                                 0);
        hashes = clean_copy_begin(guest, false, &n);
        assert_int_equal(n, BLOCKS);
        for (size_t i = 0; i < n; i++)
                hashes[i] = (struct hash_value){ { value, i } };
        clean_copy_end(guest, true, true);
        assert_int_equal(clean_copy_complete(guest, &has_moved), 0);
        assert_non_null(clean_copy_get_hashes(guest, &n));
}

/* From the moment in which it is taken the copy out writes to it, until that has arrived. */
static void test_nobody_joins_what_is_about_to_be_overwritten(void **state)
{
        struct fixture *fixture = *state;
        struct guest *guest = &fixture->guest[0];
        size_t n;

        go_out(fixture, guest, 7);
        clean_copy_put_back(guest);
        assert_null(guest->reservation);
        assert_int_equal(clean_copy_get_length(guest), SIZE);
        assert_true(clean_copy_take(guest, SIZE));
        assert_null(clean_copy_get_hashes(guest, &n));
        go_out(fixture, guest, 8);
}

/* The second one holds the first one's blocks, and is back on its device. */
static void share(struct fixture *fixture)
{
        struct guest *first = &fixture->guest[0], *second = &fixture->guest[1];
        struct pool_place places[BLOCKS];

        go_out(fixture, first, 7);
        go_out(fixture, second, 7);
        pool_get_places(first->reservation, HASH_BLOCK, places, BLOCKS);
        assert_int_equal(
                pool_join(fixture->manager.pool, second->reservation, HASH_BLOCK, places, BLOCKS),
                0);
        clean_copy_put_back(second);
        assert_null(second->reservation);
}

static uint64_t count_used(const struct fixture *fixture)
{
        struct pool_info info;

        pool_get_info(fixture->manager.pool, &info);
        return info.used;
}

static void test_parting_takes_what_its_owner_may_have(void **state)
{
        struct fixture *fixture = *state;

        share(fixture);
        assert_true(clean_copy_take(&fixture->guest[1], SIZE));
        assert_int_equal(count_used(fixture), 2 * SIZE);
        assert_true(pool_is_lone(fixture->manager.pool, fixture->guest[1].reservation));
}

/* All that is free is held for the vGPUs of an overcommitted device. */
static void test_parting_takes_nothing_that_is_promised_to_others(void **state)
{
        struct fixture *fixture = *state;

        share(fixture);
        fixture->options.overcommit = 2;
        fixture->instance[2].frame_buffer = 3 * SLAB;
        assert_false(clean_copy_take(&fixture->guest[1], SIZE));
        assert_null(fixture->guest[1].reservation);
        assert_int_equal(clean_copy_get_length(&fixture->guest[1]), 0);
        assert_int_equal(count_used(fixture), SIZE);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_nobody_joins_what_is_about_to_be_overwritten),
                TEST(test_parting_takes_what_its_owner_may_have),
                TEST(test_parting_takes_nothing_that_is_promised_to_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
