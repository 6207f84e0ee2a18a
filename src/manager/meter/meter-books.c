/* SPDX-License-Identifier: Apache-2.0 */
/* From the meter to the ledger, and what the former manager wrote back from it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/meter/meter-internal.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

#define LEDGER_FILE "ledger.db"

/* A process that does nothing is written so often, for its life goes on. */
#define IDLE_WRITE_NS 60000000000ull

/* Opening and loading, before the thread has the ledger. */

static int list_devices(struct meter *meter)
{
        const struct manager *manager = meter->manager;

        meter->devices = calloc(manager->n_devices + 1, sizeof(*meter->devices));
        if (!meter->devices)
                return -ENOMEM;
        for (size_t i = 0; i < manager->n_devices; i++) {
                snprintf(meter->devices[i].uuid, sizeof(meter->devices[i].uuid), "%s",
                         manager->device[i].uuid);
                snprintf(meter->devices[i].name, sizeof(meter->devices[i].name), "%s",
                         manager->device[i].name);
        }
        return 0;
}

static void say_closed(const char *path, int error)
{
        const char *hint, *what = ledger_explain(error, &hint);

        log_event(LOG_LEVEL_WARNING,
                  "the ledger cannot be read; the accounting of former processes is not known",
                  "path=%s reason=\"%s\" hint=\"%s\"", path, what, hint);
}

uint64_t meter_get_former_ns(const struct meter *meter)
{
        return meter->is_former_boot ? 0 : meter->former_wall.steady_ms * NS_PER_MS;
}

/* As far as is known: it ran when all was written last, which may be long after its own row was. */
static uint64_t life_of(const struct meter *meter, const struct ledger_process *process)
{
        uint64_t until_ms = meter->former_wall.steady_ms, life_ns;

        if (process->joined_ms == 0 || process->joined_ms > until_ms)
                return process->life_ns;
        life_ns = (until_ms - process->joined_ms) * NS_PER_MS;
        return life_ns > process->life_ns ? life_ns : process->life_ns;
}

static int add_former(const struct ledger_process *process, void *userdata)
{
        struct meter *meter = userdata;
        struct ledger_process *former =
                reallocarray(meter->former, meter->n_former + 1, sizeof(*former));

        if (!former)
                return -ENOMEM;
        meter->former = former;
        former += meter->n_former++;
        *former = *process;
        former->life_ns = life_of(meter, process);
        if (process->serial > meter->last_serial)
                meter->last_serial = process->serial;
        return 0;
}

static int add_former_part(const struct ledger_process *process, void *userdata)
{
        struct meter *meter = userdata;
        struct ledger_process *parts =
                reallocarray(meter->former_parts, meter->n_former_parts + 1, sizeof(*parts));

        if (!parts)
                return -ENOMEM;
        meter->former_parts = parts;
        parts[meter->n_former_parts++] = *process;
        return 0;
}

/* All that ran, also in vGPUs that are gone since: somebody has to write that they have ended. */
static int load_former(struct meter *meter)
{
        bool is_this_boot = true;
        int r = ledger_get_wall(meter->loading, &meter->former_wall, &is_this_boot);

        if (r < 0 && r != -ENOENT)
                return r;
        meter->is_former_boot = !is_this_boot;
        r = ledger_each_running(meter->loading, add_former, meter);
        return r < 0 ? r : ledger_each_running_part(meter->loading, add_former_part, meter);
}

int meter_books_open(struct meter *meter)
{
        const struct manager *manager = meter->manager;
        char path[PATHS_MAX];
        int r = paths_join(path, manager->options->state_directory, LEDGER_FILE);

        if (r == 0)
                r = list_devices(meter);
        if (r < 0)
                return r;
        r = ledger_open(&meter->loading, path, manager->boot_id, meter->devices,
                        manager->n_devices);
        if (r == 0)
                r = load_former(meter);
        if (r < 0)
                say_closed(path, r); /* the thread tries again */
        return 0;
}

struct part_list {
        struct ledger_process part[STATE_DEVICES_MAX];
        size_t n;
};

struct loading {
        struct meter *meter;
        struct instance *instance;
};

static void take_use(struct ledger_process *process, const struct ledger_process *part)
{
        memcpy(process->busy_ns, part->busy_ns, sizeof(process->busy_ns));
        process->max_memory = part->max_memory;
}

