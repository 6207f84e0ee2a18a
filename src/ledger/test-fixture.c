/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/test-fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct ledger_device ledger_devices[2] = { { "GPU-0", "NVIDIA H200" },
                                                 { "GPU-1", "NVIDIA L4" } };

int open_again(struct fixture *fixture, const char *boot)
{
        fixture->ledger = ledger_close(fixture->ledger);
        return ledger_open(&fixture->ledger, fixture->path, boot, ledger_devices, 2);
}

int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-ledger-XXXXXX");
        fd_close(mkstemp(fixture->path));
        assert_int_equal(open_again(fixture, "boot"), 0);
        *state = fixture;
        return 0;
}

int tear_down(void **state)
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

void add_vgpu(struct fixture *fixture, uint64_t serial, uid_t owner, const char *name)
{
        struct ledger_vgpu vgpu = { .serial = serial, .owner = owner };

        snprintf(vgpu.name, sizeof(vgpu.name), "%s", name);
        snprintf(vgpu.uuid, sizeof(vgpu.uuid), "uuid-of-%s", name);
        assert_int_equal(ledger_batch_add_vgpu(&fixture->batch, &vgpu), 0);
}

void add_process(struct fixture *fixture, uint64_t serial, uint64_t vgpu, uint64_t ended_ms)
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

void add_usage(struct fixture *fixture, uint64_t minute, uint64_t vgpu, uint64_t process,
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

int write_batch(struct fixture *fixture)
{
        int r = ledger_write(fixture->ledger, &fixture->batch);

        if (r == 0)
                ledger_batch_deinit(&fixture->batch);
        return r;
}

int copy_row(const struct ledger_row *row, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->rows[fixture->n++] = *row;
        return 0;
}

size_t ask(struct fixture *fixture, enum ledger_group group, uint64_t since, uint64_t until,
           int64_t tenant)
{
        const struct ledger_query query = {
                .group = group, .since = since, .until = until, .tenant = tenant, .limit = 16
        };

        fixture->n = 0;
        assert_int_equal(ledger_sum(fixture->ledger, &query, copy_row, fixture), 0);
        return fixture->n;
}

uint64_t ask_all(struct fixture *fixture)
{
        uint64_t sum = 0;

        for (size_t i = ask(fixture, LEDGER_BY_VGPU, 0, INT64_MAX, LEDGER_ANY_TENANT); i > 0; i--)
                sum += fixture->rows[i - 1].amount.busy_ns[METER_SM];
        return sum;
}

void fill(struct fixture *fixture)
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

int copy_process(const struct ledger_process *process, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->processes[fixture->n++] = *process;
        return 0;
}
