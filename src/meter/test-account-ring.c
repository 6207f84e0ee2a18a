/* SPDX-License-Identifier: Apache-2.0 */
/* What the state page shows of an accounting is that accounting, whatever has happened to it. */

#include <stdio.h>
#include <unistd.h>

#include "base/test.h"
#include "meter/account-ring.h"

#define SLOT     3
#define INSTANCE 77

static struct accounting accounting;
static struct account_ring ring = { .slot = SLOT, .instance = INSTANCE, .accounting = &accounting };

static int set_up(void **state)
{
        char path[64];

        (void)state;
        snprintf(path, sizeof(path), "/tmp/test-account-ring-%d", (int)getpid());
        assert_int_equal(state_create(&ring.state_page, path, NULL), 0);
        (void)unlink(path);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        state_close(ring.state_page);
        accounting_deinit(&accounting);
        return 0;
}

static void start(uint64_t serial, uint32_t pid)
{
        const struct accounting_record record = {
                .serial = serial, .pid = pid, .start_us = serial, .max_memory = 10 * serial
        };

        assert_int_equal(account_ring_start(&ring, &record), 0);
}

/* The same records in the same order: those that ended first, then those that run. */
static void assert_shown(void)
{
        uint64_t end = state_count_account(ring.state_page, SLOT);
        struct state_account account;
        size_t n = 0;

        for (uint32_t is_running = 0; is_running < 2; is_running++)
                for (uint64_t i = state_first_account(ring.state_page, SLOT); i < end; i++) {
                        const struct accounting_record *record = &accounting.records[n];

                        if (!state_read_account(ring.state_page, SLOT, i, &account) ||
                            account.is_running != is_running)
                                continue;
                        assert_true(n < accounting.n);
                        assert_int_equal(account.instance, INSTANCE);
                        assert_int_equal(account.pid, record->pid);
                        assert_int_equal(account.is_running, record->is_running);
                        assert_int_equal(account.start_us, record->start_us);
                        assert_int_equal(account.max_memory, record->max_memory);
                        assert_int_equal(account.time_ms, accounting_time_ms(record));
                        assert_int_equal(account.utilization_gpu,
                                         accounting_percent(record, METER_SM));
                        n++;
                }
        assert_int_equal(n, accounting.n);
}

static void test_processes_begin_go_on_and_end(void **state)
{
        struct accounting_record *record;

        (void)state;
        assert_shown();
        start(1, 101);
        start(2, 102);
        assert_shown();
        record = accounting_find(&accounting, 1);
        record->life_ns = 4000000000u;
        record->busy_ns[METER_SM] = 1000000000u;
        account_ring_update(&ring);
        assert_shown();
        account_ring_end(&ring, 1);
        account_ring_end(&ring, 9);
        assert_shown();
        assert_int_equal(accounting.records[0].is_running, 0);
        account_ring_end(&ring, 2);
        assert_shown();
}

static void test_a_reused_pid_is_shown_once_it_ended(void **state)
{
        (void)state;
        start(1, 7);
        account_ring_end(&ring, 1);
        start(2, 7);
        assert_shown();
        account_ring_end(&ring, 2);
        assert_int_equal(accounting.n, 1);
        assert_shown();
}

static void test_cleared_records_are_gone(void **state)
{
        (void)state;
        start(1, 1);
        start(2, 2);
        account_ring_end(&ring, 1);
        assert_int_equal(accounting_clear(&accounting), 1);
        account_ring_write(&ring);
        assert_shown();
        account_ring_end(&ring, 2);
        assert_shown();
}

static void test_a_long_one_stays_while_thousands_come_and_go(void **state)
{
        (void)state;
        start(1, 1);
        for (uint64_t i = 2; i < 3 * ACCOUNTING_MAX; i++) {
                start(i, (uint32_t)i);
                account_ring_end(&ring, i);
        }
        assert_int_equal(accounting.n, ACCOUNTING_MAX);
        assert_shown();
        assert_true(accounting_find(&accounting, 1)->is_running);
        account_ring_end(&ring, 1);
        assert_shown();
}

/* Each ends after the next has begun: no record ends at the place where it began. */
static void test_processes_that_overlap_fill_the_ring(void **state)
{
        (void)state;
        start(1, 1);
        for (uint64_t i = 2; i < ACCOUNTING_MAX + 500; i++) {
                start(i, (uint32_t)i);
                account_ring_end(&ring, i - 1);
        }
        assert_int_equal(accounting.n, ACCOUNTING_MAX);
        assert_shown();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_processes_begin_go_on_and_end, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_reused_pid_is_shown_once_it_ended, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_cleared_records_are_gone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_long_one_stays_while_thousands_come_and_go,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_processes_that_overlap_fill_the_ring, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
