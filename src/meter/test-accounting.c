/* SPDX-License-Identifier: Apache-2.0 */
/* The records of processes, with NVML's rules. */

#include <errno.h>
#include <stdio.h>

#include "base/test.h"
#include "meter/accounting.h"

#define SECOND 1000000000ull

static struct accounting accounting;

static int setup(void **state)
{
        (void)state;
        accounting = (struct accounting){ 0 };
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        accounting_deinit(&accounting);
        return 0;
}

static int start(uint64_t serial, uint32_t pid)
{
        return accounting_start(&accounting,
                                &(struct accounting_record){ .serial = serial, .pid = pid });
}

/* The serial numbers in order, those that ended before the bar. */
static void assert_order(const char *order)
{
        char is[256] = "";
        size_t length = 0;

        for (size_t i = 0; i <= accounting.n; i++) {
                if (i == accounting.n_ended)
                        length += (size_t)snprintf(is + length, sizeof(is) - length, "|");
                if (i < accounting.n)
                        length +=
                                (size_t)snprintf(is + length, sizeof(is) - length, " %llu ",
                                                 (unsigned long long)accounting.records[i].serial);
        }
        assert_string_equal(is, order);
}

static void test_the_ended_come_first_in_the_order_of_their_ends(void **state)
{
        (void)state;
        assert_int_equal(start(1, 101), 0);
        assert_int_equal(start(2, 102), 0);
        assert_int_equal(start(3, 103), 0);
        assert_order("| 1  2  3 ");
        accounting_end(&accounting, 2);
        assert_order(" 2 | 1  3 ");
        accounting_end(&accounting, 1);
        assert_order(" 2  1 | 3 ");
        accounting_end(&accounting, 1); /* twice, and one that never was */
        accounting_end(&accounting, 9);
        assert_order(" 2  1 | 3 ");
        assert_false(accounting_find(&accounting, 1)->is_running);
        assert_true(accounting_find(&accounting, 3)->is_running);
        assert_null(accounting_find(&accounting, 9));
}

static void test_time_and_percents_follow_from_the_life(void **state)
{
        struct accounting_record *record;

        (void)state;
        assert_int_equal(start(1, 101), 0);
        record = accounting_find(&accounting, 1);
        record->life_ns = 8 * SECOND;
        record->busy_ns[METER_SM] = 2 * SECOND;
        record->busy_ns[METER_MEMORY] = 4 * SECOND;
        assert_int_equal(accounting_time_ms(record), 0); /* it runs */
        assert_int_equal(accounting_percent(record, METER_SM), 25);
        assert_int_equal(accounting_percent(record, METER_MEMORY), 50);
        assert_int_equal(accounting_percent(record, METER_OFA), 0);
        accounting_end(&accounting, 1);
        record = accounting_find(&accounting, 1);
        assert_int_equal(accounting_time_ms(record), 8000);
        assert_int_equal(accounting_percent(record, METER_SM), 25);
        record->life_ns = 10; /* nothing that ended took no time */
        assert_int_equal(accounting_time_ms(record), 1);
}

static void test_a_reused_pid_shows_who_ended_last(void **state)
{
        (void)state;
        assert_int_equal(start(1, 77), 0);
        accounting_end(&accounting, 1);
        assert_int_equal(start(2, 77), 0);
        assert_order(" 1 | 2 ");
        assert_int_equal(accounting_find_pid(&accounting, 77)->serial,
                         1); /* the new one is hidden */
        accounting_end(&accounting, 2);
        assert_order(" 2 |");
        assert_int_equal(accounting_find_pid(&accounting, 77)->serial, 2);
        assert_null(accounting_find_pid(&accounting, 78));
}

static void test_clearing_forgets_the_ended_only(void **state)
{
        (void)state;
        assert_int_equal(accounting_clear(&accounting), 0);
        assert_int_equal(start(1, 101), 0);
        assert_int_equal(start(2, 102), 0);
        assert_int_equal(start(3, 103), 0);
        accounting_find(&accounting, 2)->busy_ns[METER_SM] = 5;
        accounting_end(&accounting, 1);
        accounting_end(&accounting, 3);
        assert_int_equal(accounting_clear(&accounting), 2);
        assert_order("| 2 ");
        assert_int_equal(accounting_find(&accounting, 2)->busy_ns[METER_SM], 5);
        assert_int_equal(accounting_clear(&accounting), 0);
        accounting_end(&accounting, 2);
        assert_order(" 2 |");
}

static void test_when_full_the_oldest_end_makes_room(void **state)
{
        (void)state;
        assert_int_equal(start(1, 1), 0); /* runs all the time */
        for (uint32_t i = 2; i <= ACCOUNTING_MAX; i++) {
                assert_int_equal(start(i, i), 0);
                accounting_end(&accounting, i);
        }
        assert_int_equal(accounting.n, ACCOUNTING_MAX);
        assert_int_equal(accounting.records[0].serial, 2);
        assert_int_equal(start(5001, 5001), 0);
        assert_int_equal(accounting.n, ACCOUNTING_MAX);
        assert_int_equal(accounting.records[0].serial, 3);
        assert_null(accounting_find(&accounting, 2));
        assert_true(accounting_find(&accounting, 1)->is_running);
        accounting_end(&accounting, 5001); /* takes no further place */
        assert_int_equal(accounting.records[0].serial, 3);
        assert_int_equal(accounting.n, ACCOUNTING_MAX);
}

static void test_only_running_ones_leave_no_room(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < ACCOUNTING_MAX; i++)
                assert_int_equal(start(i + 1, i), 0);
        assert_int_equal(start(5001, 5001), -ENOSPC);
        accounting_end(&accounting, 7);
        assert_int_equal(start(5001, 5001), 0);
        assert_null(accounting_find(&accounting, 7));
}

static void test_former_records_come_before_later_ones(void **state)
{
        const struct accounting_record former[] = {
                { .serial = 1, .pid = 5, .is_running = true, .life_ns = SECOND },
                { .serial = 2, .pid = 6 },
                { .serial = 3, .pid = 5 },
        };

        (void)state;
        assert_int_equal(start(9, 50), 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(accounting_add_ended(&accounting, &former[i]), 0);
        assert_order(" 2  3 | 9 ");
        assert_false(accounting.records[0].is_running);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        test_the_ended_come_first_in_the_order_of_their_ends, setup, teardown),
                cmocka_unit_test_setup_teardown(test_time_and_percents_follow_from_the_life, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_reused_pid_shows_who_ended_last, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_clearing_forgets_the_ended_only, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_when_full_the_oldest_end_makes_room, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_only_running_ones_leave_no_room, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_former_records_come_before_later_ones, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
