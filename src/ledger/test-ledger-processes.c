/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a process, on each of its devices, and of its vGPU. */
#include "ledger/test-fixture.h"

static void add_part(struct fixture *fixture, uint64_t serial, uint32_t device, bool is_folded,
                     uint64_t busy_ns)
{
        const struct ledger_process part = { .serial = serial,
                                             .of_device = device + 1,
                                             .is_folded = is_folded,
                                             .max_memory = 10 * busy_ns,
                                             .busy_ns = { [METER_SM] = busy_ns },
                                             .seen_ns = { [METER_MEMORY] = busy_ns } };

        assert_int_equal(ledger_batch_add_process(&fixture->batch, &part), 0);
}

static size_t count_parts(struct fixture *fixture, uint64_t serial)
{
        fixture->n = 0;
        assert_int_equal(ledger_each_part(fixture->ledger, serial, copy_process, fixture), 0);
        return fixture->n;
}

static void test_a_process_has_a_row_for_each_of_several_devices(void **state)
{
        struct fixture *fixture = *state;

        add_vgpu(fixture, 1, TENANT_A, "job");
        for (uint64_t serial = 11; serial < 13; serial++) {
                add_process(fixture, serial, 1, 0);
                add_part(fixture, serial, 0, false, serial);
                add_part(fixture, serial, 1, false, 2 * serial);
        }
        add_part(fixture, 11, 1, false, 70); /* it counts on */
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(count_parts(fixture, 11), 2);
        assert_int_equal(fixture->processes[0].busy_ns[METER_SM], 11);
        assert_int_equal(ledger_process_get_device(&fixture->processes[1]), 1);
        assert_int_equal(fixture->processes[1].busy_ns[METER_SM], 70);
        assert_int_equal(fixture->processes[1].seen_ns[METER_MEMORY], 70);
        assert_int_equal(fixture->processes[1].max_memory, 700);
        fixture->n = 0;
        assert_int_equal(ledger_each_running_part(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 4);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 2);
}

/* It goes with its process: one that is folded, and one that is forgotten for its age. */
static void test_what_a_process_had_of_several_devices_goes_with_it(void **state)
{
        struct fixture *fixture = *state;
        struct ledger_process folded = {
                .serial = 11, .vgpu = 1, .ended_ms = 5, .is_folded = true
        };

        add_vgpu(fixture, 1, TENANT_A, "job");
        add_process(fixture, 11, 1, 0);
        add_part(fixture, 11, 1, false, 11);
        add_process(fixture, 12, 1, 5 * MINUTE);
        add_part(fixture, 12, 1, false, 12);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(count_parts(fixture, 11), 1);
        assert_int_equal(ledger_batch_add_process(&fixture->batch, &folded), 0);
        add_part(fixture, 11, 1, true, 13);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(count_parts(fixture, 11), 0);
        assert_int_equal(count_parts(fixture, 12), 1);
        assert_int_equal(ledger_prune(fixture->ledger, 7), 0);
        assert_int_equal(count_parts(fixture, 12), 0);
}

static void test_processes_of_a_vgpu_in_order(void **state)
{
        struct fixture *fixture = *state;
        const struct ledger_process *processes = fixture->processes;

        add_process(fixture, 1, 9, 0);
        add_process(fixture, 2, 9, 4000);
        add_process(fixture, 3, 9, 3000);
        add_process(fixture, 4, 9, 2000);
        add_process(fixture, 5, 8, 2000);
        add_process(fixture, 6, 9, 2500);
        fixture->batch.processes[5].is_listed = false;
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ledger_each_ended(fixture->ledger, 9, 2, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 2);
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 3);
        assert_int_equal(processes[0].serial, 3);
        assert_int_equal(processes[1].serial, 2);
        assert_int_equal(processes[2].serial, 1);
        assert_int_equal(processes[2].pid, 101);
        assert_int_equal(processes[2].start_time, 8);
        assert_int_equal(processes[2].joined_ms, 9);
        assert_int_equal(processes[2].max_memory, 1ull << 40);
        assert_int_equal(processes[2].busy_ns[METER_OFA], 6);
        assert_int_equal(processes[2].seen_ns[METER_SM], 7);
        assert_int_equal(processes[2].seen_ns[METER_OFA], 12);
        assert_string_equal(processes[2].name, "train 'x'");
        assert_true(processes[2].is_listed);
}

static void test_which_vgpus_are_written(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 2), 1);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 4), 0);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 3), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_a_process_has_a_row_for_each_of_several_devices),
                TEST(test_what_a_process_had_of_several_devices_goes_with_it),
                TEST(test_processes_of_a_vgpu_in_order),
                TEST(test_which_vgpus_are_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
