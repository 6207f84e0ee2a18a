/* SPDX-License-Identifier: Apache-2.0 */
/* Who leaves when, in virtual time. */
#include "base/test.h"
#include "scheduler/stay.h"

#define MS     1000000ull
#define SECOND 1000000000ull
#define GIB    (1ull << 30)

static void test_it_leaves_when_it_had_no_work_for_its_time(void **state)
{
        struct stay stay = { .after = 30 * SECOND, .last_work = 100 * SECOND };

        (void)state;
        assert_true(stay_get_end(&stay) == 130 * SECOND);
        stay.last_work = 120 * SECOND;
        assert_true(stay_get_end(&stay) == 150 * SECOND);
        stay.not_before = 200 * SECOND;
        assert_true(stay_get_end(&stay) == 200 * SECOND);
}

static void test_who_did_not_ask_for_it_never_leaves(void **state)
{
        struct stay stay = { .last_work = SECOND };

        (void)state;
        assert_true(stay_get_end(&stay) == STAY_NEVER);
        assert_true(stay_get_early_end(&stay) == STAY_NEVER);
        stay = (struct stay){ .after = SECOND, .is_held = true };
        assert_true(stay_get_end(&stay) == STAY_NEVER);
        assert_true(stay_get_early_end(&stay) == STAY_NEVER);
}

static void test_it_may_leave_early_but_not_between_two_kernels(void **state)
{
        struct stay stay = { .after = 30 * SECOND, .last_work = 100 * SECOND };

        (void)state;
        assert_true(stay_get_early_end(&stay) == 103 * SECOND);
        stay.after = 500 * MS;
        assert_true(stay_get_early_end(&stay) == 100 * SECOND + 100 * MS);
        stay.after = 20 * MS;
        assert_true(stay_get_early_end(&stay) == 100 * SECOND + 20 * MS);
}

static void test_a_stay_is_guaranteed(void **state)
{
        struct stay stay = { .after = SECOND, .since = 100 * SECOND };

        (void)state;
        stay.guaranteed = stay_get_guaranteed(2 * SECOND, 10);
        assert_true(stay_get_end(&stay) == 118 * SECOND);
        assert_true(stay_get_early_end(&stay) == 118 * SECOND);
        assert_true(stay_get_guaranteed(2 * SECOND, 50) == 2 * SECOND);
        assert_true(stay_get_guaranteed(2 * SECOND, 100) == 0);
        stay.guaranteed = stay_get_guaranteed(STAY_NEVER / 2, 10);
        assert_true(stay_get_end(&stay) == STAY_NEVER);
}

#define N 4

static bool choose(struct stay stay[N], uint64_t bytes, uint64_t now)
{
        struct stay *stays[N];

        for (size_t i = 0; i < N; i++)
                stays[i] = &stay[i];
        return stay_choose(stays, N, bytes, now);
}

static void test_the_least_recently_used_leaves_first(void **state)
{
        struct stay stay[N] = {
                { .after = SECOND, .last_work = 30 * SECOND, .bytes = GIB },
                { .after = SECOND, .last_work = 10 * SECOND, .bytes = GIB },
                { .after = SECOND, .last_work = 99 * SECOND, .bytes = 8 * GIB },
                { .after = 0, .last_work = 0, .bytes = 8 * GIB },
        };

        (void)state;
        assert_true(choose(stay, GIB, 50 * SECOND));
        assert_true(stay[1].is_chosen);
        assert_false(stay[0].is_chosen || stay[2].is_chosen || stay[3].is_chosen);
        assert_true(choose(stay, GIB + 1, 50 * SECOND));
        assert_true(stay[0].is_chosen && stay[1].is_chosen && !stay[2].is_chosen);
}

static void test_nobody_leaves_for_nothing(void **state)
{
        struct stay stay[N] = {
                { .after = SECOND, .last_work = 10 * SECOND, .bytes = GIB },
                { .after = SECOND, .last_work = 20 * SECOND, .bytes = 4 * GIB },
                { .after = SECOND, .last_work = 50 * SECOND, .bytes = 9 * GIB }, /* has work */
                { .after = SECOND,
                  .since = 49 * SECOND,
                  .guaranteed = 9 * SECOND,
                  .bytes = 9 * GIB },
        };

        (void)state;
        assert_false(choose(stay, 6 * GIB, 50 * SECOND));
        for (size_t i = 0; i < N; i++)
                assert_false(stay[i].is_chosen);
        /* The older one is not enough alone, and the other one is: it stays. */
        assert_true(choose(stay, 4 * GIB, 50 * SECOND));
        assert_true(stay[1].is_chosen && !stay[0].is_chosen);
}

/*
 * Two that do not fit together and want the device all the time: each has work for a moment whenever it is
 * there, so each is a victim as soon as it may be one. Whatever a swap costs, no more than a tenth of the
 * time is spent on it.
 */
static void test_swapping_takes_a_tenth_of_the_time_at_most(void **state)
{
        static const uint64_t costs[] = { 10 * MS, 300 * MS, SECOND, 20 * SECOND };

        (void)state;
        for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
                struct stay stay[2] = { { .after = 30 * SECOND, .bytes = GIB },
                                        { .after = 30 * SECOND, .bytes = GIB } };
                uint64_t now = 0, swapping = 0;

                for (int resident = 0; now < 10000 * SECOND; resident = !resident) {
                        struct stay *here = &stay[resident];

                        now = stay_get_early_end(here);
                        assert_true(stay_choose(&here, 1, GIB, now) && here->is_chosen);
                        now += costs[i];
                        swapping += costs[i];
                        stay[!resident].since = stay[!resident].last_work = now;
                        stay[!resident].guaranteed = stay_get_guaranteed(costs[i], 10);
                }
                assert_true(swapping <= now / 10 + costs[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_leaves_when_it_had_no_work_for_its_time),
                cmocka_unit_test(test_who_did_not_ask_for_it_never_leaves),
                cmocka_unit_test(test_it_may_leave_early_but_not_between_two_kernels),
                cmocka_unit_test(test_a_stay_is_guaranteed),
                cmocka_unit_test(test_the_least_recently_used_leaves_first),
                cmocka_unit_test(test_nobody_leaves_for_nothing),
                cmocka_unit_test(test_swapping_takes_a_tenth_of_the_time_at_most),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
