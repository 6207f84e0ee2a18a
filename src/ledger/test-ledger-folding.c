/* SPDX-License-Identifier: Apache-2.0 */
/* What is folded into a row for all others, or forgotten: it changes no sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/test-fixture.h"

static void fold(struct fixture *fixture, uint64_t serial, uint64_t vgpu, uint64_t started_minute,
                 uint64_t ended_minute)
{
        const struct ledger_process process = { .serial = serial,
                                                .vgpu = vgpu,
                                                .started_ms = started_minute * MINUTE + 59999,
                                                .ended_ms = ended_minute * MINUTE,
                                                .is_folded = true };

        assert_int_equal(ledger_batch_add_process(&fixture->batch, &process), 0);
}

/* All rows of a group, in one text. */
static void describe(struct fixture *fixture, enum ledger_group group, uint64_t since, char *text,
                     size_t size)
{
        size_t n = ask(fixture, group, since, 1000, LEDGER_ANY_TENANT), at = 0;

        for (size_t i = 0; i < n; i++) {
                const struct usage_amount *amount = &fixture->rows[i].amount;

                at += (size_t)snprintf(text + at, size - at, "%u %s %s %lu %lu %lu %lu\n",
                                       fixture->rows[i].tenant, fixture->rows[i].vgpu.name,
                                       fixture->rows[i].device.uuid, amount->busy_ns[METER_SM],
                                       amount->busy_ns[METER_OFA], amount->quota_mib_ms,
                                       amount->used_mib_ms);
        }
}

static void test_processes_that_are_folded_change_no_sum(void **state)
{
        static const enum ledger_group groups[] = { LEDGER_BY_TENANT, LEDGER_BY_VGPU,
                                                    LEDGER_BY_DEVICE };
        struct fixture *fixture = *state;
        char before[3][2][512] = { 0 }, after[512];

        fill(fixture);
        add_usage(fixture, 101, 1, 12, 0, 77);
        assert_int_equal(write_batch(fixture), 0);
        for (size_t i = 0; i < 3; i++)
                for (size_t k = 0; k < 2; k++)
                        describe(fixture, groups[i], 100 + k, before[i][k], sizeof(before[i][k]));

        fold(fixture, 11, 1, 100, 101); /* on two devices, with another one of its vGPU, */
        fold(fixture, 12, 1, 100, 101);
        fold(fixture, 31, 3, 99, 100); /* and one of another vGPU, in parts */
        assert_int_equal(write_batch(fixture), 0);
        for (size_t i = 0; i < 3; i++)
                for (size_t k = 0; k < 2; k++) {
                        memset(after, 0, sizeof(after));
                        describe(fixture, groups[i], 100 + k, after, sizeof(after));
                        assert_string_equal(after, before[i][k]);
                }

        assert_int_equal(ask(fixture, LEDGER_BY_PROCESS, 0, 1000, LEDGER_ANY_TENANT), 3);
        assert_int_equal(fixture->rows[0].process, LEDGER_OTHERS);
        assert_string_equal(fixture->rows[0].process_name, LEDGER_OTHERS_NAME);
        assert_string_equal(fixture->rows[0].vgpu.name, "train");
        assert_int_equal(fixture->rows[0].pid, 0);
        assert_int_equal(fixture->rows[0].amount.busy_ns[METER_SM], 1000 + 500 + 200 + 77);
        assert_int_equal(fixture->rows[1].process, LEDGER_OTHERS);
        assert_string_equal(fixture->rows[1].vgpu.name, "other");
        assert_int_equal(fixture->rows[2].process, 21);
}

/* It was written while it ran, and what it did last comes with its end. */
static void test_a_process_is_folded_with_what_it_used_last(void **state)
{
        struct fixture *fixture = *state;

        add_vgpu(fixture, 1, TENANT_A, "train");
        add_process(fixture, 11, 1, 0);
        add_usage(fixture, 100, 1, 11, 0, 1000);
        assert_int_equal(write_batch(fixture), 0);

        add_process(fixture, 12, 1, 0);
        fold(fixture, 12, 1, 100, 100); /* also one of which nothing was written */
        add_usage(fixture, 100, 1, 12, 0, 10);
        fold(fixture, 11, 1, 100, 100);
        add_usage(fixture, 100, 1, 11, 0, 100);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask(fixture, LEDGER_BY_PROCESS, 0, 1000, LEDGER_ANY_TENANT), 1);
        assert_int_equal(fixture->rows[0].process, LEDGER_OTHERS);
        assert_int_equal(fixture->rows[0].amount.busy_ns[METER_SM], 1110);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 0);
}

static void fold_vgpu(struct fixture *fixture, uint64_t serial, uid_t owner, uint64_t last_minute)
{
        const struct ledger_vgpu vgpu = { .serial = serial,
                                          .owner = owner,
                                          .is_gone = true,
                                          .is_folded = true,
                                          .gone_ms = last_minute * MINUTE };

        assert_int_equal(ledger_batch_add_vgpu(&fixture->batch, &vgpu), 0);
}

