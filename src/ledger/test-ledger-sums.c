/* SPDX-License-Identifier: Apache-2.0 */
/* Who has used how much: sums by tenants, vGPUs, processes, devices, jobs and containers. */
#include <stdio.h>

#include "ledger/test-fixture.h"

static void test_sums_by_all_groups(void **state)
{
        struct fixture *fixture = *state;
        const struct ledger_row *rows = fixture->rows;

        fill(fixture);
        assert_int_equal(ask(fixture, LEDGER_BY_TENANT, 0, 1000, LEDGER_ANY_TENANT), 2);
        assert_int_equal(rows[0].tenant, TENANT_A);
        assert_int_equal(rows[0].amount.busy_ns[METER_SM], 1740);
        assert_int_equal(rows[0].amount.busy_ns[METER_OFA], 1740 + 4 * METER_OFA);
        assert_int_equal(rows[0].amount.quota_mib_ms, 7777);
        assert_int_equal(rows[0].amount.used_mib_ms, 3 * 1740);
        assert_int_equal(rows[1].tenant, TENANT_B);
        assert_int_equal(rows[1].amount.busy_ns[METER_SM], 8);

        assert_int_equal(ask(fixture, LEDGER_BY_VGPU, 0, 1000, LEDGER_ANY_TENANT), 3);
        assert_string_equal(rows[0].vgpu.name, "train");
        assert_string_equal(rows[0].vgpu.uuid, "uuid-of-train");
        assert_int_equal(rows[0].amount.busy_ns[METER_SM], 1700);

        assert_int_equal(ask(fixture, LEDGER_BY_PROCESS, 0, 1000, LEDGER_ANY_TENANT), 4);
        assert_int_equal(rows[0].pid, 111);
        assert_string_equal(rows[0].process_name, "train 'x'");
        assert_int_equal(rows[0].started_ms, 11000);
        assert_int_equal(rows[0].amount.busy_ns[METER_SM], 1500);
        assert_int_equal(rows[1].ended_ms, 77000);
        assert_string_equal(rows[3].process_name, ""); /* its row is not known */

        assert_int_equal(ask(fixture, LEDGER_BY_DEVICE, 0, 1000, LEDGER_ANY_TENANT), 2);
        assert_string_equal(rows[1].device.uuid, "GPU-1");
        assert_string_equal(rows[1].device.name, "NVIDIA L4");
        assert_int_equal(rows[1].amount.busy_ns[METER_SM], 548);
}

static void test_jobs_of_slurm_are_summed_up_by_their_vgpus_names(void **state)
{
        struct fixture *fixture = *state;
        const struct ledger_row *rows = fixture->rows;

        fill(fixture);
        add_vgpu(fixture, 4, TENANT_A, "job-120-batch");
        add_vgpu(fixture, 5, TENANT_A, "job-120-0.3");
        add_vgpu(fixture, 6, TENANT_A, "job-7-0");
        add_vgpu(fixture, 7, TENANT_B, "job-120-0"); /* of somebody who only calls it so */
        add_vgpu(fixture, 8, TENANT_A, "job-1x-0");
        add_vgpu(fixture, 9, TENANT_A, "job-120");
        add_vgpu(fixture, 10, TENANT_A, "job--0");
        add_process(fixture, 41, 4, 0);
        for (uint64_t vgpu = 4; vgpu <= 10; vgpu++)
                add_usage(fixture, 100, vgpu, vgpu * 10 + 1, 0, vgpu);
        add_usage(fixture, 101, 4, 0, 0, 7);
        assert_int_equal(write_batch(fixture), 0);

        assert_int_equal(ask(fixture, LEDGER_BY_JOB, 0, 1000, LEDGER_ANY_TENANT), 3);
        assert_string_equal(rows[0].job, "7");
        assert_int_equal(rows[0].amount.busy_ns[METER_SM], 6);
        assert_int_equal(rows[0].memory_peak, 0); /* nothing is known of its process */
        assert_string_equal(rows[1].job, "120");
        assert_int_equal(rows[1].tenant, TENANT_A);
        assert_int_equal(rows[1].amount.busy_ns[METER_SM], 4 + 5);
        assert_int_equal(rows[1].amount.quota_mib_ms, 7);
        assert_int_equal(rows[1].memory_peak, 1ull << 40);
        assert_int_equal(rows[2].tenant, TENANT_B);
        assert_int_equal(ask(fixture, LEDGER_BY_JOB, 0, 1000, TENANT_B), 1);
}

static void add_contained(struct fixture *fixture, uint64_t serial, uint64_t vgpu, bool is_folded,
                          const char *container, const char *name)
{
        struct ledger_process process = { .serial = serial,
                                          .vgpu = vgpu,
                                          .started_ms = 100 * MINUTE,
                                          .ended_ms = is_folded ? 100 * MINUTE + 1 : 0,
                                          .max_memory = serial,
                                          .is_folded = is_folded };

        snprintf(process.container, sizeof(process.container), "%s", container);
        snprintf(process.container_name, sizeof(process.container_name), "%s", name);
        assert_int_equal(ledger_batch_add_process(&fixture->batch, &process), 0);
        add_usage(fixture, 100, vgpu, serial, 0, serial);
}

