/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody needs stays as long as there is room, and never stands in anybody's way. */
#include "pool/test-pool.h"

#define USER 4711

static void on_given_up(void *userdata)
{
        (*(unsigned int *)userdata)++;
}

static struct pool_reservation *make_spare_of(struct fixture *fixture, uid_t user,
                                              const char *owner, uint64_t bytes,
                                              unsigned int *n_given_up)
{
        struct pool_reservation *reservation = reserve(fixture, owner, bytes);

        (void)prepare(fixture, reservation, 0);
        assert_int_equal(pool_spare(fixture->pool, reservation, user, on_given_up, n_given_up), 0);
        return reservation;
}

static struct pool_reservation *make_spare(struct fixture *fixture, const char *owner,
                                           uint64_t bytes, unsigned int *n_given_up)
{
        return make_spare_of(fixture, USER, owner, bytes, n_given_up);
}

static void test_spare_room_is_nobodys_and_everybodys(void **state)
{
        struct fixture *fixture = *state;
        unsigned int n = 0;
        uint64_t room;

        (void)make_spare(fixture, ALICE, 3 * SLAB, &n);
        assert_true(info_of(fixture).used == 0);
        assert_true(info_of(fixture).spare == 3 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 8 * SLAB);
        assert_true(pool_available(fixture->pool, BOB) == 8 * SLAB);
        assert_true(pool_get_owned(fixture->pool, ALICE, &room) == 0);
        assert_int_equal(n, 0);
}

static void test_what_is_spare_stays_while_there_is_room(void **state)
{
        struct fixture *fixture = *state;
        unsigned int n = 0;
        struct pool_reservation *spare = make_spare(fixture, ALICE, 3 * SLAB, &n);
        struct pool_reservation *other = reserve(fixture, BOB, 5 * SLAB);

        assert_int_equal(n, 0);
        assert_int_equal(pool_need(fixture->pool, spare), 0);
        assert_true(info_of(fixture).used == 8 * SLAB);
        assert_true(info_of(fixture).spare == 0);
        assert_true(is_ready_at_once(fixture, spare));
        pool_release(fixture->pool, other);
}

static void test_it_is_given_up_for_a_reservation_and_zeroed(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *other;
        unsigned int n = 0;

        (void)make_spare(fixture, ALICE, 3 * SLAB, &n);
        other = reserve(fixture, BOB, 6 * SLAB);
        assert_int_equal(n, 1);
        assert_true(info_of(fixture).spare == 0);
        assert_int_equal(prepare(fixture, other, 0), 3);
}

static void test_the_oldest_goes_first_and_only_as_many_as_needed(void **state)
{
        struct fixture *fixture = *state;
        unsigned int n[3] = { 0 };
        struct pool_reservation *again;

        (void)make_spare(fixture, ALICE, 2 * SLAB, &n[0]);
        again = make_spare(fixture, BOB, 2 * SLAB, &n[1]);
        (void)make_spare(fixture, ALICE, 2 * SLAB, &n[2]);
        assert_int_equal(pool_need(fixture->pool, again), 0);
        assert_int_equal(pool_spare(fixture->pool, again, USER, on_given_up, &n[1]), 0);

        (void)reserve(fixture, BOB, 4 * SLAB);
        assert_int_equal(n[0], 1);
        assert_int_equal(n[1], 0);
        assert_int_equal(n[2], 0);
        (void)reserve(fixture, BOB, 2 * SLAB);
        assert_int_equal(n[1], 0);
        assert_int_equal(n[2], 1);
}

/* One who suspends a lot pays with his own; then the two have the same, and the oldest goes. */
static void test_who_has_most_of_what_is_spare_gives_first(void **state)
{
        struct fixture *fixture = *state;
        unsigned int of_one = 0, of_two[3] = { 0 };

        (void)make_spare_of(fixture, 1, ALICE, 2 * SLAB, &of_one);
        for (int i = 0; i < 3; i++)
                (void)make_spare_of(fixture, 2, BOB, 2 * SLAB, &of_two[i]);

        (void)reserve(fixture, BOB, 2 * SLAB);
        assert_int_equal(of_two[0], 1);
        (void)reserve(fixture, BOB, 2 * SLAB);
        assert_int_equal(of_two[1], 1);
        assert_int_equal(of_one, 0);
        (void)reserve(fixture, BOB, 2 * SLAB);
        assert_int_equal(of_one, 1);
        assert_int_equal(of_two[2], 0);
        (void)reserve(fixture, BOB, 2 * SLAB);
        assert_int_equal(of_two[2], 1);
        assert_int_equal(pool_available(fixture->pool, BOB), 0);
}