static void clear_use(struct ledger_process *process)
{
        memset(process->busy_ns, 0, sizeof(process->busy_ns));
        process->max_memory = 0;
}

static void fill_record(struct accounting_record *record, const struct ledger_process *process)
{
        *record = (struct accounting_record){
                .serial = process->serial,
                .pid = (uint32_t)process->pid,
                .start_us = process->started_ms * 1000,
                .life_ns = process->life_ns,
                .max_memory = process->max_memory,
        };
        for (int engine = 0; engine < METER_ENGINES; engine++)
                record->busy_ns[engine] = process->busy_ns[engine];
        snprintf(record->name, sizeof(record->name), "%s", process->name);
}

/* Of @process, which has ended, in each part; what it had of several devices @parts say. */
static int add_ended(struct instance *instance, const struct ledger_process *process,
                     const struct ledger_process *parts, size_t n_parts)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++) {
                struct ledger_process of_part = *process;
                struct accounting_record record;

                if (i > 0 || n_parts > 0)
                        clear_use(&of_part);
                for (size_t k = 0; k < n_parts; k++)
                        if (ledger_process_get_device(&parts[k]) == instance->part[i].device->index)
                                take_use(&of_part, &parts[k]);
                fill_record(&record, &of_part);
                r = accounting_add_ended(&instance->part[i].meter.accounting, &record);
        }
        return r;
}

static int collect(const struct ledger_process *part, void *userdata)
{
        struct part_list *list = userdata;

        if (list->n < STATE_DEVICES_MAX)
                list->part[list->n++] = *part;
        return 0;
}

static int load_process(const struct ledger_process *process, void *userdata)
{
        struct loading *loading = userdata;
        struct part_list list = { .n = 0 };
        int r = 0;

        if (process->serial > loading->meter->last_serial)
                loading->meter->last_serial = process->serial;
        if (loading->instance->n_parts > 1)
                r = ledger_each_part(loading->meter->loading, process->serial, collect, &list);
        return r < 0 ? r : add_ended(loading->instance, process, list.part, list.n);
}

void meter_books_load(struct meter *meter, struct instance *instance)
{
        struct loading loading = { meter, instance };
        int r = 0;

        if (meter->loading)
                r = ledger_each_ended(meter->loading, instance->created_ns, ACCOUNTING_MAX,
                                      load_process, &loading);
        if (r < 0)
                log_event(LOG_LEVEL_WARNING, "the accounting of a vGPU cannot be read",
                          "vgpu=%s error=\"%s\"", instance->name, strerror(-r));
}

bool meter_books_know(struct meter *meter, const struct instance *instance)
{
        return !meter->loading || ledger_has_vgpu(meter->loading, instance->created_ns) != 0;
}

bool meter_books_take(struct meter *meter, const struct guest *guest,
                      struct ledger_process *ret_process)
{
        for (size_t i = 0; i < meter->n_former; i++) {
                struct ledger_process *former = &meter->former[i];

                if (former->vgpu != guest->instance->created_ns || former->pid != guest->pid ||
                    former->start_time != guest->start_time)
                        continue;
                *ret_process = *former;
                *former = meter->former[--meter->n_former];
                return true;
        }
        return false;
}

size_t meter_books_take_parts(struct meter *meter, uint64_t serial,
                              struct ledger_process *ret_parts)
{
        size_t n = 0;

        for (size_t i = 0; i < meter->n_former_parts && n < STATE_DEVICES_MAX; i++)
                if (meter->former_parts[i].serial == serial)
                        ret_parts[n++] = meter->former_parts[i];
        return n;
}

static struct instance *find_instance(struct meter *meter, uint64_t created_ns)
{
        struct instance *instance;

        list_for_each(instance, &meter->manager->instances, link)
                if (instance->created_ns == created_ns)
                        return instance;
        return NULL;
}

/* Those that ended while no manager was there: when is not known, they were last seen then. */
static void end_former(struct meter *meter)
{
        struct ledger_batch *batch = ledger_thread_begin(meter->ledger);

        for (size_t i = 0; i < meter->n_former; i++) {
                struct ledger_process *former = &meter->former[i];
                struct instance *instance = find_instance(meter, former->vgpu);
                struct part_list list;

                former->ended_ms = former->started_ms + former->life_ns / NS_PER_MS + 1;
                (void)ledger_batch_add_process(batch, former);
                list.n = meter_books_take_parts(meter, former->serial, list.part);
                if (instance)
                        (void)add_ended(instance, former, list.part, list.n);
        }
        ledger_thread_end(meter->ledger, false);
        free(TAKE(meter->former));
        free(TAKE(meter->former_parts));
        meter->n_former_parts = 0;
        meter->n_former = 0;
}

