/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "daemon/pace.h"

#define MS 1000000u

static struct pace make_pace(void)
{
        return (struct pace){ .least_us = 100000, .most_us = 1000000, .part = 500 };
}

static void add_many(struct pace *pace, uint64_t cost_ns)
{
        for (int i = 0; i < 100; i++)
                pace_add(pace, cost_ns);
}

static void test_what_costs_little_is_done_often(void **state)
{
        struct pace pace = make_pace();
        (void)state;

        assert_int_equal(pace_get_interval(&pace), 100000);
        add_many(&pace, MS / 10);
        assert_int_equal(pace_get_interval(&pace), 100000);
}

static void test_what_costs_more_is_done_more_seldom(void **state)
{
        struct pace pace = make_pace();
        (void)state;

        add_many(&pace, MS);
        assert_in_range(pace_get_interval(&pace), 499000, 500000);
        add_many(&pace, MS / 10);
        assert_int_equal(pace_get_interval(&pace), 100000);
}

static void test_it_is_never_given_up(void **state)
{
        struct pace pace = make_pace();
        (void)state;

        add_many(&pace, 3600000ull * MS);
        assert_int_equal(pace_get_interval(&pace), 1000000);
}

static void test_one_costly_round_makes_no_long_pause(void **state)
{
        struct pace pace = make_pace();
        (void)state;

        pace_add(&pace, 2 * MS);
        assert_in_range(pace_get_interval(&pace), 100000, 250000);
}

static void test_a_round_is_measured(void **state)
{
        struct pace pace = make_pace();
        (void)state;

        pace_begin(&pace);
        pace_end(&pace);
        assert_true(pace.cost_ns < 1000u * MS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_costs_little_is_done_often),
                cmocka_unit_test(test_what_costs_more_is_done_more_seldom),
                cmocka_unit_test(test_it_is_never_given_up),
                cmocka_unit_test(test_one_costly_round_makes_no_long_pause),
                cmocka_unit_test(test_a_round_is_measured),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