/* What was needed again, or released, counts for nobody. */
static void test_what_is_needed_again_does_not_count(void **state)
{
        struct pool_reservation *again, *released;
        unsigned int of_one = 0, of_two = 0;
        struct fixture *fixture = *state;

        again = make_spare_of(fixture, 1, ALICE, 2 * SLAB, &of_one);
        released = make_spare_of(fixture, 1, ALICE, 2 * SLAB, &of_one);
        (void)make_spare_of(fixture, 1, ALICE, SLAB, &of_one);
        (void)make_spare_of(fixture, 2, BOB, 2 * SLAB, &of_two);
        assert_int_equal(pool_need(fixture->pool, again), 0);
        pool_release(fixture->pool, released);
        (void)reserve(fixture, BOB, 4 * SLAB);
        assert_int_equal(of_two, 1);
        assert_int_equal(of_one, 0);
}

static void test_what_cannot_be_had_costs_nobody_anything(void **state)
{
        struct pool_reservation *none = NULL;
        struct fixture *fixture = *state;
        unsigned int n = 0;

        (void)make_spare(fixture, ALICE, 3 * SLAB, &n);
        (void)reserve(fixture, BOB, 4 * SLAB);
        assert_int_equal(pool_reserve(fixture->pool, &none, BOB, 0, 5 * SLAB), -ENOSPC);
        assert_int_equal(n, 0);
}

static void test_a_lowered_limit_takes_what_is_spare_first(void **state)
{
        struct fixture *fixture = *state;
        unsigned int n = 0;

        (void)make_spare(fixture, ALICE, 3 * SLAB, &n);
        pool_set_limit(fixture->pool, 3 * SLAB);
        assert_int_equal(n, 0);
        pool_set_limit(fixture->pool, 2 * SLAB);
        assert_int_equal(n, 1);
        (void)end_all(fixture, POOL_REMOVE);
        assert_true(info_of(fixture).size <= 2 * SLAB);
}

static void test_it_has_no_stamp_and_a_new_generation(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);
        uint64_t generation = pool_get_generation(reservation);
        unsigned int n = 0;
        uint32_t slab;

        (void)prepare(fixture, reservation, 0);
        assert_int_equal(pool_stamp(fixture->pool, reservation, 7, 70), 0);
        assert_int_equal(pool_spare(fixture->pool, reservation, USER, on_given_up, &n), 0);
        assert_int_equal(pool_check(fixture->pool, reservation, 7, 70, &slab), -ESTALE);
        assert_int_equal(pool_need(fixture->pool, reservation), 0);
        assert_true(pool_get_generation(reservation) != generation);
        assert_int_equal(pool_check(fixture->pool, reservation, 7, 70, &slab), -ESTALE);
        assert_int_equal(pool_stamp(fixture->pool, reservation, 7, 70), 0);
        assert_int_equal(pool_check(fixture->pool, reservation, 7, 70, &slab), 0);
}

static void test_what_a_client_has_had_is_not_kept(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);
        unsigned int n = 0;
        size_t n_extents;

        (void)prepare(fixture, reservation, 0);
        assert_true(pool_share(fixture->pool, pool_get_extents(reservation, &n_extents)->slab, 5) >=
                    0);
        assert_int_equal(pool_spare(fixture->pool, reservation, USER, on_given_up, &n), -EBUSY);
        assert_true(info_of(fixture).used == SLAB);
}

static void test_the_keeper_need_not_have_it(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation;
        unsigned int n = 0;
        size_t n_extents;
        uint32_t slab;

        reservation = make_spare(fixture, ALICE, SLAB, &n);
        slab = pool_get_extents(reservation, &n_extents)->slab;
        assert_false(pool_is_in_use(fixture->pool, slab));
        assert_int_equal(pool_need(fixture->pool, reservation), 0);
        assert_true(pool_is_in_use(fixture->pool, slab));
        assert_int_equal(pool_spare(fixture->pool, reservation, USER, on_given_up, &n), 0);
        pool_release(fixture->pool, reservation);
        assert_int_equal(n, 0);
        assert_true(info_of(fixture).spare == 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_spare_room_is_nobodys_and_everybodys),
                TEST(test_what_is_spare_stays_while_there_is_room),
                TEST(test_it_is_given_up_for_a_reservation_and_zeroed),
                TEST(test_the_oldest_goes_first_and_only_as_many_as_needed),
                TEST(test_who_has_most_of_what_is_spare_gives_first),
                TEST(test_what_is_needed_again_does_not_count),
                TEST(test_what_cannot_be_had_costs_nobody_anything),
                TEST(test_a_lowered_limit_takes_what_is_spare_first),
                TEST(test_it_has_no_stamp_and_a_new_generation),
                TEST(test_what_a_client_has_had_is_not_kept),
                TEST(test_the_keeper_need_not_have_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
