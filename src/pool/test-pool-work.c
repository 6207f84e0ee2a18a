/* SPDX-License-Identifier: Apache-2.0 */
/* What movers do for the pool: ahead of demand, in vain, and while slabs leave. */
#include "pool/test-pool.h"

static void test_what_is_ready_is_taken_before_what_has_to_be_made(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation;

        pool_want(fixture->pool, 0, 2 * SLAB);
        end_all(fixture, POOL_ADD);
        assert_true(info_of(fixture).ready == 2 * SLAB);
        reservation = reserve(fixture, ALICE, 2 * SLAB);
        assert_true(is_ready_at_once(fixture, reservation));
        assert_true(info_of(fixture).size == 2 * SLAB);
}

static void test_the_pool_grows_ahead_up_to_its_limit_one_slab_at_a_time(void **state)
{
        struct fixture *fixture = *state;

        pool_want(fixture->pool, 0, 100 * SLAB);
        assert_int_equal(fixture->n_works, 1);
        assert_int_equal(end_all(fixture, POOL_ADD), 8);
        assert_true(info_of(fixture).size == 8 * SLAB);

        pool_want(fixture->pool, 1, 3 * SLAB); /* the limit is reached: the slabs are shared */
        assert_int_equal(end_all(fixture, POOL_ADD), 3);
        assert_true(info_of(fixture).size == 8 * SLAB);
}

static void test_what_others_have_pinned_is_pinned_for_who_wants_all(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation;

        pool_want_all(fixture->pool, 1, true); /* what nobody has it does not want */
        assert_int_equal(fixture->n_works, 0);
        pool_want(fixture->pool, 0, 2 * SLAB);
        assert_int_equal(end_all(fixture, POOL_ADD), 4);
        reservation = reserve(fixture, ALICE, 3 * SLAB);
        assert_int_equal(prepare(fixture, reservation, 0), 0);
        assert_true(info_of(fixture).size >= 3 * SLAB);
        assert_int_equal(prepare(fixture, reservation, 1), 0);
        assert_int_equal(fixture->n_works, 0); /* all of it was ready there */

        pool_device_lost(fixture->pool, 1);
        pool_want(fixture->pool, 0, 4 * SLAB);
        while (fixture->n_works > 0)
                assert_int_equal(end_work(fixture, 0, 0).device, 0);
}

static void test_what_is_in_use_is_pinned_for_who_wants_all(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        assert_int_equal(prepare(fixture, reservation, 0), 0);
        pool_device_lost(fixture->pool, 0); /* pinned nowhere */
        pool_want_all(fixture->pool, 1, true);
        assert_int_equal(fixture->n_works, 1); /* one at a time */
        end_work(fixture, 0, -ENOMEM);
        assert_int_equal(fixture->n_works, 0); /* it rests */
        pool_want_all(fixture->pool, 1, true);
        assert_int_equal(end_all(fixture, POOL_ADD), 2);
        assert_int_equal(prepare(fixture, reservation, 1), 0);
        assert_int_equal(fixture->n_told, 1); /* of the first preparation only */
}

static bool is_ready_soon(struct fixture *fixture, struct pool_reservation *reservation)
{
        bool ready = false;

        assert_int_equal(
                pool_prepare_soon(fixture->pool, reservation, 0, on_prepared, fixture, &ready), 0);
        return ready;
}

static void test_what_is_being_pinned_is_ready_soon(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        assert_true(is_ready_soon(fixture, reservation));
        assert_int_equal(fixture->n_works, 2);
        assert_int_equal(end_all(fixture, POOL_ADD), 2);
        assert_int_equal(fixture->n_told, 0);
}

static void test_what_has_to_be_zeroed_is_not_ready_soon(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);

        prepare(fixture, reservation, 0);
        pool_release(fixture->pool, reservation);
        while (fixture->n_works > 0) /* nothing is zeroed ahead */
                end_work(fixture, 0, -EIO);
        pool_device_lost(fixture->pool, 0);
        reservation = reserve(fixture, BOB, 8 * SLAB); /* all that there is */
        assert_false(is_ready_soon(fixture, reservation));
        assert_true(end_all(fixture, POOL_ZERO) > 0);
        assert_int_equal(fixture->n_told, 2);
        assert_int_equal(fixture->told_error, 0);
}

static void test_a_preparation_finds_done_what_was_begun(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        pool_begin(fixture->pool, reservation, 0);
        pool_begin(fixture->pool, reservation, 0);
        assert_int_equal(fixture->n_works, 2);
        end_work(fixture, 0, 0);
        end_work(fixture, 0, -ENOMEM); /* is tried again */
        assert_int_equal(fixture->n_told, 0);
        assert_int_equal(prepare(fixture, reservation, 0), 0);
        assert_true(is_ready_at_once(fixture, reservation));
}

static void test_nothing_is_begun_ahead_in_a_pause(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation;

        pool_want(fixture->pool, 0, 3 * SLAB);
        pool_pause(fixture->pool);
        pool_pause(fixture->pool);
        assert_int_equal(end_all(fixture, POOL_ADD), 1); /* the one that was under way */
        reservation = reserve(fixture, ALICE, 2 * SLAB);
        assert_int_equal(prepare(fixture, reservation, 0), 0); /* somebody waits for this */
        pool_unpause(fixture->pool);
        assert_int_equal(fixture->n_works, 0);
        pool_unpause(fixture->pool);
        assert_int_equal(end_all(fixture, POOL_ADD), 3);
}