/* Also what short programs used, which have no row of their own. */
static void test_programs_in_containers_are_summed_up(void **state)
{
        struct fixture *fixture = *state;
        const struct ledger_row *rows = fixture->rows;

        add_vgpu(fixture, 1, TENANT_A, "train");
        add_vgpu(fixture, 2, TENANT_B, "other");
        add_contained(fixture, 11, 1, false, "aaaaaaaaaaaa", "web");
        add_contained(fixture, 12, 1, false, "bbbbbbbbbbbb", "web"); /* of another engine */
        add_contained(fixture, 13, 1, false, "", "");
        assert_int_equal(write_batch(fixture), 0);
        add_contained(fixture, 14, 1, true, "aaaaaaaaaaaa", "web");
        add_contained(fixture, 15, 1, true, "aaaaaaaaaaaa", "web");
        add_contained(fixture, 16, 1, true, "", "");
        add_contained(fixture, 21, 2, true, "aaaaaaaaaaaa", "web");
        add_usage(fixture, 100, 1, 0, 0, 1000); /* the quota of the vGPU */
        assert_int_equal(write_batch(fixture), 0);

        assert_int_equal(ask(fixture, LEDGER_BY_CONTAINER, 0, 1000, LEDGER_ANY_TENANT), 3);
        assert_string_equal(rows[0].container, "aaaaaaaaaaaa");
        assert_string_equal(rows[0].container_name, "web");
        assert_int_equal(rows[0].tenant, TENANT_A);
        assert_int_equal(rows[0].amount.busy_ns[METER_SM], 11 + 14 + 15);
        assert_int_equal(rows[0].amount.quota_mib_ms, 0);
        assert_int_equal(rows[0].memory_peak, 11);
        assert_string_equal(rows[1].container, "bbbbbbbbbbbb");
        assert_int_equal(rows[1].amount.busy_ns[METER_SM], 12);
        assert_int_equal(rows[2].tenant, TENANT_B);
        assert_int_equal(rows[2].amount.busy_ns[METER_SM], 21);
        assert_int_equal(ask(fixture, LEDGER_BY_CONTAINER, 0, 1000, TENANT_B), 1);
        assert_int_equal(ask(fixture, LEDGER_BY_PROCESS, 0, 1000, TENANT_B), 1);
        assert_string_equal(rows[0].process_name, LEDGER_OTHERS_NAME);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 3);
        assert_string_equal(fixture->processes[0].container_name, "web");
}

static void test_a_vgpu_is_summed_up_by_device(void **state)
{
        struct fixture *fixture = *state;
        const struct ledger_row *rows = fixture->rows;

        add_vgpu(fixture, 1, TENANT_A, "job");
        add_vgpu(fixture, 2, TENANT_B, "one");
        add_process(fixture, 11, 1, 0);
        add_usage(fixture, 100, 1, 11, 0, 1000);
        add_usage(fixture, 100, 1, 11, 1, 50);
        add_usage(fixture, 101, 1, 0, 1, 7); /* its quota */
        add_usage(fixture, 100, 2, 21, 1, 3);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask(fixture, LEDGER_BY_PART, 0, 1000, LEDGER_ANY_TENANT), 3);
        assert_string_equal(rows[0].vgpu.name, "job");
        assert_string_equal(rows[0].device.uuid, "GPU-0");
        assert_int_equal(rows[0].amount.busy_ns[METER_SM], 1000);
        assert_string_equal(rows[1].device.uuid, "GPU-1");
        assert_string_equal(rows[1].device.name, "NVIDIA L4");
        assert_int_equal(rows[1].amount.busy_ns[METER_SM], 50);
        assert_int_equal(rows[1].amount.quota_mib_ms, 7);
        assert_string_equal(rows[2].vgpu.name, "one");
        assert_int_equal(rows[2].tenant, TENANT_B);
}

static void test_sums_of_a_time_and_of_one_tenant(void **state)
{
        struct fixture *fixture = *state;
        const struct ledger_query page = { .group = LEDGER_BY_PROCESS,
                                           .until = 1000,
                                           .tenant = LEDGER_ANY_TENANT,
                                           .offset = 1,
                                           .limit = 2 };

        fill(fixture);
        assert_int_equal(ask(fixture, LEDGER_BY_VGPU, 101, 102, LEDGER_ANY_TENANT), 2);
        assert_int_equal(fixture->rows[0].amount.busy_ns[METER_SM], 500);
        assert_int_equal(ask(fixture, LEDGER_BY_VGPU, 102, 1000, LEDGER_ANY_TENANT), 0);
        assert_int_equal(ask(fixture, LEDGER_BY_VGPU, 0, 1000, TENANT_B), 1);
        assert_string_equal(fixture->rows[0].vgpu.name, "other");
        assert_int_equal(ask(fixture, LEDGER_BY_DEVICE, 0, 1000, TENANT_B), 1);
        assert_int_equal(fixture->rows[0].amount.busy_ns[METER_SM], 8);
        fixture->n = 0;
        assert_int_equal(ledger_sum(fixture->ledger, &page, copy_row, fixture), 0);
        assert_int_equal(fixture->n, 2);
        assert_int_equal(fixture->rows[0].process, 12);
}

static void test_usage_is_added_and_processes_replaced(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture);
        add_usage(fixture, 100, 1, 11, 0, 1);
        add_process(fixture, 11, 1, 0);
        add_process(fixture, 11, 1, 99000); /* the later counts */
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ask(fixture, LEDGER_BY_PROCESS, 100, 101, LEDGER_ANY_TENANT), 3);
        assert_int_equal(fixture->rows[0].amount.busy_ns[METER_SM], 1001);
        assert_int_equal(fixture->rows[0].ended_ms, 99000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_sums_by_all_groups),
                TEST(test_jobs_of_slurm_are_summed_up_by_their_vgpus_names),
                TEST(test_programs_in_containers_are_summed_up),
                TEST(test_a_vgpu_is_summed_up_by_device),
                TEST(test_sums_of_a_time_and_of_one_tenant),
                TEST(test_usage_is_added_and_processes_replaced),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
