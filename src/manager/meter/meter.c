/* SPDX-License-Identifier: Apache-2.0 */
/* When the meter samples, and what is asked of it. */

#include "manager/meter/meter.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/meter/meter-internal.h"
#include "manager/meter/meter-outside.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/schedule/schedule.h"

/* With very many processes once in two seconds. */
#define BUSY_MOST_US      2000000
#define QUIET_INTERVAL_US 1000000

/* A fifth of a percent of a core. */
#define BUSY_PART 500

/* Quiet wake-ups may come with others. */
#define QUIET_ACCURACY_US 250000

/* With the sample that is nearest to a second after the last. */
#define WRITE_BUSY_NS  900000000ull
#define WRITE_QUIET_NS 60000000000ull

/* Where no process has work, a thousand vGPUs are not written each second: a tenth of a percent of a core. */
#define WRITE_IDLE_NS 9900000000ull
#define WRITE_PART    1000

/* Sampling. */

static void sample_guest_part(struct guest *guest, size_t part, uint64_t now_ns, uint64_t period_ns)
{
        struct meter_guest_part *mine = &guest->meter.part[part];
        bool has_turns = guest->instance->part[part].device->meter.has_turns;

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

/* The turns up to now; they are told at other times than samples are taken. */
static void ask_turns(struct meter *meter)
{
        struct manager *manager = meter->manager;

        for (size_t i = 0; i < manager->n_devices; i++)
                if (manager->device[i].meter.has_turns)
                        schedule_tell_meter(&manager->device[i]);
}

/* All devices together are busy for as much as they are on average. */
static void get_average(uint32_t *average, const uint32_t *sum, size_t n)
{
        for (int engine = 0; engine < METER_ENGINES; engine++)
                average[engine] = sum[engine] / (uint32_t)n;
}

static void sample_guest(struct guest *guest, uint64_t now_ns, uint64_t period_ns)
{
        const struct instance *instance = guest->instance;
        uint32_t sum[METER_ENGINES] = { 0 };

        for (size_t i = 0; i < instance->n_parts; i++) {
                sample_guest_part(guest, i, now_ns, period_ns);
                for (int engine = 0; engine < METER_ENGINES; engine++)
                        sum[engine] += guest->meter.part[i].percent[engine];
        }
        get_average(guest->meter.percent, sum, instance->n_parts);
        guest_look_at_refusals(guest);
}

static void sample_part(struct instance *instance, size_t i, uint32_t *sum)
{
        struct instance_part *part = &instance->part[i];
        struct guest *guest;

        clear_percent(part->meter.percent);
        list_for_each(guest, &instance->guests, link)
                if (meter_has(guest))
                        add_percent(part->meter.percent, guest->meter.part[i].percent);
        add_percent(part->device->meter.percent, part->meter.percent);
        for (int engine = 0; engine < METER_ENGINES; engine++)
                sum[engine] += part->meter.percent[engine];
}

void meter_sync(struct meter *meter)
{
        ask_turns(meter);
        (void)meter_settle_all(meter);
}

/* Returns how many of its processes are metered. */
static size_t sample_instance(struct instance *instance, uint64_t now_ns, uint64_t period_ns)
{
        uint32_t sum[METER_ENGINES] = { 0 };
        struct guest *guest;
        size_t n = 0;

        list_for_each(guest, &instance->guests, link) {
                if (!meter_has(guest))
                        continue;
                sample_guest(guest, now_ns, period_ns);
                n++;
        }
        for (size_t i = 0; i < instance->n_parts; i++)
                sample_part(instance, i, sum);
        get_average(instance->meter.percent, sum, instance->n_parts);
        return n;
}

static void clear_devices(struct manager *manager)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                clear_percent(manager->device[i].meter.percent);
}

/* All of a vGPU at once, while it is in the cache. Returns how many processes are metered. */
static size_t sample(struct meter *meter)
{
        struct manager *manager = meter->manager;
        uint64_t now_ns, period_ns, at_us;
        struct instance *instance;
        size_t n = 0;

        ask_turns(meter);
        now_ns = clock_now(CLOCK_MONOTONIC);
        meter_read_wall(meter, now_ns);
        at_us = wall_stamp(&meter->stamps, &meter->wall) * 1000;
        period_ns = now_ns - meter->sampled_ns;
        clear_devices(manager);
        list_for_each(instance, &manager->instances, link) {
                meter_settle(meter, instance, now_ns);
                n += sample_instance(instance, now_ns, period_ns);
                meter_page_sample(instance, at_us);
        }
        meter_books_settled(meter);
        meter->sampled_ns = now_ns;
        if (meter->source) {
                meter_source_tick(meter->source, meter->outside);
                meter_outside_tick(meter->outside);
        }
        return n;
}