static void test_growing_ahead_rests_after_a_failure(void **state)
{
        struct fixture *fixture = *state;

        pool_want(fixture->pool, 0, 3 * SLAB);
        end_work(fixture, 0, -ENOMEM);
        assert_int_equal(fixture->n_works, 0);
        pool_want(fixture->pool, 0, 3 * SLAB);
        assert_int_equal(end_all(fixture, POOL_ADD), 3);
}

static void test_a_failed_pinning_fails_the_preparation_and_can_be_tried_again(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        assert_false(is_ready_at_once(fixture, reservation));
        end_work(fixture, 0, -EIO);
        assert_int_equal(fixture->n_told, 1);
        assert_int_equal(fixture->told_error, -EIO);
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 1);
        prepare(fixture, reservation, 0);
}

static void test_a_worker_that_refuses_fails_the_call_and_not_the_callback(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);
        bool ready;

        fixture->refuse = -ENODEV;
        assert_int_equal(pool_prepare(fixture->pool, reservation, 0, on_prepared, fixture, &ready),
                         -ENODEV);
        fixture->refuse = 0;
        assert_int_equal(fixture->n_told, 0);
        prepare(fixture, reservation, 0);
}

static void test_a_lost_device_fails_its_preparations_and_unpins_its_slabs(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *a = reserve(fixture, ALICE, 2 * SLAB);
        struct pool_reservation *b = reserve(fixture, BOB, SLAB);
        struct pool_work late;
        bool ready;

        prepare(fixture, b, 1);
        assert_false(is_ready_at_once(fixture, a));
        late = fixture->works[0];
        pool_device_lost(fixture->pool, 0);
        assert_int_equal(fixture->n_told, 2);
        assert_int_equal(fixture->told_error, -ECONNRESET);
        pool_work_done(fixture->pool, late.action, late.device, late.slab, 0);
        assert_true(info_of(fixture).ready == SLAB); /* b's */

        fixture->n_works = 0;
        prepare(fixture, a, 0);
        assert_int_equal(pool_prepare(fixture->pool, b, 1, on_prepared, fixture, &ready), 0);
        assert_true(ready);
}

static void test_a_lower_limit_lets_go_free_slabs_now_and_others_later(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        prepare(fixture, reservation, 0);
        pool_want(fixture->pool, 0, 2 * SLAB);
        end_all(fixture, POOL_ADD);
        assert_true(info_of(fixture).size == 4 * SLAB);

        pool_set_limit(fixture->pool, SLAB + 1);
        assert_true(info_of(fixture).limit == SLAB);
        assert_int_equal(end_all(fixture, POOL_REMOVE), 2);
        assert_true(info_of(fixture).size == 2 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 0);

        pool_release(fixture->pool, reservation);
        assert_int_equal(end_all(fixture, POOL_REMOVE), 1);
        assert_true(info_of(fixture).size == SLAB);
}

static void test_a_slab_that_leaves_is_nobodys(void **state)
{
        struct fixture *fixture = *state;

        pool_want(fixture->pool, 0, 8 * SLAB);
        end_all(fixture, POOL_ADD);
        pool_set_limit(fixture->pool, 0);
        assert_int_equal(fixture->n_works, 8);
        pool_set_limit(fixture->pool, 8 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 0);
        end_work(fixture, 0, -EIO); /* a mover that cannot let go: asked once is enough */
        assert_true(pool_available(fixture->pool, ALICE) == SLAB);
}

static void test_released_during_its_preparation_a_reservation_is_not_told(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        assert_false(is_ready_at_once(fixture, reservation));
        pool_release(fixture->pool, reservation);
        end_all(fixture, POOL_ADD);
        assert_int_equal(fixture->n_told, 0);
        assert_true(info_of(fixture).used == 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_what_is_ready_is_taken_before_what_has_to_be_made),
                TEST(test_the_pool_grows_ahead_up_to_its_limit_one_slab_at_a_time),
                TEST(test_what_others_have_pinned_is_pinned_for_who_wants_all),
                TEST(test_what_is_in_use_is_pinned_for_who_wants_all),
                TEST(test_what_is_being_pinned_is_ready_soon),
                TEST(test_what_has_to_be_zeroed_is_not_ready_soon),
                TEST(test_a_preparation_finds_done_what_was_begun),
                TEST(test_nothing_is_begun_ahead_in_a_pause),
                TEST(test_growing_ahead_rests_after_a_failure),
                TEST(test_a_failed_pinning_fails_the_preparation_and_can_be_tried_again),
                TEST(test_a_worker_that_refuses_fails_the_call_and_not_the_callback),
                TEST(test_a_lost_device_fails_its_preparations_and_unpins_its_slabs),
                TEST(test_a_lower_limit_lets_go_free_slabs_now_and_others_later),
                TEST(test_a_slab_that_leaves_is_nobodys),
                TEST(test_released_during_its_preparation_a_reservation_is_not_told),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
