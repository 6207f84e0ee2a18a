/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/test.h"
#include "database/test-release.h"
#include "ledger/ledger-internal.h"

#define TENANT_A 1000
#define TENANT_B 1001
#define MINUTE   60000ull

static const struct ledger_device devices[] = { { "GPU-0", "NVIDIA H200" },
                                                { "GPU-1", "NVIDIA L4" } };

struct fixture {
        char path[64];
        struct ledger *ledger;
        struct ledger_batch batch;
        struct ledger_row rows[16];
        struct ledger_process processes[16];
        size_t n;
};

static int open_again(struct fixture *fixture, const char *boot)
{
        fixture->ledger = ledger_close(fixture->ledger);
        return ledger_open(&fixture->ledger, fixture->path, boot, devices, 2);
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-ledger-XXXXXX");
        fd_close(mkstemp(fixture->path));
        assert_int_equal(open_again(fixture, "boot"), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;
        char other[80];

        (void)ledger_close(fixture->ledger);
        ledger_batch_deinit(&fixture->batch);
        for (const char **suffix = (const char *[]){ "", "-wal", "-shm", "-journal", NULL };
             *suffix; suffix++) {
                snprintf(other, sizeof(other), "%s%s", fixture->path, *suffix);
                (void)unlink(other);
        }
        free(fixture);
        return 0;
}

static void add_vgpu(struct fixture *fixture, uint64_t serial, uid_t owner, const char *name)
{
        struct ledger_vgpu vgpu = { .serial = serial, .owner = owner };

        snprintf(vgpu.name, sizeof(vgpu.name), "%s", name);
        snprintf(vgpu.uuid, sizeof(vgpu.uuid), "uuid-of-%s", name);
        assert_int_equal(ledger_batch_add_vgpu(&fixture->batch, &vgpu), 0);
}

static void add_process(struct fixture *fixture, uint64_t serial, uint64_t vgpu, uint64_t ended_ms)
{
        struct ledger_process process = {
                .serial = serial,
                .vgpu = vgpu,
                .pid = (pid_t)serial + 100,
                .start_time = serial + 7,
                .started_ms = serial * 1000,
                .ended_ms = ended_ms,
                .life_ns = 5,
                .joined_ms = serial + 8,
                .max_memory = 1ull << 40,
                .busy_ns = { 1, 2, 3, 4, 5, 6 },
                .seen_ns = { 7, 8, 9, 10, 11, 12 },
                .is_listed = true,
                .name = "train 'x'",
        };

        assert_int_equal(ledger_batch_add_process(&fixture->batch, &process), 0);
}

static void add_usage(struct fixture *fixture, uint64_t minute, uint64_t vgpu, uint64_t process,
                      uint32_t device, uint64_t amount)
{
        const struct usage_key key = { .process = process, .vgpu = vgpu, .device = device };
        struct usage_amount usage = { .used_mib_ms = process ? 3 * amount : 0,
                                      .quota_mib_ms = process ? 0 : amount };

        for (int i = 0; process && i < METER_ENGINES; i++)
                usage.busy_ns[i] = amount + (uint64_t)i;
        assert_int_equal(minutes_add(&fixture->batch.minutes, &key, &usage, minute * MINUTE,
                                     minute * MINUTE),
                         0);
}

static int write_batch(struct fixture *fixture)
{
        int r = ledger_write(fixture->ledger, &fixture->batch);

        if (r == 0)
                ledger_batch_deinit(&fixture->batch);
        return r;
}

static int copy_row(const struct ledger_row *row, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->rows[fixture->n++] = *row;
        return 0;
}

static size_t ask(struct fixture *fixture, enum ledger_group group, uint64_t since, uint64_t until,
                  int64_t tenant)
{
        const struct ledger_query query = {
                .group = group, .since = since, .until = until, .tenant = tenant, .limit = 16
        };

        fixture->n = 0;
        assert_int_equal(ledger_sum(fixture->ledger, &query, copy_row, fixture), 0);
        return fixture->n;
}

static uint64_t ask_all(struct fixture *fixture)
{
        uint64_t sum = 0;

        for (size_t i = ask(fixture, LEDGER_BY_VGPU, 0, INT64_MAX, LEDGER_ANY_TENANT); i > 0; i--)
                sum += fixture->rows[i - 1].amount.busy_ns[METER_SM];
        return sum;
}

/* Two tenants with three vGPUs on two devices in two minutes. */
static void fill(struct fixture *fixture)
{
        add_vgpu(fixture, 1, TENANT_A, "train");
        add_vgpu(fixture, 2, TENANT_A, "serve");
        add_vgpu(fixture, 3, TENANT_B, "other");
        add_process(fixture, 11, 1, 0);
        add_process(fixture, 12, 1, 77000);
        add_process(fixture, 21, 2, 0);
        add_usage(fixture, 100, 1, 11, 0, 1000);
        add_usage(fixture, 101, 1, 11, 1, 500);
        add_usage(fixture, 100, 1, 12, 0, 200);
        add_usage(fixture, 101, 2, 21, 1, 40);
        add_usage(fixture, 100, 3, 31, 1, 8);
        add_usage(fixture, 100, 1, 0, 0, 7777);
        fixture->batch.wall = (struct wall){ 5000, 6000000 };
        assert_int_equal(write_batch(fixture), 0);
}

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

static int copy_process(const struct ledger_process *process, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->processes[fixture->n++] = *process;
        return 0;
}

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

static void test_the_clock_counts_within_a_boot(void **state)
{
        struct fixture *fixture = *state;
        bool is_this_boot;
        struct wall wall;

        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), -ENOENT);
        fill(fixture);
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), 0);
        assert_int_equal(wall.steady_ms, 5000);
        assert_int_equal(wall.wall_ms, 6000000);
        assert_true(is_this_boot);
        assert_int_equal(open_again(fixture, "another boot"), 0);
        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), 0);
        assert_int_equal(wall.steady_ms, 5000);
        assert_false(is_this_boot);
}

