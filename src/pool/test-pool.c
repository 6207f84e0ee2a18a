/* SPDX-License-Identifier: Apache-2.0 */
/* Reserving and preparing: who gets what, and in which state. */
#include "pool/test-pool.h"

static void test_a_reservation_gets_all_of_its_bytes_or_none(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *all, *more = NULL;

        all = reserve(fixture, ALICE, 8 * SLAB - 5);
        assert_true(sum_of(all) == 8 * SLAB - 5);
        assert_true(info_of(fixture).used == 8 * SLAB - 5);
        assert_true(info_of(fixture).size == 8 * SLAB);

        assert_int_equal(pool_reserve(fixture->pool, &more, BOB, 0, 1), -ENOSPC);
        assert_int_equal(pool_reserve(fixture->pool, &more, ALICE, 0, SLAB), -ENOSPC);
        assert_null(more);
        assert_true(info_of(fixture).used == 8 * SLAB - 5);
        pool_release(fixture->pool, all);
        assert_true(info_of(fixture).used == 0);
}

static void test_bad_reservations_are_refused(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = NULL;
        char name[POOL_OWNER_MAX + 1];

        memset(name, 'x', POOL_OWNER_MAX);
        name[POOL_OWNER_MAX] = '\0';
        assert_int_equal(pool_reserve(fixture->pool, &reservation, ALICE, 0, 0), -EINVAL);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, "", 0, 1), -EINVAL);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, ALICE, POOL_DEVICES_MAX, 1),
                         -EINVAL);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, name, 0, 1), -ENAMETOOLONG);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, ALICE, 0, UINT64_MAX), -ENOSPC);
        assert_null(reservation);
        assert_true(info_of(fixture).size == 0);
}

static void test_two_owners_never_share_a_slab_but_one_owner_fills_it(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *a = reserve(fixture, ALICE, SLAB / 4);
        struct pool_reservation *b = reserve(fixture, BOB, SLAB / 4);
        struct pool_reservation *a2 = reserve(fixture, ALICE, SLAB / 4);
        size_t n;

        assert_int_not_equal(pool_get_extents(a, &n)->slab, pool_get_extents(b, &n)->slab);
        assert_int_equal(pool_get_extents(a, &n)->slab, pool_get_extents(a2, &n)->slab);
        assert_true(info_of(fixture).size == 2 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 6 * SLAB + SLAB / 2);
}

static void test_slabs_are_pinned_before_the_reservation_is_ready(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 3 * SLAB);
        bool ready = true;

        assert_int_equal(pool_prepare(fixture->pool, reservation, 1, on_prepared, fixture, &ready),
                         0);
        assert_false(ready);
        assert_int_equal(fixture->n_works, 3);
        assert_int_equal(fixture->works[0].action, POOL_ADD);
        assert_int_equal(fixture->works[0].device, 1);
        assert_true(fixture->works[0].size == SLAB);
        assert_int_equal(pool_prepare(fixture->pool, reservation, 1, on_prepared, fixture, &ready),
                         -EBUSY);

        end_work(fixture, 2, 0);
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 0);
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 1);
        assert_true(info_of(fixture).ready == 3 * SLAB);
        assert_int_equal(pool_prepare(fixture->pool, reservation, 1, on_prepared, fixture, &ready),
                         0);
        assert_true(ready);
}

static void test_the_same_owner_gets_its_dirty_slab_at_once(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        prepare(fixture, reservation, 0);
        fixture->refuse = -EAGAIN; /* no zeroing in the background */
        pool_release(fixture->pool, reservation);
        fixture->refuse = 0;
        assert_true(is_ready_at_once(fixture, reserve(fixture, ALICE, 2 * SLAB)));
}

static void test_another_owner_gets_it_only_zeroed(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 8 * SLAB);

        prepare(fixture, reservation, 0);
        fixture->refuse = -EAGAIN;
        pool_release(fixture->pool, reservation);
        fixture->refuse = 0;
        assert_int_equal(prepare(fixture, reserve(fixture, BOB, 8 * SLAB), 0), 8);
}

static void test_a_dirty_slab_is_zeroed_in_the_background(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        prepare(fixture, reservation, 0);
        pool_release(fixture->pool, reservation);
        assert_int_equal(fixture->n_works, 1); /* one at a time */
        assert_int_equal(end_all(fixture, POOL_ZERO), 2);
        assert_true(is_ready_at_once(fixture, reserve(fixture, BOB, 2 * SLAB)));
}

static void test_a_slab_that_is_just_being_zeroed_is_not_ready_for_its_owner(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);

        prepare(fixture, reservation, 0);
        pool_release(fixture->pool, reservation);
        assert_int_equal(fixture->works[0].action, POOL_ZERO);
        reservation = reserve(fixture, ALICE, SLAB);
        assert_false(is_ready_at_once(fixture, reservation));
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 2);
        assert_int_equal(fixture->n_works, 0);
}

static void test_a_slab_given_back_before_it_was_zeroed_is_zeroed_for_anyone(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 8 * SLAB);

        prepare(fixture, reservation, 0);
        fixture->refuse = -EAGAIN;
        pool_release(fixture->pool, reservation);
        pool_release(fixture->pool, reserve(fixture, BOB, 8 * SLAB)); /* never prepared */
        fixture->refuse = 0;
        assert_int_equal(prepare(fixture, reserve(fixture, BOB, 8 * SLAB), 0), 8);
}

static void test_segments_cover_every_byte_in_order(void **state)
{
        static const uint64_t sizes[] = { 10, 0, 5, 20 };
        static const struct pool_extent extents[] = { { 1, 100, 12 }, { 2, 0, 3 }, { 3, 50, 40 } };
        static const struct mover_segment expected[] = {
                { .memory = 0, .slab = 1, .slab_offset = 100, .length = 10 },
                { .memory = 2, .slab = 1, .slab_offset = 110, .length = 2 },
                { .memory = 2, .slab = 2, .memory_offset = 2, .length = 3 },
                { .memory = 3, .slab = 3, .slab_offset = 50, .length = 20 },
        };
        struct mover_segment *segments = NULL;
        size_t n = 0;
        (void)state;

        assert_int_equal(pool_make_segments(&segments, &n, sizes, 4, extents, 3), 0);
        assert_int_equal(n, 4);
        assert_memory_equal(segments, expected, sizeof(expected));
        free(segments);
        segments = NULL;
        assert_int_equal(pool_make_segments(&segments, &n, sizes, 4, extents, 2), -ENOSPC);
        assert_null(segments);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_a_reservation_gets_all_of_its_bytes_or_none),
                TEST(test_bad_reservations_are_refused),
                TEST(test_two_owners_never_share_a_slab_but_one_owner_fills_it),
                TEST(test_slabs_are_pinned_before_the_reservation_is_ready),
                TEST(test_the_same_owner_gets_its_dirty_slab_at_once),
                TEST(test_another_owner_gets_it_only_zeroed),
                TEST(test_a_dirty_slab_is_zeroed_in_the_background),
                TEST(test_a_slab_that_is_just_being_zeroed_is_not_ready_for_its_owner),
                TEST(test_a_slab_given_back_before_it_was_zeroed_is_zeroed_for_anyone),
                TEST(test_segments_cover_every_byte_in_order),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