int meter_books_start(struct meter *meter)
{
        const struct manager *manager = meter->manager;
        struct ledger_thread_options options = {
                .boot_id = manager->boot_id,
                .devices = meter->devices,
                .n_devices = manager->n_devices,
                .keep_days = manager->options->keep_usage_days,
        };
        char path[PATHS_MAX];
        struct instance *instance;
        int r = paths_join(path, manager->options->state_directory, LEDGER_FILE);

        if (r < 0)
                return r;
        options.path = path;
        r = ledger_thread_new(&meter->ledger, manager->event, TAKE(meter->loading), &options);
        if (r < 0)
                return r;
        end_former(meter);
        list_for_each(instance, &meter->manager->instances, link)
                meter_books_add_vgpu(meter, instance);
        return 0;
}

/* Adding. */

/* What cannot even be kept in memory is lost, and that is said. */
static void say_lost(int error)
{
        log_event(LOG_LEVEL_ERROR, "usage is lost: it cannot be kept", "error=\"%s\"",
                  strerror(-error));
}

/* By both clocks alike: else its usage may be in any minute. */
#define CLOCKS_DIFFER_MS 2000

/* It is billed all the same. */
static bool must_fold_vgpu(struct meter *meter, const struct instance *instance)
{
        int64_t life_ms =
                (int64_t)((instance->meter.since_ns - instance->meter.entered_ns) / NS_PER_MS);
        int64_t wall_ms = (int64_t)(meter->wall.wall_ms - instance->created_ns / NS_PER_MS);

        return life_ms < ALLOWANCE_LIFE_MS && llabs(wall_ms - life_ms) < CLOCKS_DIFFER_MS &&
               !allowance_take(&meter->vgpu_allowance, instance->owner, meter->wall.steady_ms);
}

static void add_vgpu(struct meter *meter, const struct instance *instance, bool is_gone)
{
        struct ledger_vgpu vgpu = { .serial = instance->created_ns,
                                    .owner = instance->owner,
                                    .is_gone = is_gone,
                                    .is_folded = is_gone && must_fold_vgpu(meter, instance),
                                    .gone_ms = meter->wall.wall_ms };
        int r;

        if (!meter->ledger)
                return;
        snprintf(vgpu.uuid, sizeof(vgpu.uuid), "%s", instance->uuid);
        snprintf(vgpu.name, sizeof(vgpu.name), "%s", instance->name);
        r = ledger_batch_add_vgpu(ledger_thread_begin(meter->ledger), &vgpu);
        ledger_thread_end(meter->ledger, false);
        if (r < 0)
                say_lost(r);
}

void meter_books_add_vgpu(struct meter *meter, const struct instance *instance)
{
        add_vgpu(meter, instance, false);
}

void meter_books_remove_vgpu(struct meter *meter, const struct instance *instance)
{
        add_vgpu(meter, instance, true);
}

static void fill_process(struct ledger_process *process, const struct guest *guest)
{
        const struct accounting_record *record = &guest->meter.record;

        *process = (struct ledger_process){
                .serial = record->serial,
                .vgpu = guest->instance->created_ns,
                .pid = guest->pid,
                .start_time = guest->start_time,
                .started_ms = record->start_us / 1000,
                .life_ns = record->life_ns,
                .joined_ms = guest->meter.joined_ns / NS_PER_MS,
                .max_memory = record->max_memory,
                .is_listed = true,
        };
        memcpy(process->busy_ns, record->busy_ns, sizeof(process->busy_ns));
        for (int device = 0; device < STATE_DEVICES_MAX; device++)
                for (int engine = 0; engine < METER_SEEN; engine++)
                        process->seen_ns[engine] += guest->meter.seen_ns[device][engine];
        snprintf(process->name, sizeof(process->name), "%s", record->name);
        if (!guest->container_name[0]) /* an id alone is easily made up */
                return;
        snprintf(process->container, sizeof(process->container), "%s", guest->container);
        snprintf(process->container_name, sizeof(process->container_name), "%s",
                 guest->container_name);
}