/* Two of one user and one of another; a fourth stays. Their processes go with them. */
static void test_vgpus_that_are_folded_change_no_sum_of_their_users(void **state)
{
        static const enum ledger_group groups[] = { LEDGER_BY_TENANT, LEDGER_BY_DEVICE };
        const uint64_t created = 100 * MINUTE * 1000000;
        struct fixture *fixture = *state;
        char before[2][512] = { 0 }, after[512];

        add_vgpu(fixture, created, TENANT_A, "first");
        add_vgpu(fixture, created + 1, TENANT_A, "second");
        add_vgpu(fixture, created + 2, TENANT_B, "third");
        add_vgpu(fixture, created + 3, TENANT_A, "stays");
        for (uint64_t i = 0; i < 4; i++) {
                add_process(fixture, 11 + i, created + i, 101 * MINUTE);
                add_usage(fixture, 100, created + i, 0, 0, 10);
                add_usage(fixture, 101, created + i, 11 + i, (uint32_t)i % 2, 1000);
        }
        assert_int_equal(write_batch(fixture), 0);
        for (size_t i = 0; i < 2; i++)
                describe(fixture, groups[i], 100, before[i], sizeof(before[i]));

        fold_vgpu(fixture, created, TENANT_A, 101);
        fold_vgpu(fixture, created + 1, TENANT_A, 101);
        fold_vgpu(fixture, created + 2, TENANT_B, 101);
        assert_int_equal(write_batch(fixture), 0);
        for (size_t i = 0; i < 2; i++) {
                memset(after, 0, sizeof(after));
                describe(fixture, groups[i], 100, after, sizeof(after));
                assert_string_equal(after, before[i]);
        }
        assert_int_equal(ask(fixture, LEDGER_BY_VGPU, 0, 1000, LEDGER_ANY_TENANT), 3);
        assert_string_equal(fixture->rows[0].vgpu.name, LEDGER_OTHERS_NAME);
        assert_string_equal(fixture->rows[1].vgpu.name, LEDGER_OTHERS_NAME);
        assert_int_not_equal(fixture->rows[0].tenant, fixture->rows[1].tenant);
        assert_string_equal(fixture->rows[2].vgpu.name, "stays");
        assert_int_equal(ledger_has_vgpu(fixture->ledger, created), 0);
        fixture->n = 0;
        assert_int_equal(ledger_each_ended(fixture->ledger, created, 16, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 0);
}

static void test_old_usage_is_forgotten(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture);
        assert_int_equal(ledger_prune(fixture->ledger, 100), 0);
        assert_int_equal(ask_all(fixture), 1748);
        assert_int_equal(ledger_prune(fixture->ledger, 101), 1);
        assert_int_equal(ledger_prune(fixture->ledger, 101), 0);
        assert_int_equal(ask_all(fixture), 540);
        assert_int_equal(ask(fixture, LEDGER_BY_PROCESS, 0, 1000, LEDGER_ANY_TENANT), 2);
        assert_int_equal(fixture->rows[0].pid, 111); /* it runs, and is kept */
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->processes[0].serial, 11);
}

static int read_number(void *userdata, int n, char **columns, char **names)
{
        (void)n, (void)names;
        *(int *)userdata = atoi(columns[0]);
        return 0;
}

static int count_vgpus(struct fixture *fixture)
{
        int n = -1;

        assert_int_equal(sqlite3_exec(fixture->ledger->database.handle, "SELECT count(*) FROM vgpu",
                                      read_number, &n, NULL),
                         SQLITE_OK);
        return n;
}

static void test_vgpus_that_are_gone_go_with_the_last_of_their_usage(void **state)
{
        const struct ledger_vgpu there = { .serial = 1, .owner = TENANT_A, .name = "there" };
        struct fixture *fixture = *state;
        int all;

        fill(fixture);
        all = count_vgpus(fixture);
        assert_true(all > 1);
        assert_int_equal(ledger_prune_vgpus(fixture->ledger, NULL, 0), 0);
        assert_int_equal(count_vgpus(fixture), all);
        assert_int_equal(ledger_prune(fixture->ledger, 1000), 1);
        assert_int_equal(ledger_prune_vgpus(fixture->ledger, &there, 1), 0);
        assert_int_equal(count_vgpus(fixture), 1);

        add_usage(fixture, 2000, 1, 0, 0, 5);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask(fixture, LEDGER_BY_VGPU, 0, 3000, TENANT_A), 1);
        assert_string_equal(fixture->rows[0].vgpu.name, "there");
        assert_int_equal(ledger_prune_vgpus(fixture->ledger, NULL, 0), 0);
        assert_int_equal(count_vgpus(fixture), 1);
        assert_int_equal(fixture->rows[0].amount.quota_mib_ms, 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_processes_that_are_folded_change_no_sum),
                TEST(test_a_process_is_folded_with_what_it_used_last),
                TEST(test_vgpus_that_are_folded_change_no_sum_of_their_users),
                TEST(test_old_usage_is_forgotten),
                TEST(test_vgpus_that_are_gone_go_with_the_last_of_their_usage),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
