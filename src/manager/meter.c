/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To settle is to take what came in since the last time and to enter it everywhere at once: in the
 * account of the process and in the usage of the minutes in between. Whatever happens, each
 * nanosecond is settled once.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/log.h"
#include "manager/manager.h"
#include "manager/meter-internal.h"

#define BUSY_INTERVAL_US  250000
#define QUIET_INTERVAL_US 1000000

/* Quiet wake-ups may come with others. */
#define QUIET_ACCURACY_US 250000

#define WRITE_BUSY_NS  1000000000ull
#define WRITE_QUIET_NS 60000000000ull

#define NS_PER_MS 1000000u

uint64_t meter_now(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t wall_now_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What the scheduler adds. */

void meter_set_turns(struct device *device, bool has_turns)
{
        if (device->meter.has_turns == has_turns)
                return;
        if (device->manager->meter)
                meter_sync(device->manager->meter); /* what was before comes from the old source */
        device->meter.has_turns = has_turns;
}

void meter_add_gpu_time(struct guest *guest, uint64_t ns, uint64_t at_ns)
{
        (void)at_ns;
        guest->meter.new_ns[METER_SM] += ns;
}

void meter_add_turn(struct instance *instance, uint64_t ns, uint64_t at_ns)
{
        (void)at_ns;
        instance->meter.turn_ns += ns;
}

/* Settling. */

static bool is_metered(const struct guest *guest)
{
        return guest->meter.record.serial != 0;
}

static size_t list_guests(const struct instance *instance, struct guest **guests)
{
        struct guest *guest;
        size_t n = 0;

        list_for_each(guest, &instance->guests, link)
                if (is_metered(guest) && n < INSTANCE_PAGE_SLOTS)
                        guests[n++] = guest;
        return n;
}

static void divide_turns(struct meter *meter, struct instance *instance, uint64_t now_ns)
{
        struct guest *guests[INSTANCE_PAGE_SLOTS];
        uint64_t weights[INSTANCE_PAGE_SLOTS] = { 0 }, parts[INSTANCE_PAGE_SLOTS];
        size_t n = list_guests(instance, guests);

        for (size_t i = 0; i < n; i++) {
                weights[i] = guests[i]->meter.weight_ns;
                guests[i]->meter.weight_ns = 0;
        }
        if (instance->meter.turn_ns == 0)
                return;
        rate_divide(instance->meter.turn_ns, weights, n, parts);
        for (size_t i = 0; i < n; i++)
                guests[i]->meter.new_ns[METER_SM] += parts[i];
        if (n == 0) { /* its processes have died since: the vGPU had it all the same */
                const struct usage_key key = { 0, instance->created_ns, instance->meter.device };
                const struct usage_amount amount = {
                        .busy_ns = { [METER_SM] = instance->meter.turn_ns }
                };

                meter_books_add_usage(meter, &key, &amount, now_ns, now_ns);
        }
        instance->meter.turn_ns = 0;
}

static uint64_t read_memory(struct guest *guest)
{
        const struct instance *instance = guest->instance;
        struct page_use use = { 0 };

        if (guest->slot != UINT32_MAX)
                page_read(&instance->page, guest->slot, instance->frame_buffer, &use);
        if (use.peak > guest->meter.record.max_memory)
                guest->meter.record.max_memory = use.peak;
        return instance_is_off(instance) ? 0 : use.movable + use.fixed;
}

static void settle_guest(struct meter *meter, struct guest *guest, uint64_t now_ns)
{
        struct meter_guest *mine = &guest->meter;
        const struct usage_key key = { mine->record.serial, guest->instance->created_ns,
                                       guest->instance->meter.device };
        uint64_t ms = now_ns / NS_PER_MS - mine->since_ns / NS_PER_MS;
        struct usage_amount amount = { 0 };
        struct accounting_record *record;

        for (int engine = 0; engine < METER_ENGINES; engine++) {
                amount.busy_ns[engine] = mine->new_ns[engine];
                mine->record.busy_ns[engine] += mine->new_ns[engine];
                mine->sampled_ns[engine] += mine->new_ns[engine];
                mine->new_ns[engine] = 0;
        }
        mine->record.life_ns += now_ns - mine->since_ns;
        amount.used_mib_ms = rate_area_add(&mine->used, read_memory(guest), ms);
        if (!usage_is_zero(&amount)) {
                meter_books_add_usage(meter, &key, &amount, mine->since_ns, now_ns);
                mine->is_changed = true;
        }
        mine->since_ns = now_ns;
        record = accounting_find(&guest->instance->meter.accounting, mine->record.serial);
        if (record) {
                uint64_t number = record->number;

                *record = mine->record;
                record->number = number;
        }
}

static void settle_quota(struct meter *meter, struct instance *instance, uint64_t now_ns)
{
        struct meter_instance *mine = &instance->meter;
        const struct usage_key key = { 0, instance->created_ns, mine->device };
        uint64_t ms = now_ns / NS_PER_MS - mine->since_ns / NS_PER_MS;
        struct usage_amount amount = { 0 };

        if (mine->is_held)
                amount.quota_mib_ms = rate_area_add(&mine->quota, instance->frame_buffer, ms);
        if (!usage_is_zero(&amount))
                meter_books_add_usage(meter, &key, &amount, mine->since_ns, now_ns);
        mine->since_ns = now_ns;
}

static void settle(struct meter *meter, struct instance *instance, uint64_t now_ns)
{
        struct guest *guest;

        if (instance->meter.since_ns == 0)
                return;
        list_for_each(guest, &instance->guests, link)
                if (is_metered(guest) && meter->source)
                        meter_source_read(meter->source, guest);
        divide_turns(meter, instance, now_ns);
        list_for_each(guest, &instance->guests, link)
                if (is_metered(guest))
                        settle_guest(meter, guest, now_ns);
        settle_quota(meter, instance, now_ns);
        instance->meter.device = instance->device->index;
        instance->meter.is_held = !instance_is_off(instance);
}

static void read_wall(struct meter *meter, uint64_t now_ns)
{
        int64_t step = wall_read(&meter->wall, now_ns / NS_PER_MS, wall_now_ns() / NS_PER_MS);

        if (step)
                log_event(LOG_LEVEL_NOTICE,
                          "the clock of the machine was set; usage is entered as of now",
                          "seconds=%+.3f", (double)step / 1000);
}

static uint64_t settle_all(struct meter *meter)
{
        uint64_t now_ns = meter_now();
        struct instance *instance;

        read_wall(meter, now_ns);
        list_for_each(instance, &meter->manager->instances, link)
                settle(meter, instance, now_ns);
        return now_ns;
}

void meter_sync(struct meter *meter)
{
        (void)settle_all(meter);
}

/* Sampling. */

static void sample_guest(struct guest *guest, uint64_t now_ns, uint64_t period_ns)
{
        struct meter_guest *mine = &guest->meter;
        bool has_turns = guest->instance->device->meter.has_turns;

        for (int engine = 0; engine < METER_ENGINES; engine++) {
                bool is_told = now_ns < mine->told_until_ns && !(has_turns && engine == METER_SM);

                mine->percent[engine] = is_told ? mine->told_percent[engine]
                                                : rate_percent(mine->sampled_ns[engine], period_ns);
                mine->sampled_ns[engine] = 0;
        }
}

static void add_percent(uint32_t *sum, const uint32_t *percent)
{
        for (int engine = 0; engine < METER_ENGINES; engine++)
                sum[engine] =
                        sum[engine] + percent[engine] < 100 ? sum[engine] + percent[engine] : 100;
}

static void clear_percent(uint32_t *percent)
{
        for (int engine = 0; engine < METER_ENGINES; engine++)
                percent[engine] = 0;
}

/* Returns how many processes are metered. */
static size_t sample(struct meter *meter)
{
        struct manager *manager = meter->manager;
        uint64_t now_ns = settle_all(meter), period_ns = now_ns - meter->sampled_ns;
        struct instance *instance;
        size_t n = 0;

        for (size_t i = 0; i < manager->n_devices; i++)
                clear_percent(manager->device[i].meter.percent);
        list_for_each(instance, &manager->instances, link) {
                struct guest *guest;

                clear_percent(instance->meter.percent);
                list_for_each(guest, &instance->guests, link) {
                        if (!is_metered(guest))
                                continue;
                        sample_guest(guest, now_ns, period_ns);
                        add_percent(instance->meter.percent, guest->meter.percent);
                        n++;
                }
                add_percent(instance->device->meter.percent, instance->meter.percent);
        }
        meter->sampled_ns = now_ns;
        if (meter->source)
                meter_source_tick(meter->source, n);
        meter_board_sample(meter);
        return n;
}

static void arm(struct meter *meter, uint64_t in_us, uint64_t accuracy_us)
{
        (void)sd_event_source_set_time_accuracy(meter->timer, accuracy_us);
        (void)sd_event_source_set_time_relative(meter->timer, in_us);
        (void)sd_event_source_set_enabled(meter->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct meter *meter = userdata;
        size_t n;

        (void)source, (void)usec;
        if (list_is_empty(&meter->manager->instances))
                return 0; /* the next vGPU starts it again */
        n = sample(meter);
        if (meter->sampled_ns - meter->written_ns >= (n ? WRITE_BUSY_NS : WRITE_QUIET_NS))
                meter_books_write(meter);
        arm(meter, n ? BUSY_INTERVAL_US : QUIET_INTERVAL_US, n ? 1000 : QUIET_ACCURACY_US);
        return 0;
}

/* The first after a pause: what was not sampled then is not part of the next period. */
static void wake(struct meter *meter)
{
        if (!meter->timer)
                return;
        meter->sampled_ns = meter_now();
        arm(meter, BUSY_INTERVAL_US, 1000);
}

static bool is_first_guest(const struct guest *newcomer)
{
        const struct instance *instance;
        const struct guest *guest;

        list_for_each(instance, &newcomer->instance->manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        if (guest != newcomer && is_metered(guest))
                                return false;
        return true;
}

/* Lives. */

static void add_instance(struct instance *instance, uint64_t since_ns)
{
        instance->meter.since_ns = since_ns;
        instance->meter.device = instance->device->index;
        instance->meter.is_held = !instance_is_off(instance);
        meter_books_add_vgpu(instance->manager->meter, instance);
}

void meter_add_instance(struct instance *instance)
{
        if (!instance->manager->meter)
                return;
        add_instance(instance, meter_now());
        if (instance->link.next == instance->link.previous) /* it is the only one */
                wake(instance->manager->meter);
}

/* The time since the former manager wrote last was used as well: the vGPU was there. */
void meter_load_instance(struct instance *instance)
{
        struct meter *meter = instance->manager->meter;
        uint64_t now_ns = meter_now();

        if (!meter)
                return;
        meter_books_load(meter, instance);
        add_instance(instance, meter->former_wall.steady_ms
                                       ? meter->former_wall.steady_ms * NS_PER_MS
                                       : now_ns);
        instance->meter.must_republish = true;
}

void meter_remove_instance(struct instance *instance)
{
        struct meter *meter = instance->manager->meter;
        uint64_t now_ns = meter_now();

        if (meter && instance->meter.since_ns) {
                read_wall(meter, now_ns);
                settle(meter, instance, now_ns);
                meter_books_write(meter);
        }
}

static uint64_t make_serial(struct meter *meter)
{
        uint64_t serial = wall_now_ns();

        meter->last_serial = serial > meter->last_serial ? serial : meter->last_serial + 1;
        return meter->last_serial;
}

static void start_record(struct guest *guest)
{
        char quoted[LOG_QUOTED_MAX];
        int r;

        r = meter_board_start(guest);
        if (r < 0)
                log_event(LOG_LEVEL_WARNING, "a process is not in the accounting",
                          "vgpu=%s pid=%d name=%s error=\"%s\"", guest->instance->name,
                          (int)guest->pid, log_quote(quoted, guest->name), strerror(-r));
}

static void begin(struct meter *meter, struct guest *guest)
{
        struct accounting_record *record = &guest->meter.record;

        if (is_first_guest(guest))
                wake(meter);
        *record = (struct accounting_record){
                .serial = make_serial(meter),
                .pid = (uint32_t)guest->pid,
                .is_running = true,
                .start_us = guest->joined_ns / 1000,
        };
        snprintf(record->name, sizeof(record->name), "%s", guest->name);
        guest->meter.since_ns = meter_now();
        start_record(guest);
        meter_books_add_process(meter, guest, 0);
}

void meter_begin(struct guest *guest)
{
        struct meter *meter = guest->instance->manager->meter;

        if (!meter)
                return;
        if (meter->source)
                meter_source_begin(meter->source, guest);
        begin(meter, guest);
}

void meter_load_guest(struct guest *guest)
{
        struct meter *meter = guest->instance->manager->meter;
        struct ledger_process former;

        if (!meter)
                return;
        if (!meter_books_take(meter, guest, &former)) {
                /* One that joined just before the former manager died: nothing of it is billed yet. */
                if (!meter->loading && meter->source)
                        meter_source_begin(meter->source, guest);
                begin(meter, guest);
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
        for (int engine = 0; engine < METER_ENGINES; engine++) {
                guest->meter.record.busy_ns[engine] = former.busy_ns[engine];
                guest->meter.seen_ns[engine] = former.seen_ns[engine];
        }
        snprintf(guest->meter.record.name, sizeof(guest->meter.record.name), "%s", former.name);
        guest->meter.since_ns = meter->former_wall.steady_ms
                                        ? meter->former_wall.steady_ms * NS_PER_MS
                                        : meter_now();
        guest->joined_ns = former.started_ms * NS_PER_MS;
        start_record(guest);
}

void meter_end(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct meter *meter = instance->manager->meter;
        uint64_t now_ns = meter_now();

        if (!meter || !is_metered(guest))
                return;
        read_wall(meter, now_ns);
        settle(meter, instance, now_ns);
        meter_board_end(guest);
        meter_books_add_process(meter, guest, meter->wall.wall_ms);
        guest->meter.record.serial = 0;
}

size_t meter_clear_accounting(struct instance *instance)
{
        struct meter *meter = instance->manager->meter;
        size_t n;

        if (!meter)
                return 0;
        meter_sync(meter);
        meter_books_clear(meter, instance);
        n = accounting_clear(&instance->meter.accounting);
        instance->meter.must_republish = true;
        meter_board_update(instance);
        meter_books_write(meter);
        return n;
}

void meter_write(struct meter *meter)
{
        meter_sync(meter);
        meter_books_write(meter);
}

struct ledger_thread *meter_get_ledger(struct meter *meter)
{
        return meter->ledger;
}

/* Where nothing is enforced, the driver takes turns among those that have processes. */
double meter_get_entitled(const struct instance *instance)
{
        const struct instance *other;
        int n = 0;

        if (instance->state != BOARD_RUNNING)
                return 0;
        list_for_each(other, &instance->manager->instances, link)
                n += other->device == instance->device && other->state == BOARD_RUNNING;
        return 100.0 / n;
}

enum meter_source_kind meter_get_source(const struct device *device)
{
        const struct meter *meter = device->manager->meter;

        return meter && meter->source ? meter_source_get_kind(meter->source, device)
                                      : METER_SOURCE_NONE;
}

int meter_new(struct meter **ret_meter, struct manager *manager)
{
        struct meter *meter = calloc(1, sizeof(*meter));
        int r;

        if (!meter)
                return -ENOMEM;
        meter->manager = manager;
        meter->sampled_ns = meter->written_ns = meter_now();
        read_wall(meter, meter->sampled_ns);
        r = meter_source_new(&meter->source, manager);
        if (r < 0)
                log_event(LOG_LEVEL_ERROR, "GPU time cannot be seen from below", "error=\"%s\"",
                          strerror(-r));
        r = meter_books_open(meter);
        if (r < 0) {
                (void)meter_free(meter);
                return r;
        }
        *ret_meter = meter;
        return 0;
}

void meter_start(struct meter *meter)
{
        int r = meter_books_start(meter);

        if (r == 0)
                r = sd_event_add_time_relative(meter->manager->event, &meter->timer,
                                               CLOCK_MONOTONIC, 0, 1000, on_timer, meter);
        if (r < 0)
                log_event(LOG_LEVEL_ERROR, "usage is not metered", "error=\"%s\"", strerror(-r));
}

struct meter *meter_free(struct meter *meter)
{
        struct instance *instance;
        struct guest *guest;

        if (!meter)
                return NULL;
        sd_event_source_disable_unref(meter->timer);
        if (meter->ledger) {
                (void)settle_all(meter);
                list_for_each(instance, &meter->manager->instances, link)
                        list_for_each(guest, &instance->guests, link)
                                if (is_metered(guest))
                                        meter_books_add_process(meter, guest, 0);
                meter_books_write(meter);
        }
        meter->ledger = ledger_thread_free(meter->ledger);
        meter->loading = ledger_close(meter->loading);
        meter->source = meter_source_free(meter->source);
        free(meter->former);
        free(meter->devices);
        free(meter);
        return NULL;
}
