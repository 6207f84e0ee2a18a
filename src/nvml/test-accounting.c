/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of processes that ran and run: order, numbers used twice, a ring that is full. */
#include "base/test.h"
#include "nvml/fixture.h"

#define SLOT 5 /* of the vGPU FIXTURE_TRAIN, in which 4242 runs */

static void end_process(struct fixture *fixture, uint32_t pid, uint64_t time_ms)
{
        const struct state_account account = { .instance = FIXTURE_TRAIN,
                                               .pid = pid,
                                               .utilization_gpu = 50,
                                               .utilization_memory = 7,
                                               .max_memory = GIB,
                                               .time_ms = time_ms,
                                               .start_us = 123456 };

        state_append_account(fixture->state_page, SLOT, &account);
}

static unsigned int get_pids(unsigned int *pids)
{
        unsigned int count = 4000;

        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, pids), 0);
        return count;
}

static void test_those_that_ended_come_first_in_the_order_of_their_ends(void **state)
{
        nvmlAccountingStats_t stats;
        unsigned int pids[4000];

        end_process(*state, 11, 1000);
        end_process(*state, 10, 2000);
        assert_int_equal(get_pids(pids), 3);
        assert_int_equal(pids[0], 11);
        assert_int_equal(pids[1], 10);
        assert_int_equal(pids[2], 4242);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 10, &stats), 0);
        assert_int_equal(stats.isRunning, 0);
        assert_int_equal(stats.time, 2000);
        assert_int_equal(stats.gpuUtilization, 50);
        assert_int_equal(stats.memoryUtilization, 7);
        assert_int_equal(stats.maxMemoryUsage, GIB);
        assert_int_equal(stats.startTime, 123456);
}

static void test_a_number_used_twice_is_the_one_that_ended_last(void **state)
{
        nvmlAccountingStats_t stats;
        unsigned int pids[4000];

        end_process(*state, 4242, 1000); /* hides the one that runs */
        end_process(*state, 7, 1000);
        end_process(*state, 4242, 3000);
        assert_int_equal(get_pids(pids), 2);
        assert_int_equal(pids[0], 7);
        assert_int_equal(pids[1], 4242);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4242, &stats), 0);
        assert_int_equal(stats.time, 3000);
        assert_int_equal(stats.isRunning, 0);
}

static void test_records_of_who_had_the_place_before_are_not_told(void **state)
{
        const struct state_account account = { .instance = 77, .pid = 5 };
        struct fixture *fixture = *state;
        nvmlAccountingStats_t stats;
        unsigned int pids[4000];

        state_append_account(fixture->state_page, SLOT, &account);
        assert_int_equal(get_pids(pids), 1);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 5, &stats),
                         NVML_ERROR_NOT_FOUND);
}

static void test_the_oldest_make_room_for_the_newest(void **state)
{
        nvmlAccountingStats_t stats;
        unsigned int pids[4000];

        for (uint32_t pid = 10000; pid < 10000 + STATE_ACCOUNTS_MAX + 5; pid++)
                end_process(*state, pid, 1);
        assert_int_equal(get_pids(pids), STATE_ACCOUNTS_MAX);
        assert_int_equal(pids[0], 10005);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 10004, &stats),
                         NVML_ERROR_NOT_FOUND);
}

static void test_without_room_the_most_are_told_unless_there_is_none(void **state)
{
        struct fixture *fixture = *state;
        unsigned int count = 0;

        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 4000);
        count = 0;
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(0, &count, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        state_write_account(fixture->state_page, SLOT, 0, NULL);
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, NULL),
                         NVML_SUCCESS);
        assert_int_equal(count, 0);
}

static void test_accounting_that_is_off_or_not_there(void **state)
{
        struct fixture *fixture = *state;
        unsigned int pids[4000], count = 4000;
        struct state_instance instance;
        nvmlAccountingStats_t stats;
        nvmlEnableState_t mode;

        assert_true(state_read_instance(fixture->state_page, SLOT, &instance));
        instance.accounting = 0;
        state_write_instance(fixture->state_page, SLOT, &instance);
        assert_int_equal(nvmlVgpuInstanceGetAccountingMode(FIXTURE_TRAIN, &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_FEATURE_DISABLED);
        assert_int_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, pids),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4242, &stats),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlVgpuInstanceClearAccountingPids(FIXTURE_TRAIN),
                         NVML_ERROR_NOT_SUPPORTED);
        instance.accounting = STATE_NONE;
        state_write_instance(fixture->state_page, SLOT, &instance);
        assert_int_equal(nvmlVgpuInstanceGetAccountingMode(FIXTURE_TRAIN, &mode),
                         NVML_ERROR_NOT_SUPPORTED);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_those_that_ended_come_first_in_the_order_of_their_ends),
                with_state_page(test_a_number_used_twice_is_the_one_that_ended_last),
                with_state_page(test_records_of_who_had_the_place_before_are_not_told),
                with_state_page(test_the_oldest_make_room_for_the_newest),
                with_state_page(test_without_room_the_most_are_told_unless_there_is_none),
                with_state_page(test_accounting_that_is_off_or_not_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
