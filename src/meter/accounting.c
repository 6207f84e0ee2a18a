/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/accounting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "meter/rate.h"

void accounting_deinit(struct accounting *accounting)
{
        free(accounting->records);
        *accounting = (struct accounting){ 0 };
}

static void remove_at(struct accounting *accounting, size_t at)
{
        memmove(&accounting->records[at], &accounting->records[at + 1],
                (accounting->n - at - 1) * sizeof(*accounting->records));
        accounting->n--;
        if (at < accounting->n_ended)
                accounting->n_ended--;
}

static void insert_at(struct accounting *accounting, size_t at,
                      const struct accounting_record *record)
{
        memmove(&accounting->records[at + 1], &accounting->records[at],
                (accounting->n - at) * sizeof(*accounting->records));
        accounting->records[at] = *record;
        accounting->n++;
}

static int make_room(struct accounting *accounting)
{
        size_t room = accounting->room ? 2 * accounting->room : 16;
        struct accounting_record *records;

        if (accounting->n == ACCOUNTING_MAX) {
                if (accounting->n_ended == 0)
                        return -ENOSPC;
                remove_at(accounting, 0);
        }
        if (accounting->n < accounting->room)
                return 0;
        records = reallocarray(accounting->records, room, sizeof(*records));
        if (!records)
                return -ENOMEM;
        accounting->records = records;
        accounting->room = room;
        return 0;
}

int accounting_start(struct accounting *accounting, const struct accounting_record *record)
{
        int r = make_room(accounting);

        if (r < 0)
                return r;
        insert_at(accounting, accounting->n, record);
        accounting->records[accounting->n - 1].is_running = true;
        return 0;
}

/* Callers ask mostly for the newest records, which are the last ones. */
struct accounting_record *accounting_find(struct accounting *accounting, uint64_t serial)
{
        for (size_t i = accounting->n; i > 0; i--)
                if (accounting->records[i - 1].serial == serial)
                        return &accounting->records[i - 1];
        return NULL;
}

const struct accounting_record *accounting_find_pid(const struct accounting *accounting,
                                                    uint32_t pid)
{
        for (size_t i = 0; i < accounting->n; i++)
                if (accounting->records[i].pid == pid)
                        return &accounting->records[i];
        return NULL;
}

static void remove_ended_pid(struct accounting *accounting, uint32_t pid)
{
        for (size_t i = accounting->n_ended; i > 0; i--)
                if (accounting->records[i - 1].pid == pid)
                        remove_at(accounting, i - 1);
}

static void insert_ended(struct accounting *accounting, const struct accounting_record *record)
{
        insert_at(accounting, accounting->n_ended, record);
        accounting->records[accounting->n_ended++].is_running = false;
}

void accounting_end(struct accounting *accounting, uint64_t serial)
{
        struct accounting_record *found = accounting_find(accounting, serial);
        struct accounting_record record;

        if (!found || !found->is_running)
                return;
        record = *found;
        remove_at(accounting, (size_t)(found - accounting->records));
        remove_ended_pid(accounting, record.pid);
        insert_ended(accounting, &record);
}

int accounting_add_ended(struct accounting *accounting, const struct accounting_record *record)
{
        int r;

        remove_ended_pid(accounting, record->pid);
        r = make_room(accounting);
        if (r == 0)
                insert_ended(accounting, record);
        return r;
}

size_t accounting_clear(struct accounting *accounting)
{
        size_t n = accounting->n_ended;

        accounting->n -= n;
        accounting->n_ended = 0;
        if (n > 0)
                memmove(accounting->records, &accounting->records[n],
                        accounting->n * sizeof(*accounting->records));
        return n;
}

uint32_t accounting_percent(const struct accounting_record *record, enum meter_engine engine)
{
        return record->busy_ns[engine] ? rate_percent(record->busy_ns[engine], record->life_ns) : 0;
}

uint64_t accounting_time_ms(const struct accounting_record *record)
{
        uint64_t ms = record->life_ns / NS_PER_MS;

        if (record->is_running)
                return 0;
        return ms > 0 ? ms : 1;
}
