/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/publisher.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "daemon/log.h"
#include "daemon/pace.h"
#include "manager/meter/meter.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/promise.h"
#include "manager/model/session.h"
#include "manager/publish/facts.h"
#include "manager/publish/monitor.h"
#include "manager/publish/virtual-internal.h"
#include "manager/publish/virtual.h"
#include "manager/schedule/schedule.h"
#include "scenario/scenario.h"

/* With very many processes once in two seconds. */
#define BUSY_INTERVAL_US      100000
#define BUSY_INTERVAL_MOST_US 2000000
#define QUIET_INTERVAL_US     500000

/* A fifth of a percent of a core. */
#define BUSY_PART 500

/* The heartbeat at least so often: well below STATE_STALE_NS. */
#define BEAT_US 1000000

/* After a change: several that come together are written once. */
#define TOUCH_DELAY_US      2000
#define TOUCH_DELAY_MOST_US 100000
#define TOUCH_PART          20

/* In the place of a round: never free. */
#define RESERVED UINT64_MAX

struct publisher {
        struct manager *manager;
        struct state_page *state_page;
        sd_event_source *timer;
        struct pace pace, touch_pace;
        uint64_t due_us;      /* the next round; CLOCK_MONOTONIC */
        uint64_t round;       /* of publishing, from 1 on */
        uint32_t n_processes; /* that were published in the last one */
        uint32_t n_dropped;   /* records, up to the last one */
        bool is_short;        /* of room for them, in the last one */
        bool has_missed;      /* in the last one somebody found no slot */
        bool is_touched;      /* something has changed, and the timer is set for it */
        bool has_changed; /* so it was before this round, or something was not written: now all is */
        uint32_t full[STATE_DEVICES_MAX]; /* so many slots in a row are not free; 0: not known */
        /* By slot: the last round in which it was taken; 0: it is free. */
        uint64_t instance_round[STATE_INSTANCES_MAX];
        uint64_t process_round[STATE_PROCESSES_MAX];
        uint64_t encoder_round[STATE_ENCODER_SESSIONS_MAX];
        uint64_t capture_round[STATE_CAPTURE_SESSIONS_MAX];
};

/* What stays as it is. Types whose table is full are left out: 512 of other devices come first. */
static void write_fixed(struct publisher *publisher, const struct device *device)
{
        struct state_page *state_page = publisher->state_page;
        struct state_device_detail detail;
        struct state_scheduler scheduler;
        struct state_device record;

        facts_of_device(&record, device);
        state_write_device(state_page, device->index, &record);
        facts_of_device_detail(&detail, device, &record);
        state_write_device_detail(state_page, device->index, &detail);
        facts_of_scheduler(&scheduler);
        for (uint32_t engine = STATE_ENGINE_GRAPHICS; engine <= STATE_ENGINES; engine++)
                state_write_scheduler(
                        state_page,
                        state_slot_of_scheduler(state_site_of_device(device->index), engine),
                        &scheduler);
        if (catalog_publish(state_page, &record) < 0)
                log_event(LOG_LEVEL_WARNING, "no room for the types of a device", "device=%u",
                          device->index);
}

/* As it is now, but not more often than in each period: a change publishes at once. */
static void sample_device(struct state_page *state_page, const struct state_device *record)
{
        uint64_t count = state_count_device_sample(state_page, record->index);
        uint64_t now_us = clock_now(CLOCK_REALTIME) / 1000;
        struct state_sample last;

        if (count > 0 && state_read_device_sample(state_page, record->index, count - 1, &last) &&
            now_us < last.timestamp_us + BUSY_INTERVAL_US / 2 && now_us >= last.timestamp_us)
                return;
        last = (struct state_sample){ .timestamp_us = now_us,
                                      .gpu = record->utilization_gpu,
                                      .memory = record->utilization_memory,
                                      .encoder = record->utilization_encoder,
                                      .decoder = record->utilization_decoder,
                                      .jpeg = record->utilization_jpeg,
                                      .ofa = record->utilization_ofa };
        state_append_device_sample(state_page, record->index, &last);
}