static void test_which_vgpus_are_written(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 2), 1);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 4), 0);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 3), 1);
}

static void test_a_batch_is_written_entirely_or_not(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(setenv("OPENVGPU_FAULT", "ledger.written=fail", 1), 0);
        add_vgpu(fixture, 1, TENANT_A, "train");
        add_usage(fixture, 100, 1, 11, 0, 1000);
        assert_int_equal(write_batch(fixture), -EIO);
        assert_int_equal(ask_all(fixture), 0);
        assert_int_equal(write_batch(fixture), 0); /* once only */
        assert_int_equal(ask_all(fixture), 1000);
        (void)unsetenv("OPENVGPU_FAULT");
}

static void test_a_locked_ledger_is_written_later(void **state)
{
        struct fixture *fixture = *state;
        sqlite3 *other;

        fill(fixture);
        assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        add_usage(fixture, 200, 1, 11, 0, 5);
        assert_int_equal(write_batch(fixture), -EBUSY);
        assert_int_equal(ask_all(fixture), 1748); /* it can be read */
        assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(other);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask_all(fixture), 1753);
}

static void limit_pages(struct fixture *fixture, int pages)
{
        char text[64];

        snprintf(text, sizeof(text), "PRAGMA max_page_count=%d", pages);
        assert_int_equal(sqlite3_exec(fixture->ledger->database.handle, text, NULL, NULL, NULL),
                         SQLITE_OK);
}

/* SQLite's own limit of a file makes it say what it says of a full disk. */
static void test_a_full_disk_costs_nothing_that_was_written(void **state)
{
        struct fixture *fixture = *state;
        uint64_t sum = 1748;
        int r = 0;

        fill(fixture);
        limit_pages(fixture, 16);
        for (uint64_t i = 1; i < 2000; i++) {
                add_usage(fixture, 1000 + i, 1, 11, 0, 1);
                r = write_batch(fixture);
                if (r < 0)
                        break;
                sum++;
        }
        assert_int_equal(r, -ENOSPC);
        assert_int_equal(ask_all(fixture), sum);
        limit_pages(fixture, 100000);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(ask_all(fixture), sum + 1);
}

static void overwrite(const char *path, off_t from, size_t size)
{
        char garbage[4096];
        int fd = open(path, O_RDWR | O_CLOEXEC);

        memset(garbage, 0xa5, sizeof(garbage));
        assert_true(fd >= 0);
        for (size_t done = 0; done < size; done += sizeof(garbage))
                assert_int_equal(pwrite(fd, garbage, sizeof(garbage), from + (off_t)done),
                                 sizeof(garbage));
        fd_close(fd);
}

