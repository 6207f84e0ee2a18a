/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into the ledger at once, with memory that runs out: it is linked with our reallocarray(). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "ledger/ledger.h"

#define MINUTE 60000ull

static bool is_memory_out;

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
        return is_memory_out ? NULL : __real_reallocarray(old, n, size);
}

static void add_vgpu(struct ledger_batch *batch, uint64_t serial, const char *name)
{
        struct ledger_vgpu vgpu = { .serial = serial };

        snprintf(vgpu.name, sizeof(vgpu.name), "%s", name);
        assert_int_equal(ledger_batch_add_vgpu(batch, &vgpu), 0);
}

static void add_process(struct ledger_batch *batch, uint64_t serial, uint64_t life_ns)
{
        const struct ledger_process process = { .serial = serial, .life_ns = life_ns };

        assert_int_equal(ledger_batch_add_process(batch, &process), 0);
}

static void add_usage(struct ledger_batch *batch, uint64_t minute, uint64_t process)
{
        const struct usage_key key = { .process = process, .vgpu = 1 };
        struct usage_amount amount = { .used_mib_ms = 1 };

        assert_int_equal(
                minutes_add(&batch->minutes, &key, &amount, minute * MINUTE, minute * MINUTE), 0);
}

static uint64_t sum(const struct ledger_batch *batch)
{
        uint64_t all = 0;

        for (size_t i = 0; i < batch->minutes.n; i++)
                all += batch->minutes.rows[i].amount.used_mib_ms;
        return all;
}

static void fill(struct ledger_batch *batch, uint64_t first, uint64_t n)
{
        for (uint64_t i = first; i < first + n; i++) {
                add_vgpu(batch, i, "of many");
                add_process(batch, i, 1);
                add_usage(batch, 100, i);
                add_usage(batch, 101, i);
                assert_int_equal(
                        ledger_batch_add_clearing(batch, &(struct ledger_clearing){ i, 1 }), 0);
        }
}

static void test_all_is_moved_in_its_order(void **state)
{
        CLEANUP(ledger_batch_deinit) struct ledger_batch to = { 0 };
        CLEANUP(ledger_batch_deinit) struct ledger_batch from = { 0 };

        (void)state;
        for (int round = 0; round < 2; round++) {
                fill(&from, 1, 50);
                add_vgpu(&from, 7, "older");
                add_vgpu(&from, 7, "later");
                from.wall.wall_ms = 5;
                assert_int_equal(ledger_batch_move(&to, &from), 0);
                assert_int_equal(from.n_vgpus + from.n_processes + from.n_clearings, 0);
                assert_int_equal(from.minutes.n, 0);
        }
        assert_int_equal(to.n_vgpus, 104);
        assert_int_equal(to.vgpus[0].serial, 1);
        assert_string_equal(to.vgpus[103].name, "later");
        assert_int_equal(to.n_clearings, 100);
        assert_int_equal(to.minutes.n, 100);
        assert_int_equal(sum(&to), 200);
        assert_int_equal(to.wall.wall_ms, 5);
}

/* For UndefinedBehaviorSanitizer: a list that never had a row has no memory that could be moved. */
static void test_nothing_is_moved(void **state)
{
        CLEANUP(ledger_batch_deinit) struct ledger_batch to = { 0 };
        CLEANUP(ledger_batch_deinit) struct ledger_batch from = { 0 };

        (void)state;
        assert_int_equal(ledger_batch_move(&to, &from), 0);
        assert_int_equal(to.n_vgpus + to.n_processes + to.n_clearings, 0);
}

/* Nothing is lost and nothing there twice, wherever the memory ends; and what is gone comes last. */
static void test_what_does_not_fit_into_memory_stays_where_it_is(void **state)
{
        (void)state;
        for (uint64_t n = 1; n < 120; n += 7) {
                CLEANUP(ledger_batch_deinit) struct ledger_batch to = { 0 };
                CLEANUP(ledger_batch_deinit) struct ledger_batch from = { 0 };

                fill(&to, 1, n);
                fill(&from, 1001, 300);
                add_usage(&from, 100, 1); /* which has a row already */
                is_memory_out = true;
                assert_int_equal(ledger_batch_move(&to, &from), -ENOMEM);
                is_memory_out = false;
                assert_true(from.n_vgpus == 300);
                assert_int_equal(sum(&to) + sum(&from), 2 * n + 601);
                assert_int_equal(to.n_processes + from.n_processes, n + 300);
                add_usage(&from, 101, 1300); /* the rest can be used as before */

                assert_int_equal(ledger_batch_move(&to, &from), 0);
                assert_int_equal(sum(&to), 2 * n + 602);
                assert_int_equal(to.minutes.n, 2 * n + 600);
                assert_int_equal(to.n_processes, n + 300);
                assert_int_equal(to.n_clearings, n + 300);
                assert_int_equal(to.n_vgpus, n + 300);
                for (uint64_t i = 0; i < 300; i++) {
                        assert_int_equal(to.vgpus[n + i].serial, 1001 + i);
                        assert_int_equal(to.processes[n + i].serial, 1001 + i);
                        assert_int_equal(to.clearings[n + i].vgpu, 1001 + i);
                }
        }
}

/* As while the disk is full: each second the processes that run, and some that have ended meanwhile. */
static void test_a_process_takes_no_more_memory_the_longer_it_runs(void **state)
{
        CLEANUP(ledger_batch_deinit) struct ledger_batch batch = { 0 };
        uint64_t latest[61] = { 0 };

        (void)state;
        add_process(&batch, 60, 77);
        for (uint64_t second = 1; second < 5000; second++)
                for (uint64_t serial = 1; serial < 60; serial++)
                        add_process(&batch, serial, second);
        assert_true(batch.room_processes <= 256);
        for (size_t i = 0; i < batch.n_processes; i++)
                latest[batch.processes[i].serial] = batch.processes[i].life_ns;
        for (uint64_t serial = 1; serial < 60; serial++)
                assert_int_equal(latest[serial], 4999);
        assert_int_equal(latest[60], 77);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_is_moved_in_its_order),
                cmocka_unit_test(test_nothing_is_moved),
                cmocka_unit_test(test_what_does_not_fit_into_memory_stays_where_it_is),
                cmocka_unit_test(test_a_process_takes_no_more_memory_the_longer_it_runs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