static void write_device(struct publisher *publisher, const struct device *device)
{
        const struct instance_part *part;
        struct instance *instance;
        struct state_device record;
        uint64_t promised;

        if (!state_read_device(publisher->state_page, device->index, &record))
                return;
        facts_of_usage(&record, device);
        if (!publisher->manager->stage) /* else it says */
                record.is_lost = device->meter.is_lost;
        record.n_instances = device->n_virtual;
        record.memory_used = device->virtual_used;
        list_for_each(instance, &publisher->manager->instances, link) {
                part = instance_find_part(instance, device);
                if (!part)
                        continue;
                record.n_instances++;
                if (!instance_is_off(instance))
                        record.memory_used += part->shown.frame_buffer_used;
        }
        state_write_device(publisher->state_page, device->index, &record);
        sample_device(publisher->state_page, &record);
        if (!publisher->has_changed && !publisher->manager->stage)
                return;
        promised = promise_get_sum(device, NULL);
        catalog_update_offers(publisher->state_page, state_site_of_device(device->index),
                              promised < record.memory_total ? record.memory_total - promised : 0,
                              record.is_heterogeneous == 1);
}

/*
 * The slot of what is published in this round: the one that it has, or the lowest free one. A slot
 * that is not taken again in a round is free after it. UINT32_MAX: all are taken.
 */
static uint32_t take_slot(struct publisher *publisher, uint64_t *rounds, uint32_t n, uint32_t slot)
{
        for (uint32_t i = 0; slot == UINT32_MAX && i < n; i++)
                if (rounds[i] == 0)
                        slot = i;
        if (slot != UINT32_MAX)
                rounds[slot] = publisher->round;
        else
                publisher->has_missed = true;
        return slot;
}

/* Was it taken in an earlier round, and not in this one? Then it is free from now on. */
static bool give_back(const struct publisher *publisher, uint64_t *round)
{
        bool is_left = *round != 0 && *round != RESERVED && *round != publisher->round;

        if (is_left)
                *round = 0;
        return is_left;
}

/* The next vGPU in that slot has accounts of its own. */
static void drop_accounts(struct state_page *state_page, uint32_t slot)
{
        uint64_t count = state_count_account(state_page, slot);

        for (uint64_t i = state_first_account(state_page, slot); i < count; i++)
                state_write_account(state_page, slot, i, NULL);
}

/*
 * Memory is mapped page by page, so a vGPU lies nowhere in particular. Where sizes mix, NVML's clients
 * reckon with slots: each vGPU gets the first that its type may have, and keeps it while it is on the
 * device. One for which there is none runs all the same.
 */
static uint32_t find_placement(struct publisher *publisher, const struct state_type *type,
                               uint32_t device)
{
        uint32_t *full = &publisher->full[device], placement;

        if (*full && type->placement_size >= *full)
                return STATE_PLACEMENT_NONE;
        placement = catalog_find_placement(publisher->state_page, state_site_of_device(device),
                                           type->id, true);
        if (placement == STATE_PLACEMENT_NONE)
                *full = type->placement_size;
        return placement;
}

static void place(struct publisher *publisher, struct instance_part *part,
                  struct state_instance *record)
{
        const struct state_page *state_page = publisher->state_page;
        uint32_t slot;
        struct state_device device;
        struct state_type type;
        bool is_heterogeneous = state_read_device(state_page, record->device, &device) &&
                                device.is_heterogeneous == 1;

        if (!is_heterogeneous || record->state == STATE_SUSPENDED ||
            !state_find_type(state_page, record->type_id, &slot) ||
            !state_read_type(state_page, slot, &type)) {
                part->placement = STATE_PLACEMENT_NONE;
                return;
        }
        if (part->placed_on != part->device || part->placement == STATE_PLACEMENT_NONE)
                part->placement = find_placement(publisher, &type, record->device);
        part->placed_on = part->device;
        record->placement = part->placement;
        record->placement_size = part->placement == STATE_PLACEMENT_NONE ? 0 : type.placement_size;
}

/* What follows from what it is and where: its type, its place, its machine. */
static void fill_fixed(struct publisher *publisher, struct instance_part *part,
                       struct state_instance *record)
{
        struct state_page *state_page = publisher->state_page;
        struct state_host host;

        if (!publisher->has_changed) {
                record->type_id = part->shown.type_id;
                record->vgpu_version = part->shown.vgpu_version;
                record->placement = part->shown.placement;
                record->placement_size = part->shown.placement_size;
                return;
        }
        record->type_id = catalog_type_of_quota(state_page, state_site_of_device(record->device),
                                                record->frame_buffer_quota);
        if (state_read_host(state_page, 0, &host)) /* a guest's driver is the host's */
                record->vgpu_version = host.current_max;
        place(publisher, part, record);
}

