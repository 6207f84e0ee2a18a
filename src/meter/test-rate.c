/* SPDX-License-Identifier: Apache-2.0 */
/* From counts to percents, parts and areas, and the wall clock: exact. */

#include "base/test.h"
#include "meter/rate.h"
#include "meter/wall.h"

static void test_percents_are_rounded_and_bounded(void **state)
{
        static const struct {
                uint64_t busy, period;
                uint32_t percent;
        } cases[] = {
                { 0, 0, 0 },
                { 5, 0, 0 },
                { 0, 1000, 0 },
                { 1000, 1000, 100 },
                { 1001, 1000, 100 },
                { 4, 1000, 0 },
                { 5, 1000, 1 },
                { 994, 1000, 99 },
                { 995, 1000, 100 },
                { 250000000, 1000000000, 25 },
                /* a century at once */
                { UINT64_MAX / 2, UINT64_MAX, 50 },
                { UINT64_MAX, UINT64_MAX, 100 },
                { UINT64_MAX, 1, 100 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(rate_percent(cases[i].busy, cases[i].period), cases[i].percent);
}

static void test_estimates_are_parts_of_the_period(void **state)
{
        (void)state;
        assert_int_equal(rate_estimate(0, 1000), 0);
        assert_int_equal(rate_estimate(25, 1000), 250);
        assert_int_equal(rate_estimate(100, 1000), 1000);
        assert_int_equal(rate_estimate(400, 1000), 1000);
        assert_true(rate_estimate(100, UINT64_MAX) == UINT64_MAX);
}

static void test_parts_sum_up_to_the_amount(void **state)
{
        static const struct {
                uint64_t amount, weights[3], parts[3];
        } cases[] = {
                { 100, { 1, 1, 2 }, { 25, 25, 50 } },
                { 100, { 0, 0, 0 }, { 33, 33, 34 } },
                { 100, { 1, 1, 1 }, { 33, 33, 34 } },
                { 1, { 1, 1, 1 }, { 0, 0, 1 } },
                { 7, { 0, 5, 0 }, { 0, 7, 0 } },
                { 0, { 1, 2, 3 }, { 0, 0, 0 } },
                { UINT64_MAX,
                  { 1ull << 62, 0, 1ull << 62 },
                  { UINT64_MAX / 2, 0, UINT64_MAX / 2 + 1 } },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                uint64_t parts[3];

                rate_divide(cases[i].amount, cases[i].weights, 3, parts);
                for (int k = 0; k < 3; k++)
                        assert_true(parts[k] == cases[i].parts[k]);
        }
}

static void test_areas_lose_nothing_in_small_steps(void **state)
{
        struct rate_area small = { 0 }, large = { 0 };
        uint64_t sum = 0;

        (void)state;
        for (int i = 0; i < 250; i++) /* a kilobyte for 4 ms at a time */
                sum += rate_area_add(&small, 1000, 4);
        sum += rate_area_add(&small, 48576, 1);
        assert_int_equal(sum, 1);
        assert_int_equal(small.rest, 0);
        /* 141 GiB for a day at once */
        assert_true(rate_area_add(&large, 141ull << 30, 86400000) == 141ull * 1024 * 86400000);
        assert_int_equal(large.rest, 0);
}

static void test_clock_steps_are_seen_and_change_no_length(void **state)
{
        struct wall wall = { 0 };

        (void)state;
        assert_int_equal(wall_read(&wall, 1000, 10000000), 0);
        assert_int_equal(wall_read(&wall, 2000, 10001000), 0);
        assert_int_equal(wall_at(&wall, 1000), 10000000);
        assert_int_equal(wall_read(&wall, 3000, 13602000), 3600000); /* an hour forward */
        assert_int_equal(wall_at(&wall, 2000), 13601000);
        assert_int_equal(wall_at(&wall, 3000), 13602000);
        assert_int_equal(wall_read(&wall, 4000, 10003000), -3600000); /* and back */
        assert_int_equal(wall_at(&wall, 3000), 10002000);
        assert_int_equal(wall_read(&wall, 5000, 10005900), 0); /* slewed: no step */
        assert_int_equal(wall_read(&wall, 6000, 10005000), 0);
        assert_true(wall_read(&wall, 16000, 5) < 0); /* to the epoch */
        assert_int_equal(wall_at(&wall, 6000), 0);
        assert_int_equal(wall_at(&wall, 99000), 5); /* not yet */
}

/* Who asks for what is later than the last that he has seen misses none, whatever is done to the clock. */
static void test_time_stamps_never_go_back(void **state)
{
        struct wall_stamps stamps = { 0 };
        uint64_t at, last, hour = 3600000;

        (void)state;
        last = wall_stamp(&stamps, &(struct wall){ 1000, 9 * hour });
        assert_int_equal(last, 9 * hour);
        assert_int_equal(wall_stamp(&stamps, &(struct wall){ 1250, 9 * hour + 250 }), last + 250);
        last += 250;
        for (uint64_t passed = 250; passed <= hour; passed += 250) { /* set back by half an hour */
                at = wall_stamp(&stamps, &(struct wall){ 1250 + passed,
                                                         9 * hour - hour / 2 + 250 + passed });
                assert_true(at > last);
                last = at;
        }
        assert_int_equal(last, 9 * hour + hour / 2 + 250); /* it has come up with them */
        at = wall_stamp(&stamps, &(struct wall){ 1500 + hour, 20 * hour });
        assert_int_equal(at, 20 * hour);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_percents_are_rounded_and_bounded),
                cmocka_unit_test(test_estimates_are_parts_of_the_period),
                cmocka_unit_test(test_parts_sum_up_to_the_amount),
                cmocka_unit_test(test_areas_lose_nothing_in_small_steps),
                cmocka_unit_test(test_clock_steps_are_seen_and_change_no_length),
                cmocka_unit_test(test_time_stamps_never_go_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
