/* SPDX-License-Identifier: Apache-2.0 */
/* How vGPUs and processes come into the meter, come back into it, and leave it. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/meter/meter-internal.h"
#include "manager/meter/meter.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/schedule/schedule.h"

static void enter(struct instance *instance, uint64_t since_ns)
{
        instance->meter.since_ns = since_ns;
        instance->meter.entered_ns = clock_now(CLOCK_MONOTONIC);
        meter_note_devices(instance);
        instance->meter.is_held = !instance_is_off(instance);
        meter_books_add_vgpu(instance->manager->meter, instance);
}

/*
 * It is written with the next batch, within about a second: who makes a thousand does not have the usage of
 * all written a thousand times. A manager that does not find it there bills it from its creation on.
 */
static void add_instance(struct meter *meter, struct instance *instance)
{
        enter(instance, clock_now(CLOCK_MONOTONIC));
        meter->has_news = meter->has_newcomer = true;
        if (instance->link.next == instance->link.previous) /* it is the only one */
                meter_wake(meter);
}

/* When it was created, by the clock of the machine; 0: in an earlier boot, or that clock was set. */
static uint64_t get_creation(const struct instance *instance, uint64_t now_ns)
{
        uint64_t wall_ns = clock_now(CLOCK_REALTIME);
        uint64_t ago_ns = wall_ns - instance->created_ns;

        return instance->created_ns <= wall_ns && ago_ns < now_ns ? now_ns - ago_ns : 0;
}

/* Until when it is billed: where the former manager has written nothing of it, it came after that. */
static uint64_t get_billed(struct meter *meter, const struct instance *instance, uint64_t now_ns)
{
        uint64_t billed_ns = meter_get_former_ns(meter), created_ns;

        if (!meter_books_know(meter, instance)) {
                created_ns = get_creation(instance, now_ns);
                billed_ns = created_ns > billed_ns ? created_ns : billed_ns;
        }
        return billed_ns > 0 && billed_ns < now_ns ? billed_ns : now_ns;
}

/* The time since then was used as well: the vGPU was there. */
static void load_instance(struct meter *meter, struct instance *instance)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        meter_books_load(meter, instance);
        enter(instance, get_billed(meter, instance, now_ns));
        for (size_t i = 0; i < instance->n_parts; i++)
                instance->part[i].meter.must_republish = true;
}

static void remove_instance(struct meter *meter, struct instance *instance)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (instance->meter.since_ns) {
                meter_read_wall(meter, now_ns);
                meter_settle(meter, instance, now_ns);
                if (meter->has_newcomer)
                        (void)meter_settle_all(meter);
                meter_books_remove_vgpu(meter, instance);
                meter_books_write(meter);
        }
}

static uint64_t make_serial(struct meter *meter)
{
        uint64_t serial = clock_now(CLOCK_REALTIME);

        meter->last_serial = serial > meter->last_serial ? serial : meter->last_serial + 1;
        return meter->last_serial;
}

static void start_record(struct guest *guest)
{
        char quoted[LOG_QUOTED_MAX];
        int r;

        r = meter_page_start(guest);
        if (r < 0)
                log_event_of(guest->payer, LOG_LEVEL_WARNING, "a process is not in the accounting",
                             "vgpu=%s pid=%d name=%s error=\"%s\"", guest->instance->name,
                             (int)guest->pid, log_quote(quoted, guest->name), strerror(-r));
}