static void test_a_damaged_ledger_is_told_and_kept(void **state)
{
        struct fixture *fixture = *state;
        char kept[PATHS_MAX];

        fill(fixture);
        fixture->ledger = ledger_close(fixture->ledger);
        overwrite(fixture->path, 0, 8192);
        assert_int_equal(open_again(fixture, "boot"), -EUCLEAN);
        assert_int_equal(ledger_set_aside(fixture->path, 12345, kept), 0);
        assert_int_equal(access(kept, F_OK), 0);
        assert_int_equal(unlink(kept), 0);
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ask_all(fixture), 0);
        fill(fixture);
        assert_int_equal(ask_all(fixture), 1748);
}

static void change(const char *path, const char *text)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(database);
}

static void test_a_ledger_of_each_release_is_opened(void **state)
{
        struct fixture *fixture = *state;
        bool is_this_boot;
        struct wall wall;

        fixture->ledger = ledger_close(fixture->ledger);
        assert_int_equal(unlink(fixture->path), 0);
        release_load(fixture->path, RELEASES "/release-2.sql");
        assert_int_equal(open_again(fixture, "b3a0c176-13d4-43d4-a24c-7030f98905b3"), 0);
        assert_int_equal(ledger_get_wall(fixture->ledger, &wall, &is_this_boot), 0);
        assert_int_equal(wall.steady_ms, 3315806);
        assert_true(is_this_boot);
        assert_int_equal(ledger_has_vgpu(fixture->ledger, 1795358226019691740), 1);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 1);
        assert_int_equal(fixture->processes[0].busy_ns[METER_SM], 5895003102);
        assert_string_equal(fixture->processes[0].container, "");
        assert_int_equal(ask(fixture, LEDGER_BY_CONTAINER, 0, 1ull << 40, LEDGER_ANY_TENANT), 0);
}

/* As version 1 had it. */
static void test_a_ledger_of_the_version_before_is_brought_up_to_date(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture);
        fixture->ledger = ledger_close(fixture->ledger);
        change(fixture->path,
               "DROP INDEX process_running; ALTER TABLE process DROP COLUMN joined_ms;"
               "ALTER TABLE process DROP COLUMN container;"
               "ALTER TABLE process DROP COLUMN container_name;"
               "DROP TRIGGER process_dropped; DROP TABLE process_device;"
               "PRAGMA user_version=1");
        assert_int_equal(open_again(fixture, "boot"), 0);
        assert_int_equal(ask_all(fixture), 1748);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->n, 2);
        assert_int_equal(fixture->processes[0].joined_ms, 0);
        assert_int_equal(fixture->processes[0].seen_ns[METER_OFA], 12);
        add_process(fixture, 11, 1, 0);
        assert_int_equal(write_batch(fixture), 0);
        assert_int_equal(open_again(fixture, "boot"), 0);
        fixture->n = 0;
        assert_int_equal(ledger_each_running(fixture->ledger, copy_process, fixture), 0);
        assert_int_equal(fixture->processes[0].joined_ms, 19);
}

static void test_what_is_not_ours_is_left_alone(void **state)
{
        struct fixture *fixture = *state;

        fixture->ledger = ledger_close(fixture->ledger);
        change(fixture->path, "PRAGMA user_version=99");
        assert_int_equal(open_again(fixture, "boot"), -EPROTONOSUPPORT);
        change(fixture->path, "PRAGMA application_id=7");
        assert_int_equal(open_again(fixture, "boot"), -EPROTO);
        assert_int_equal(
                ledger_open(&fixture->ledger, "/nonexistent/ledger.db", "boot", devices, 2),
                -EACCES);
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
                cmocka_unit_test_setup_teardown(test_a_batch_is_written_entirely_or_not, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_sums_by_all_groups, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_jobs_of_slurm_are_summed_up_by_their_vgpus_names, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_processes_that_are_folded_change_no_sum,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_programs_in_containers_are_summed_up, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_process_has_a_row_for_each_of_several_devices, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_what_a_process_had_of_several_devices_goes_with_it, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_vgpu_is_summed_up_by_device, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_process_is_folded_with_what_it_used_last,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_vgpus_that_are_folded_change_no_sum_of_their_users, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_sums_of_a_time_and_of_one_tenant, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_usage_is_added_and_processes_replaced, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_processes_of_a_vgpu_in_order, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_clock_counts_within_a_boot, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_which_vgpus_are_written, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_ledger_of_each_release_is_opened, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_ledger_of_the_version_before_is_brought_up_to_date, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_a_locked_ledger_is_written_later, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_full_disk_costs_nothing_that_was_written,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_damaged_ledger_is_told_and_kept, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_what_is_not_ours_is_left_alone, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_vgpus_that_are_gone_go_with_the_last_of_their_usage, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_old_usage_is_forgotten, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
