/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To settle is to take what came in since the last time and to enter it everywhere at once: in the
 * account of the process and in the usage of the minutes in between. Whatever happens, each
 * nanosecond is settled once.
 */
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/meter/meter-internal.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

bool meter_has(const struct guest *guest)
{
        return guest->meter.record.serial != 0;
}

static size_t list_guests(const struct instance *instance, struct guest **guests)
{
        struct guest *guest;
        size_t n = 0;

        list_for_each(guest, &instance->guests, link)
                if (meter_has(guest) && n < INSTANCE_PAGE_SLOTS)
                        guests[n++] = guest;
        return n;
}

static void divide_turns(struct meter *meter, struct instance *instance, size_t part,
                         uint64_t now_ns)
{
        struct meter_part *of_part = &instance->part[part].meter;
        struct guest *guests[INSTANCE_PAGE_SLOTS];
        uint64_t weights[INSTANCE_PAGE_SLOTS] = { 0 }, shares[INSTANCE_PAGE_SLOTS];
        size_t n;

        if (!instance->part[part].device->meter.has_turns && of_part->turn_ns == 0)
                return;
        n = list_guests(instance, guests);
        for (size_t i = 0; i < n; i++) {
                weights[i] = guests[i]->meter.part[part].weight_ns;
                guests[i]->meter.part[part].weight_ns = 0;
        }
        if (of_part->turn_ns == 0)
                return;
        rate_divide(of_part->turn_ns, weights, n, shares);
        for (size_t i = 0; i < n; i++)
                guests[i]->meter.part[part].new_ns[METER_SM] += shares[i];
        if (n == 0) { /* its processes have died since: the vGPU had it all the same */
                const struct usage_key key = { 0, instance->created_ns, of_part->device };
                const struct usage_amount amount = { .busy_ns = { [METER_SM] = of_part->turn_ns } };

                meter_books_add_usage(meter, &key, &amount, now_ns, now_ns);
                of_part->busy_ns += of_part->turn_ns;
        }
        of_part->turn_ns = 0;
}

static uint64_t read_memory(struct guest *guest, size_t part)
{
        const struct instance *instance = guest->instance;
        struct meter_guest_part *mine = &guest->meter.part[part];
        struct page_use use;

        guest_get_use_of(guest, &instance->part[part], &use);
        if (use.peak > mine->max_memory)
                mine->max_memory = use.peak;
        return instance_is_off(instance) ? 0 : use.movable + use.fixed;
}

static void settle_guest_part(struct meter *meter, struct guest *guest, size_t part,
                              uint64_t now_ns)
{
        struct meter_part *of_part = &guest->instance->part[part].meter;
        struct meter_guest_part *mine = &guest->meter.part[part];
        const struct usage_key key = { guest->meter.record.serial, guest->instance->created_ns,
                                       of_part->device };
        uint64_t ms = now_ns / NS_PER_MS - guest->meter.since_ns / NS_PER_MS;
        struct usage_amount amount = { 0 };

        of_part->busy_ns += mine->new_ns[METER_SM];
        for (int engine = 0; engine < METER_ENGINES; engine++) {
                amount.busy_ns[engine] = mine->new_ns[engine];
                meter->has_news = meter->has_news || mine->new_ns[engine];
                guest->meter.record.busy_ns[engine] += mine->new_ns[engine];
                mine->busy_ns[engine] += mine->new_ns[engine];
                mine->sampled_ns[engine] += mine->new_ns[engine];
                mine->new_ns[engine] = 0;
        }
        amount.used_mib_ms = rate_area_add(&mine->used, read_memory(guest, part), ms);
        guest->meter.record.max_memory += mine->max_memory;
        if (!usage_is_zero(&amount)) {
                meter_books_add_usage(meter, &key, &amount, guest->meter.since_ns, now_ns);
                guest->meter.is_changed = true;
        }
}

struct accounting_record meter_get_record(const struct guest *guest, size_t part)
{
        struct accounting_record record = guest->meter.record;

        memcpy(record.busy_ns, guest->meter.part[part].busy_ns, sizeof(record.busy_ns));
        record.max_memory = guest->meter.part[part].max_memory;
        return record;
}

static void enter_record(struct guest *guest, size_t part)
{
        struct accounting_record now = meter_get_record(guest, part);
        struct accounting_record *record =
                accounting_find(&guest->instance->part[part].meter.accounting, now.serial);

        if (!record)
                return;
        now.number = record->number;
        now.shown = record->shown;
        *record = now;
}

static void settle_guest(struct meter *meter, struct guest *guest, uint64_t now_ns)
{
        const size_t n_parts = guest->instance->n_parts;

        guest->meter.record.life_ns += now_ns - guest->meter.since_ns;
        guest->meter.record.max_memory = 0; /* the sum of what each part had at most */
        for (size_t i = 0; i < n_parts; i++)
                settle_guest_part(meter, guest, i, now_ns);
        guest->meter.since_ns = now_ns;
        for (size_t i = 0; i < n_parts; i++)
                enter_record(guest, i);
}

static void settle_quota(struct meter *meter, struct instance *instance, uint64_t now_ns)
{
        struct meter_instance *mine = &instance->meter;
        struct usage_key key = { 0, instance->created_ns, 0 };
        uint64_t ms = now_ns / NS_PER_MS - mine->since_ns / NS_PER_MS;
        struct usage_amount amount = { 0 };

        if (mine->is_held)
                amount.quota_mib_ms = rate_area_add(&mine->quota, instance->frame_buffer, ms);
        for (size_t i = 0; !usage_is_zero(&amount) && i < instance->n_parts; i++) {
                key.device = instance->part[i].meter.device;
                meter_books_add_usage(meter, &key, &amount, mine->since_ns, now_ns);
        }
        mine->since_ns = now_ns;
}

void meter_note_devices(struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                instance->part[i].meter.device = instance->part[i].device->index;
}

void meter_settle(struct meter *meter, struct instance *instance, uint64_t now_ns)
{
        struct guest *guest;

        if (instance->meter.since_ns == 0)
                return;
        list_for_each(guest, &instance->guests, link)
                if (meter_has(guest) && meter->source)
                        meter_source_read(meter->source, guest);
        for (size_t i = 0; i < instance->n_parts; i++)
                divide_turns(meter, instance, i, now_ns);
        list_for_each(guest, &instance->guests, link)
                if (meter_has(guest))
                        settle_guest(meter, guest, now_ns);
        settle_quota(meter, instance, now_ns);
        meter_note_devices(instance);
        instance->meter.is_held = !instance_is_off(instance);
}

void meter_read_wall(struct meter *meter, uint64_t now_ns)
{
        int64_t step =
                wall_read(&meter->wall, now_ns / NS_PER_MS, clock_now(CLOCK_REALTIME) / NS_PER_MS);

        if (step)
                log_event(LOG_LEVEL_NOTICE,
                          "the clock of the machine was set; usage is entered as of now",
                          "seconds=%+.3f", (double)step / 1000);
}

uint64_t meter_settle_all(struct meter *meter)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        struct instance *instance;

        meter_read_wall(meter, now_ns);
        list_for_each(instance, &meter->manager->instances, link)
                meter_settle(meter, instance, now_ns);
        meter_books_settled(meter);
        return now_ns;
}
