/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/account-ring.h"

_Static_assert(ACCOUNTING_MAX == STATE_ACCOUNTS_MAX, "all accounts are on the state page");

/* Makes one number of all that changes while a process runs. */
static uint64_t get_news(const struct accounting_record *record)
{
        return record->max_memory ^ (uint64_t)accounting_percent(record, METER_SM) << 56 ^
               (uint64_t)accounting_percent(record, METER_MEMORY) << 48;
}

static void write_record(const struct account_ring *ring, struct accounting_record *record)
{
        const struct state_account account = {
                .instance = ring->instance,
                .pid = record->pid,
                .is_running = record->is_running,
                .utilization_gpu = accounting_percent(record, METER_SM),
                .utilization_memory = accounting_percent(record, METER_MEMORY),
                .max_memory = record->max_memory,
                .time_ms = accounting_time_ms(record),
                .start_us = record->start_us,
        };

        if (record->number)
                state_write_account(ring->state_page, ring->slot, record->number - 1, &account);
        else
                record->number = state_append_account(ring->state_page, ring->slot, &account) + 1;
        record->shown = get_news(record);
}

static void drop(const struct account_ring *ring, const struct accounting_record *record)
{
        if (record->number)
                state_write_account(ring->state_page, ring->slot, record->number - 1, NULL);
}

void account_ring_write(const struct account_ring *ring)
{
        struct accounting *accounting = ring->accounting;
        uint64_t end = state_count_account(ring->state_page, ring->slot);

        for (uint64_t i = state_first_account(ring->state_page, ring->slot); i < end; i++)
                state_write_account(ring->state_page, ring->slot, i, NULL);
        for (size_t i = 0; i < accounting->n; i++) {
                accounting->records[i].number = 0;
                write_record(ring, &accounting->records[i]);
        }
}

static bool has_fallen_out(const struct account_ring *ring, size_t at)
{
        const struct accounting *accounting = ring->accounting;
        uint64_t number = at < accounting->n ? accounting->records[at].number : 0;

        return number && number - 1 < state_first_account(ring->state_page, ring->slot);
}

/* The oldest ended process and the oldest running process are the first of their kind. */
static void repair(const struct account_ring *ring)
{
        if (has_fallen_out(ring, 0) || has_fallen_out(ring, ring->accounting->n_ended))
                account_ring_write(ring);
}

void account_ring_update(const struct account_ring *ring)
{
        struct accounting *accounting = ring->accounting;

        for (size_t i = accounting->n_ended; i < accounting->n; i++)
                if (accounting->records[i].number == 0 ||
                    accounting->records[i].shown != get_news(&accounting->records[i]))
                        write_record(ring, &accounting->records[i]);
        repair(ring);
}

/* A full accounting makes room by forgetting the process that ended first. */
int account_ring_start(const struct account_ring *ring, const struct accounting_record *record)
{
        struct accounting *accounting = ring->accounting;
        int r;

        if (accounting->n == ACCOUNTING_MAX && accounting->n_ended > 0)
                drop(ring, &accounting->records[0]);
        r = accounting_start(accounting, record);
        if (r < 0)
                return r;
        write_record(ring, &accounting->records[accounting->n - 1]);
        repair(ring);
        return 0;
}

static void drop_former(const struct account_ring *ring, uint64_t serial)
{
        const struct accounting_record *record = accounting_find(ring->accounting, serial), *former;

        if (!record || !record->is_running)
                return;
        former = accounting_find_pid(ring->accounting, record->pid);
        if (!former->is_running)
                drop(ring, former);
}

void account_ring_end(const struct account_ring *ring, uint64_t serial)
{
        struct accounting_record *record;

        drop_former(ring, serial);
        accounting_end(ring->accounting, serial);
        record = accounting_find(ring->accounting, serial);
        if (!record)
                return;
        if (record->number != state_count_account(ring->state_page, ring->slot)) {
                drop(ring, record);
                record->number = 0;
        }
        write_record(ring, record);
        repair(ring);
}