/* What differs by device. */
static struct ledger_process get_part(const struct ledger_process *process,
                                      const struct guest *guest, size_t part)
{
        const uint32_t device = guest->instance->part[part].meter.device;
        struct ledger_process of_part = *process;

        of_part.of_device = device + 1;
        of_part.max_memory = guest->meter.part[part].max_memory;
        memcpy(of_part.busy_ns, guest->meter.part[part].busy_ns, sizeof(of_part.busy_ns));
        memcpy(of_part.seen_ns, guest->meter.seen_ns[device], sizeof(guest->meter.seen_ns[device]));
        return of_part;
}

static int add_parts(struct ledger_batch *batch, const struct ledger_process *process,
                     const struct guest *guest)
{
        const size_t n_parts = guest->instance->n_parts;
        int r = 0;

        for (size_t i = 0; r == 0 && n_parts > 1 && i < n_parts; i++) {
                const struct ledger_process part = get_part(process, guest, i);

                r = ledger_batch_add_process(batch, &part);
        }
        return r;
}

static bool must_fold(struct meter *meter, const struct instance *instance,
                      const struct ledger_process *process)
{
        uint64_t life_ms = process->ended_ms - process->started_ms;

        return process->ended_ms >= process->started_ms && life_ms < ALLOWANCE_LIFE_MS &&
               !allowance_take(&meter->allowance, instance->owner, meter->wall.steady_ms);
}

void meter_books_add_process(struct meter *meter, struct guest *guest, uint64_t ended_ms)
{
        struct ledger_process process;
        struct ledger_batch *batch;
        int r;

        if (!meter->ledger)
                return;
        meter->has_news = true;
        fill_process(&process, guest);
        process.ended_ms = ended_ms;
        process.is_folded = ended_ms > 0 && must_fold(meter, guest->instance, &process);
        batch = ledger_thread_begin(meter->ledger);
        r = ledger_batch_add_process(batch, &process);
        if (r == 0)
                r = add_parts(batch, &process, guest);
        ledger_thread_end(meter->ledger, false);
        if (r < 0)
                say_lost(r);
        guest->meter.is_changed = false;
        guest->meter.written_ns = guest->meter.since_ns;
}

void meter_books_add_usage(struct meter *meter, const struct usage_key *key,
                           const struct usage_amount *amount, uint64_t from_ns, uint64_t to_ns)
{
        struct usage_amount rest = *amount;
        struct ledger_batch *batch;
        int r;

        if (!meter->ledger)
                return;
        batch = ledger_thread_begin(meter->ledger);
        r = minutes_add(&batch->minutes, key, &rest, wall_at(&meter->wall, from_ns / NS_PER_MS),
                        wall_at(&meter->wall, to_ns / NS_PER_MS));
        ledger_thread_end(meter->ledger, false);
        if (r < 0)
                say_lost(r);
}

/* Cleared from the accounting, not from the bill. */
void meter_books_clear(struct meter *meter, const struct instance *instance)
{
        const struct ledger_clearing clearing = { instance->created_ns, meter->wall.wall_ms };
        int r;

        if (!meter->ledger)
                return;
        r = ledger_batch_add_clearing(ledger_thread_begin(meter->ledger), &clearing);
        ledger_thread_end(meter->ledger, false);
        if (r < 0)
                say_lost(r);
}

/* What is in a batch is to be billed from no earlier time than the others of the batch are settled up to. */
void meter_books_settled(struct meter *meter)
{
        meter->has_newcomer = false;
        if (!meter->ledger)
                return;
        ledger_thread_begin(meter->ledger)->wall = meter->wall;
        ledger_thread_end(meter->ledger, false);
}

void meter_books_write(struct meter *meter)
{
        struct instance *instance;
        struct guest *guest;

        if (!meter->ledger)
                return;
        list_for_each(instance, &meter->manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        if (guest->meter.record.serial &&
                            (guest->meter.is_changed ||
                             guest->meter.since_ns - guest->meter.written_ns >= IDLE_WRITE_NS))
                                meter_books_add_process(meter, guest, 0);
        (void)ledger_thread_begin(meter->ledger);
        ledger_thread_end(meter->ledger, true);
        meter->written_ns = meter->sampled_ns;
        meter->has_news = false;
}