/* Its processes change what it uses without a word to us. */
static void write_vm(struct publisher *publisher, const struct instance *instance,
                     struct instance_part *part)
{
        uint64_t uses = facts_get_uses(instance);
        struct state_vm vm;

        if (!publisher->has_changed && uses == part->shown_uses)
                return;
        part->shown_uses = uses;
        facts_of_vm(&vm, instance, part);
        state_write_vm(publisher->state_page, part->state_slot, &vm);
}

static void write_part(struct publisher *publisher, const struct instance *instance,
                       struct instance_part *part)
{
        struct state_instance record;

        facts_of_instance(&record, instance, part);
        fill_fixed(publisher, part, &record);
        part->state_slot = take_slot(publisher, publisher->instance_round, STATE_INSTANCES_MAX,
                                     part->state_slot);
        if (part->state_slot == UINT32_MAX)
                return;
        if (publisher->has_changed || memcmp(&record, &part->shown, sizeof(record)) != 0)
                state_write_instance(publisher->state_page, part->state_slot, &record);
        part->shown = record;
        write_vm(publisher, instance, part);
}

static void write_instance(struct publisher *publisher, struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++) {
                page_write_quota(&instance->part[i].page, instance->frame_buffer);
                write_part(publisher, instance, &instance->part[i]);
        }
}

static void write_encoder(struct publisher *publisher, const struct guest *guest,
                          struct session *session)
{
        struct state_encoder_session record;

        session->state_slot = take_slot(publisher, publisher->encoder_round,
                                        STATE_ENCODER_SESSIONS_MAX, session->state_slot);
        if (session->state_slot == UINT32_MAX)
                return;
        facts_of_encoder_session(&record, guest, session);
        state_write_encoder_session(publisher->state_page, session->state_slot, &record);
}

static void write_capture(struct publisher *publisher, const struct guest *guest,
                          struct session *session)
{
        struct state_capture_session record;

        session->state_slot = take_slot(publisher, publisher->capture_round,
                                        STATE_CAPTURE_SESSIONS_MAX, session->state_slot);
        if (session->state_slot == UINT32_MAX)
                return;
        facts_of_capture_session(&record, guest, session);
        state_write_capture_session(publisher->state_page, session->state_slot, &record);
}

static void write_sessions(struct publisher *publisher, struct guest *guest)
{
        struct session *session;

        list_for_each(session, &guest->sessions, link) {
                if (session->is_capture)
                        write_capture(publisher, guest, session);
                else
                        write_encoder(publisher, guest, session);
        }
}

/* False: it is as it was. */
static bool write_process(struct publisher *publisher, const struct guest *guest,
                          const struct instance_part *part, struct guest_record *mine)
{
        struct guest_shown now;
        struct state_process record;

        mine->state_slot = take_slot(publisher, publisher->process_round, STATE_PROCESSES_MAX,
                                     mine->state_slot);
        if (mine->state_slot == UINT32_MAX)
                return false;
        publisher->n_processes++;
        facts_of_use(&now, guest, part);
        if (!publisher->has_changed && memcmp(&now, &mine->shown, sizeof(now)) == 0)
                return false;
        mine->shown = now;
        facts_of_guest(&record, guest, part);
        state_write_process(publisher->state_page, mine->state_slot, &record);
        return true;
}

static void write_guests(struct publisher *publisher, struct instance *instance)
{
        struct guest *guest;
        bool has_news;

        list_for_each(guest, &instance->guests, link) {
                if (guest_is_dead(guest))
                        continue;
                has_news = false;
                write_sessions(publisher, guest);
                for (size_t i = 0; i < instance->n_parts; i++)
                        has_news |= write_process(publisher, guest, &instance->part[i],
                                                  &guest->record[i]);
                if (has_news)
                        monitor_write_process(publisher->state_page, guest);
        }
}

