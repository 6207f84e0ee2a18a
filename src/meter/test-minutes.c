/* SPDX-License-Identifier: Apache-2.0 */
/* Usage by the minute: nothing is lost, nothing is doubled. */

#include <string.h>

#include "base/test.h"
#include "meter/minutes.h"

#define MINUTE 60000ull

static struct minutes minutes;

static int setup(void **state)
{
        (void)state;
        minutes = (struct minutes){ 0 };
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        minutes_deinit(&minutes);
        return 0;
}

static void add(uint64_t process, uint64_t sm_ns, uint64_t from_ms, uint64_t to_ms)
{
        const struct usage_key key = { .process = process, .vgpu = 1 };
        struct usage_amount amount = { .busy_ns = { [METER_SM] = sm_ns } };

        assert_int_equal(minutes_add(&minutes, &key, &amount, from_ms, to_ms), 0);
        assert_true(usage_is_zero(&amount));
}

static uint64_t get(uint64_t process, uint64_t minute)
{
        uint64_t found = 0;

        for (size_t i = 0; i < minutes.n; i++)
                if (minutes.rows[i].key.process == process && minutes.rows[i].minute == minute) {
                        assert_int_equal(found, 0); /* one row a key and minute */
                        found = minutes.rows[i].amount.busy_ns[METER_SM];
                }
        return found;
}

static uint64_t sum(void)
{
        uint64_t all = 0;

        for (size_t i = 0; i < minutes.n; i++)
                all += minutes.rows[i].amount.busy_ns[METER_SM];
        return all;
}

static void test_amounts_of_a_minute_come_together(void **state)
{
        (void)state;
        add(1, 10, 5 * MINUTE, 5 * MINUTE + 1000);
        add(2, 40, 5 * MINUTE, 5 * MINUTE + 1000);
        add(1, 20, 5 * MINUTE + 1000, 5 * MINUTE + 59999);
        assert_int_equal(minutes.n, 2);
        assert_int_equal(get(1, 5), 30);
        assert_int_equal(get(2, 5), 40);
}

static void test_spans_are_cut_at_full_minutes(void **state)
{
        (void)state;
        add(1, 1000, 6 * MINUTE - 250, 6 * MINUTE + 750);
        assert_int_equal(get(1, 5), 250);
        assert_int_equal(get(1, 6), 750);
        add(2, 250, 9 * MINUTE + 30000, 12 * MINUTE); /* 30 s and two minutes, to the edge */
        assert_int_equal(get(2, 9), 50);
        assert_int_equal(get(2, 10), 100);
        assert_int_equal(get(2, 11), 100);
        assert_int_equal(get(2, 12), 0);
}

static void test_what_cannot_be_divided_is_not_lost(void **state)
{
        (void)state;
        add(1, 1, 0, 3 * MINUTE);
        assert_int_equal(sum(), 1);
        add(1, 7, 100, 10 * MINUTE + 1);
        assert_int_equal(sum(), 8);
}

static void test_odd_spans_are_an_instant(void **state)
{
        (void)state;
        add(1, 5, 3 * MINUTE + 5, 3 * MINUTE + 5);
        add(1, 6, 9 * MINUTE, 3 * MINUTE + 5); /* the clock was set back */
        assert_int_equal(get(1, 3), 11);
        add(1, 0, 0, 100 * MINUTE);
        assert_int_equal(sum(), 11);
}

static void test_all_columns_are_cut(void **state)
{
        const struct usage_key key = { .process = 0, .vgpu = 3, .device = 1 };
        struct usage_amount amount = { .quota_mib_ms = 400, .used_mib_ms = 200 };

        (void)state;
        for (int engine = 0; engine < METER_ENGINES; engine++)
                amount.busy_ns[engine] = 100 * ((uint64_t)engine + 1);
        assert_int_equal(minutes_add(&minutes, &key, &amount, MINUTE - 750, MINUTE + 250), 0);
        assert_int_equal(minutes.n, 2);
        assert_int_equal(minutes.rows[0].amount.quota_mib_ms, 300);
        assert_int_equal(minutes.rows[1].amount.quota_mib_ms, 100);
        assert_int_equal(minutes.rows[0].amount.used_mib_ms, 150);
        assert_int_equal(minutes.rows[1].amount.busy_ns[METER_OFA], 150);
}

static void test_many_rows_are_found_again_and_cleared(void **state)
{
        (void)state;
        for (int round = 0; round < 2; round++)
                for (uint64_t process = 1; process <= 3000; process++)
                        add(process, process, 7 * MINUTE, 7 * MINUTE + 1);
        assert_int_equal(minutes.n, 3000);
        assert_int_equal(get(3000, 7), 6000);
        assert_int_equal(get(1, 7), 2);
        minutes_clear(&minutes);
        assert_int_equal(minutes.n, 0);
        add(1, 3, 7 * MINUTE, 7 * MINUTE + 1);
        assert_int_equal(get(1, 7), 3);
}

static void test_when_too_many_wait_minutes_become_coarse(void **state)
{
        uint64_t last = MINUTES_ROWS_MAX - 1;

        (void)state;
        for (uint64_t minute = 0; minute < MINUTES_ROWS_MAX; minute++)
                add(1, 1, minute * MINUTE, minute * MINUTE + 1);
        add(1, 100, (last + 5) * MINUTE, (last + 5) * MINUTE + 1);
        assert_int_equal(minutes.n, MINUTES_ROWS_MAX);
        assert_int_equal(get(1, last), 101);
        assert_int_equal(get(1, last + 5), 0);
        add(2, 7, 0, 1); /* somebody new is not lost either */
        assert_int_equal(get(2, 0), 7);
        assert_int_equal(sum(), MINUTES_ROWS_MAX + 107);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_amounts_of_a_minute_come_together, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_spans_are_cut_at_full_minutes, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_what_cannot_be_divided_is_not_lost, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_odd_spans_are_an_instant, setup, teardown),
                cmocka_unit_test_setup_teardown(test_all_columns_are_cut, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_rows_are_found_again_and_cleared, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_when_too_many_wait_minutes_become_coarse,
                                                setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