static bool is_first_guest(const struct guest *newcomer)
{
        const struct instance *instance;
        const struct guest *guest;

        list_for_each(instance, &newcomer->instance->manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        if (guest != newcomer && meter_has(guest))
                                return false;
        return true;
}

static void start(struct meter *meter, struct guest *guest)
{
        struct accounting_record *record = &guest->meter.record;

        if (is_first_guest(guest))
                meter_wake(meter);
        *record = (struct accounting_record){
                .serial = make_serial(meter),
                .pid = (uint32_t)guest->pid,
                .is_running = true,
                .start_us = guest->joined_ns / 1000,
        };
        snprintf(record->name, sizeof(record->name), "%s", guest->name);
        guest->meter.joined_ns = guest->meter.since_ns = clock_now(CLOCK_MONOTONIC);
        start_record(guest);
        meter_books_add_process(meter, guest, 0);
}

static void begin(struct meter *meter, struct guest *guest)
{
        if (meter->source)
                meter_source_begin(meter->source, guest);
        start(meter, guest);
}

static void load_part(struct meter_guest_part *mine, const struct ledger_process *former)
{
        memcpy(mine->busy_ns, former->busy_ns, sizeof(mine->busy_ns));
        mine->max_memory = former->max_memory;
}

static void load_busy(struct guest *guest, const struct ledger_process *former,
                      const struct ledger_process *parts, size_t n_parts)
{
        const struct instance *instance = guest->instance;

        memcpy(guest->meter.record.busy_ns, former->busy_ns, sizeof(former->busy_ns));
        if (n_parts == 0)
                load_part(&guest->meter.part[0], former);
        for (size_t i = 0; i < instance->n_parts; i++)
                for (size_t k = 0; k < n_parts; k++)
                        if (ledger_process_get_device(&parts[k]) == instance->part[i].device->index)
                                load_part(&guest->meter.part[i], &parts[k]);
}

static void load_guest(struct meter *meter, struct guest *guest)
{
        struct ledger_process former, parts[STATE_DEVICES_MAX];
        size_t n_parts;

        if (!meter_books_take(meter, guest, &former)) {
                /* One that joined just before the former manager died: nothing of it is billed yet. */
                if (!meter->loading && meter->source)
                        meter_source_begin(meter->source, guest);
                start(meter, guest);
                return;
        }
        guest->meter.record = (struct accounting_record){
                .serial = former.serial,
                .pid = (uint32_t)guest->pid,
                .is_running = true,
                .start_us = former.started_ms * 1000,
                .life_ns = former.life_ns,
                .max_memory = former.max_memory,
        };
        n_parts = meter_books_take_parts(meter, former.serial, parts);
        load_busy(guest, &former, parts, n_parts);
        if (meter->source)
                meter_source_load(meter->source, guest, &former, parts, n_parts);
        snprintf(guest->meter.record.name, sizeof(guest->meter.record.name), "%s", former.name);
        if (former.container[0]) { /* also when its engine has been killed since */
                snprintf(guest->container, sizeof(guest->container), "%s", former.container);
                snprintf(guest->container_name, sizeof(guest->container_name), "%s",
                         former.container_name);
        }
        guest->meter.since_ns = meter_get_former_ns(meter);
        guest->meter.joined_ns = former.joined_ms * NS_PER_MS;
        if (guest->meter.since_ns < guest->meter.joined_ns)
                guest->meter.since_ns = guest->meter.joined_ns;
        if (guest->meter.since_ns == 0)
                guest->meter.since_ns = clock_now(CLOCK_MONOTONIC);
        if (guest->meter.joined_ns)
                guest->meter.record.life_ns = guest->meter.since_ns - guest->meter.joined_ns;
        guest->joined_ns = former.started_ms * NS_PER_MS;
        start_record(guest);
}

/* Its slot of the page is still its own. */
static void end(struct meter *meter, struct guest *guest)
{
        struct instance *instance = guest->instance;
        uint64_t now_ns;

        if (!meter_has(guest))
                return;
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].device->meter.has_turns)
                        schedule_tell_meter(instance->part[i].device);
        now_ns = clock_now(CLOCK_MONOTONIC);
        meter_read_wall(meter, now_ns);
        meter_settle(meter, instance, now_ns);
        meter_page_end(guest);
        meter_books_add_process(meter, guest, meter->wall.wall_ms);
        guest->meter.record.serial = 0;
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        if (event == INSTANCE_ADDED)
                add_instance(userdata, instance);
        else if (event == INSTANCE_LOADED)
                load_instance(userdata, instance);
        else if (event == INSTANCE_RENAMED)
                meter_books_add_vgpu(userdata, instance); /* the ledger has the last name */
        else if (event == INSTANCE_REMOVED)
                remove_instance(userdata, instance);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        if (event == GUEST_JOINED)
                begin(userdata, guest);
        else if (event == GUEST_LOADED)
                load_guest(userdata, guest);
        else if (event == GUEST_LEFT)
                end(userdata, guest);
}

static void on_device(struct device *device, enum device_event event, void *userdata)
{
        (void)device;
        if (event == DEVICE_SWITCHES_SOURCE)
                (void)meter_settle_all(userdata);
}

struct observer meter_observer = { .of_instance = on_instance,
                                   .of_guest = on_guest,
                                   .of_device = on_device };