static void drop_gone(struct publisher *publisher)
{
        struct state_page *state_page = publisher->state_page;

        for (uint32_t i = 0; i < state_end_instance(state_page); i++)
                if (give_back(publisher, &publisher->instance_round[i])) {
                        state_write_instance(state_page, i, NULL);
                        state_write_vm(state_page, i, NULL);
                        if (i < state_end_vgpu(state_page))
                                state_write_vgpu(state_page, i, NULL);
                        if (i < state_end_vgpu_part(state_page))
                                state_write_vgpu_part(state_page, i, NULL);
                        drop_accounts(state_page, i);
                }
        for (uint32_t i = 0; i < state_end_process(state_page); i++)
                if (give_back(publisher, &publisher->process_round[i])) {
                        state_write_process(state_page, i, NULL);
                        if (i < state_end_process_use(state_page))
                                state_write_process_use(state_page, i, NULL);
                }
        for (uint32_t i = 0; i < state_end_encoder_session(state_page); i++)
                if (give_back(publisher, &publisher->encoder_round[i]))
                        state_write_encoder_session(state_page, i, NULL);
        for (uint32_t i = 0; i < state_end_capture_session(state_page); i++)
                if (give_back(publisher, &publisher->capture_round[i]))
                        state_write_capture_session(state_page, i, NULL);
}

/* Said once, until all has room again. */
static void tell_dropped(struct publisher *publisher)
{
        uint32_t n = atomic_load(&publisher->state_page->n_dropped);
        bool is_short = n != publisher->n_dropped;

        if (is_short && !publisher->is_short)
                log_event(LOG_LEVEL_WARNING,
                          "the run directory is full: NVML's clients do not see everything",
                          "directory=%s hint=\"make room there\"",
                          publisher->manager->options->run_directory);
        else if (!is_short && publisher->is_short)
                log_event(LOG_LEVEL_INFO, "the run directory has room again", "directory=%s",
                          publisher->manager->options->run_directory);
        publisher->is_short = is_short;
        publisher->n_dropped = n;
}

/* What found no room is tried again, though it has not changed. */
static bool must_write_all(const struct publisher *publisher)
{
        return publisher->is_touched || publisher->is_short || publisher->has_missed ||
               publisher->round == 1;
}

static void publish(struct publisher *publisher)
{
        struct manager *manager = publisher->manager;
        struct instance *instance;

        publisher->round++;
        publisher->n_processes = 0;
        publisher->has_changed = must_write_all(publisher);
        publisher->is_touched = publisher->has_missed = false;
        memset(publisher->full, 0, sizeof(publisher->full));
        if (manager->stage)
                virtual_play(manager->stage);
        list_for_each(instance, &manager->instances, link) {
                write_instance(publisher, instance);
                monitor_write_vgpu(publisher->state_page, instance);
                write_guests(publisher, instance);
        }
        drop_gone(publisher);
        for (size_t i = 0; i < manager->n_devices; i++) {
                write_device(publisher, &manager->device[i]);
                monitor_write_device(publisher->state_page, &manager->device[i]);
        }
        monitor_write_manager(publisher->state_page, manager);
        tell_dropped(publisher);
}

static uint64_t now_us(void)
{
        return clock_now(CLOCK_MONOTONIC) / 1000;
}

static void settle_devices(struct manager *manager)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                device_settle(&manager->device[i]);
        for (size_t i = 0; i < manager->n_devices; i++)
                schedule_settle(&manager->device[i]);
}

/* The log of turns is short: it is emptied often. */
static bool has_turns(const struct manager *manager)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                if (manager->device[i].meter.has_turns)
                        return true;
        return false;
}

static uint64_t get_interval(const struct publisher *publisher)
{
        if (publisher->is_touched)
                return pace_get_interval(&publisher->touch_pace);
        if (publisher->manager->stage || has_turns(publisher->manager))
                return BUSY_INTERVAL_US;
        return publisher->n_processes ? pace_get_interval(&publisher->pace) : QUIET_INTERVAL_US;
}

static void beat(struct publisher *publisher)
{
        atomic_store(&publisher->state_page->heartbeat_ns, clock_now(CLOCK_MONOTONIC));
}