static uint64_t get_write_interval(const struct meter *meter, size_t n)
{
        struct pace pace = { .least_us = WRITE_BUSY_NS / 1000,
                             .most_us = WRITE_IDLE_NS / 1000,
                             .part = WRITE_PART };

        if (meter->has_news || (n > 0 && !meter->ledger))
                return WRITE_BUSY_NS;
        if (n == 0)
                return WRITE_QUIET_NS;
        pace.cost_ns = ledger_thread_get_cost(meter->ledger);
        return pace_get_interval(&pace) * 1000;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct meter *meter = userdata;
        size_t n;

        (void)source, (void)usec;
        if (list_is_empty(&meter->manager->instances)) {
                clear_devices(meter->manager); /* of what has just gone */
                if (meter->source)
                        meter_source_stop(meter->source);
                return 0; /* the next vGPU starts it again */
        }
        pace_begin(&meter->pace);
        n = sample(meter);
        if (meter->sampled_ns - meter->written_ns >= get_write_interval(meter, n))
                meter_books_write(meter);
        pace_end(&meter->pace);
        if (n)
                meter_arm(meter, pace_get_interval(&meter->pace), 1000);
        else
                meter_arm(meter, QUIET_INTERVAL_US, QUIET_ACCURACY_US);
        return 0;
}

void meter_write(struct meter *meter)
{
        meter_sync(meter);
        meter_books_write(meter);
}

size_t meter_clear_accounting(struct instance *instance)
{
        struct meter *meter = instance->manager->meter;
        size_t n = 0;

        if (!meter)
                return 0;
        meter_sync(meter);
        meter_books_clear(meter, instance);
        for (size_t i = 0; i < instance->n_parts; i++) {
                n = accounting_clear(&instance->part[i].meter.accounting);
                instance->part[i].meter.must_republish = true;
        }
        meter_page_update(instance);
        meter_books_write(meter);
        return n;
}

struct ledger_thread *meter_get_ledger(struct meter *meter)
{
        return meter->ledger;
}

bool meter_reaches_ledger(struct meter *meter)
{
        struct ledger_thread *ledger = meter_get_ledger(meter);

        return ledger && !ledger_thread_is_failing(ledger);
}

enum meter_source_kind meter_get_source(const struct device *device)
{
        const struct meter *meter = device->manager->meter;

        return meter && meter->source ? meter_source_get_kind(meter->source, device)
                                      : METER_SOURCE_NONE;
}

const char *meter_get_source_name(const struct device *device)
{
        static const char *const names[] = {
                [METER_SOURCE_NONE] = "none",
                [METER_SOURCE_ENGINE] = "engine",
                [METER_SOURCE_SAMPLES] = "samples",
        };

        return device->meter.has_turns ? "turns" : names[meter_get_source(device)];
}

int meter_new(struct meter **ret_meter, struct manager *manager)
{
        struct meter *meter = calloc(1, sizeof(*meter));
        int r;

        if (!meter)
                return -ENOMEM;
        meter->manager = manager;
        meter->pace = (struct pace){ .least_us = METER_BUSY_US,
                                     .most_us = BUSY_MOST_US,
                                     .part = BUSY_PART };
        allowance_init(&meter->allowance);
        allowance_init(&meter->vgpu_allowance);
        meter->sampled_ns = meter->written_ns = clock_now(CLOCK_MONOTONIC);
        meter_read_wall(meter, meter->sampled_ns);
        r = meter_outside_new(&meter->outside, manager);
        if (r == 0)
                r = meter_source_new(&meter->source, manager);
        if (r < 0)
                log_event(LOG_LEVEL_ERROR, "GPU time cannot be seen from below", "error=\"%s\"",
                          strerror(-r));
        r = meter_books_open(meter);
        if (r < 0) {
                (void)meter_free(meter);
                return r;
        }
        observer_add(&manager->observers, &meter_observer, meter);
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
        observer_remove(&meter->manager->observers, &meter_observer);
        sd_event_source_disable_unref(meter->timer);
        if (meter->ledger) {
                (void)meter_settle_all(meter);
                list_for_each(instance, &meter->manager->instances, link)
                        list_for_each(guest, &instance->guests, link)
                                if (meter_has(guest))
                                        meter_books_add_process(meter, guest, 0);
                meter_books_write(meter);
        }
        meter->ledger = ledger_thread_free(meter->ledger);
        meter->loading = ledger_close(meter->loading);
        meter->source = meter_source_free(meter->source);
        meter->outside = meter_outside_free(meter->outside);
        allowance_deinit(&meter->allowance);
        allowance_deinit(&meter->vgpu_allowance);
        free(meter->former);
        free(meter->former_parts);
        free(meter->devices);
        free(meter);
        return NULL;
}