static int arm(struct publisher *publisher)
{
        uint64_t beat_us = now_us() + BEAT_US;

        (void)sd_event_source_set_time(publisher->timer,
                                       publisher->due_us < beat_us ? publisher->due_us : beat_us);
        return sd_event_source_set_enabled(publisher->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct publisher *publisher = userdata;

        (void)source, (void)usec;
        beat(publisher);
        if (now_us() < publisher->due_us)
                return arm(publisher);
        pace_begin(&publisher->pace);
        publish(publisher);
        settle_devices(publisher->manager);
        pace_end(&publisher->pace);
        publisher->touch_pace.cost_ns = publisher->pace.cost_ns;
        publisher->due_us = now_us() + get_interval(publisher);
        return arm(publisher);
}

static void reserve(uint64_t *rounds, size_t n)
{
        for (size_t i = 0; i < n; i++)
                rounds[i] = RESERVED;
}

static void on_changed(void *userdata)
{
        struct publisher *publisher = userdata;
        uint64_t due_us;

        if (publisher->is_touched)
                return;
        publisher->is_touched = true;
        due_us = now_us() + pace_get_interval(&publisher->touch_pace);
        if (due_us < publisher->due_us)
                publisher->due_us = due_us;
        (void)arm(publisher);
}

static struct observer observer = { .changed = on_changed };

static void fill_state_page(struct publisher *publisher)
{
        const struct manager *manager = publisher->manager;
        struct state_page *state_page = publisher->state_page;
        struct state_host host;

        state_page->simulated = manager->simulation[0] != '\0';
        snprintf(state_page->driver_name, sizeof(state_page->driver_name), "%s",
                 manager->driver_version);
        if (strlen(manager->real_nvml) < sizeof(state_page->real_nvml))
                strcpy(state_page->real_nvml, manager->real_nvml);
        facts_of_host(&host, manager);
        state_write_host(state_page, 0, &host);
        for (size_t i = 0; i < manager->n_devices; i++)
                write_fixed(publisher, &manager->device[i]);
        atomic_store(&state_page->n_devices, (uint32_t)manager->n_devices);
}

/* The first slots of the state page are a scenario's; virtual_start() has seen that there are enough. */
static int open_stage(struct publisher *publisher)
{
        struct manager *manager = publisher->manager;
        const struct virtual_count *count;
        int r;

        if (!manager->scenario)
                return 0;
        r = virtual_start(&manager->stage, manager, publisher->state_page);
        if (r < 0)
                return r;
        count = virtual_get_count(manager->stage);
        reserve(publisher->instance_round, count->vgpus);
        reserve(publisher->process_round, count->processes);
        reserve(publisher->encoder_round, count->encoder_sessions);
        reserve(publisher->capture_round, count->capture_sessions);
        return 0;
}

int publisher_new(struct publisher **ret_publisher, struct manager *manager)
{
        const struct options *options = manager->options;
        struct publisher *publisher = calloc(1, sizeof(*publisher));
        char path[PATHS_MAX];
        int r = paths_join(path, options->run_directory, PATHS_STATE_PAGE);

        if (!publisher)
                return -ENOMEM;
        publisher->manager = manager;
        publisher->pace = (struct pace){ .least_us = BUSY_INTERVAL_US,
                                         .most_us = BUSY_INTERVAL_MOST_US,
                                         .part = BUSY_PART };
        publisher->touch_pace = (struct pace){ .least_us = TOUCH_DELAY_US,
                                               .most_us = TOUCH_DELAY_MOST_US,
                                               .part = TOUCH_PART };
        if (r == 0)
                r = state_create(&publisher->state_page, path,
                                 options->has_group ? &options->group : NULL);
        if (r == 0) {
                fill_state_page(publisher);
                r = open_stage(publisher);
        }
        if (r == 0) {
                publish(publisher);
                beat(publisher);
                r = sd_event_add_time_relative(manager->event, &publisher->timer, CLOCK_MONOTONIC,
                                               QUIET_INTERVAL_US, TOUCH_DELAY_US, on_timer,
                                               publisher);
        }
        if (r < 0) {
                publisher_free(publisher);
                return r;
        }
        manager->state_page = publisher->state_page;
        observer_add(&manager->observers, &observer, publisher);
        *ret_publisher = publisher;
        return 0;
}

struct publisher *publisher_free(struct publisher *publisher)
{
        if (!publisher)
                return NULL;
        publisher->manager->state_page = NULL;
        observer_remove(&publisher->manager->observers, &observer);
        sd_event_source_disable_unref(publisher->timer);
        state_close(publisher->state_page);
        free(publisher);
        return NULL;
}
