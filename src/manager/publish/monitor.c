/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/monitor.h"

#include <stdio.h>
#include <string.h>

#include "manager/control/describe.h"
#include "manager/meter/meter.h"
#include "manager/model/account.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/residency-view.h"
#include "manager/model/spill-use.h"
#include "manager/schedule/schedule.h"

_Static_assert(TALLY_KINDS *TALLY_RESULTS <= STATE_OPERATIONS_MAX, "a slot for each");
_Static_assert(TALLY_BUCKETS <= STATE_BUCKETS_MAX && TALLY_BYTE_BUCKETS <= STATE_BUCKETS_MAX, "");

/* A reader is not kept from a record that has not changed, and no page of the file is dirtied for it. */
#define WRITE_NEWS(noun, state_page, slot, now)                    \
        do {                                                       \
                struct state_##noun was_;                          \
                                                                   \
                if (!state_read_##noun(state_page, slot, &was_) || \
                    memcmp(&was_, now, sizeof(was_)) != 0)         \
                        state_write_##noun(state_page, slot, now); \
        } while (0)

static void copy_word(char *to, size_t room, const char *word)
{
        (void)snprintf(to, room, "%s", word ? word : "");
}

static struct state_percents get_percents(const uint32_t *percent)
{
        return (struct state_percents){
                .gpu = percent[METER_SM],
                .memory = percent[METER_MEMORY],
                .encoder = percent[METER_ENCODER],
                .decoder = percent[METER_DECODER],
                .jpeg = percent[METER_JPEG],
                .ofa = percent[METER_OFA],
        };
}

/* The manager. */

static struct state_pool get_pool(const struct manager *manager)
{
        struct pool_info info;

        pool_get_info(manager->pool, &info);
        return (struct state_pool){
                .limit = info.limit,
                .size = info.size,
                .ready = info.ready,
                .used = info.used,
                .held = info.held,
                .spare = info.spare,
                .saved = info.saved,
                .spilled = spill_use_get_sum(manager),
                .spill_limit = manager->options->spill_limit,
        };
}

static void write_operations(struct state_page *state_page, const struct manager *manager)
{
        for (size_t kind = 0; kind < TALLY_KINDS; kind++)
                for (enum tally_result result = 0; result < TALLY_RESULTS; result++) {
                        const struct tally_count *count = &manager->tally.count[kind][result];
                        uint32_t slot = (uint32_t)(kind * TALLY_RESULTS + result);
                        struct state_operation now = { .n = count->n,
                                                       .ns = count->ns,
                                                       .bytes = count->bytes,
                                                       .n_ahead = count->ahead.n,
                                                       .n_ahead_rounds = count->ahead.n_rounds,
                                                       .ahead_bytes = count->ahead.bytes,
                                                       .ahead_ns = count->ahead.ns,
                                                       .ahead_stopped_ns = count->ahead.stopped_ns,
                                                       .last_ns = count->last.ns,
                                                       .last_bytes = count->last.bytes,
                                                       .last_at_ns = count->last.at_ns };

                        memcpy(now.bucket, count->bucket, sizeof(count->bucket));
                        memcpy(now.byte_bucket, count->byte_bucket, sizeof(count->byte_bucket));
                        copy_word(now.kind, sizeof(now.kind), tally_get_kind(kind));
                        copy_word(now.result, sizeof(now.result), tally_get_result(result));
                        copy_word(now.last_vgpu, sizeof(now.last_vgpu), count->last.vgpu);
                        WRITE_NEWS(operation, state_page, slot, &now);
                }
}

void monitor_write_manager(struct state_page *state_page, const struct manager *manager)
{
        struct state_manager now;

        if (!manager->is_ready)
                return;
        write_operations(state_page, manager);
        now = (struct state_manager){
                .started_ns = manager->tally.started_ns,
                .pool = get_pool(manager),
                .cuda_driver_version = manager->n_devices ? manager->device[0].driver_version : 0,
                .is_ledger_working = meter_reaches_ledger(manager->meter),
                .n_buckets = TALLY_BUCKETS,
                .n_byte_buckets = TALLY_BYTE_BUCKETS,
        };
        now.descriptors_used =
                accounts_get_all(manager->accounts, ACCOUNT_DESCRIPTORS, &now.descriptors_limit);
        for (size_t i = 0; i < TALLY_BUCKETS; i++)
                now.bucket[i] = tally_get_bound(i);
        for (size_t i = 0; i < TALLY_BYTE_BUCKETS; i++)
                now.byte_bucket[i] = tally_get_byte_bound(i);
        copy_word(now.version, sizeof(now.version), OPENVGPU_VERSION);
        WRITE_NEWS(manager, state_page, 0, &now);
}

/* Devices. */

void monitor_write_device(struct state_page *state_page, const struct device *device)
{
        struct schedule_view turns;
        struct state_device_use now = {
                .memory_used = device_get_used(device),
                .memory_promised = promise_get_sum(device, NULL),
                .memory_swapped = promise_get_swapped(device),
                .percent = get_percents(device->meter.percent),
                .is_overcommitted = promise_is_overcommitted(device),
        };

        schedule_get(device, &turns);
        now.n_turns = turns.n_turns;
        copy_word(now.source, sizeof(now.source), meter_get_source_name(device));
        copy_word(now.turns_mode, sizeof(now.turns_mode), schedule_mode_get_name(turns.mode));
        WRITE_NEWS(device_use, state_page, device->index, &now);
}

/* vGPUs and their processes. */

static enum state_instance_state get_state(const struct instance *instance)
{
        return instance->state == STATE_IDLE && !list_is_empty(&instance->launches)
                       ? STATE_RUNNING
                       : instance->state;
}

/* The sums of what has come and gone by itself, and since when it is as it is. */
static void get_residency(struct state_vgpu *record, const struct instance *instance)
{
        const struct residency_instance *mine = &instance->residency;
        struct residency_view view;

        residency_view_get(instance, &view);
        record->is_waiting = strcmp(view.demand, "waiting for memory") == 0;
        record->idle_since_ns = view.idle > 0 ? mine->last_work_ns : 0;
        record->resident_ns = mine->present_ns ? 0 : mine->sums.resident_ns;
        record->present_since_ns = mine->present_ns ? mine->present_ns - mine->sums.resident_ns : 0;
        record->n_swaps = mine->sums.n_swaps;
        record->swapped_bytes = mine->sums.swapped_bytes;
        record->n_waits = mine->sums.n_waits;
        record->waited_ns = mine->sums.waited_ns;
        copy_word(record->swap_class, sizeof(record->swap_class),
                  residency_record_get_class(mine->is_interactive));
}

/* The sums of its parts, and of their time the average. */
static void write_parts(struct state_page *state_page, const struct instance *instance,
                        struct state_vgpu *record)
{
        double entitled = schedule_get_entitled(instance);

        record->entitled = entitled;
        for (size_t i = 0; i < instance->n_parts; i++) {
                const struct instance_part *part = &instance->part[i];
                const struct state_vgpu_part now = {
                        .vgpu = instance->part[0].state_slot,
                        .vgpu_id = instance->id,
                        .number = (uint32_t)i,
                        .id = part->id,
                        .device = part->device->index,
                        .percent = get_percents(part->meter.percent),
                        .entitled = entitled,
                        .frame_buffer_used = guests_get_used_of(instance, part),
                        .gpu_ns = part->meter.busy_ns,
                };

                record->frame_buffer_used += now.frame_buffer_used;
                record->gpu_ns += now.gpu_ns;
                if (part->state_slot != UINT32_MAX)
                        WRITE_NEWS(vgpu_part, state_page, part->state_slot, &now);
        }
}

void monitor_write_vgpu(struct state_page *state_page, const struct instance *instance)
{
        uint32_t slot = instance->part[0].state_slot;
        struct state_vgpu now;

        if (slot == UINT32_MAX)
                return;
        now = (struct state_vgpu){
                .id = instance->id,
                .device = instance_home(instance)->index,
                .state = get_state(instance),
                .owner = instance->owner,
                .share = instance->share,
                .n_programs = (uint32_t)describe_count_processes(instance),
                .n_parts = (uint32_t)instance->n_parts,
                .n_whole = guests_count_whole(instance, INSTANCE_PAGE_MENDED),
                .n_unwhole = guests_count_whole(instance, INSTANCE_PAGE_UNWHOLE),
                .percent = get_percents(instance->meter.percent),
                .frame_buffer = instance->frame_buffer * instance->n_parts,
                .host_memory = describe_get_host_memory(instance),
        };
        get_residency(&now, instance);
        copy_word(now.container, sizeof(now.container), guests_find_container(instance));
        copy_word(now.uuid, sizeof(now.uuid), instance->uuid);
        copy_word(now.name, sizeof(now.name), instance->name);
        write_parts(state_page, instance, &now);
        WRITE_NEWS(vgpu, state_page, slot, &now);
}

void monitor_write_process(struct state_page *state_page, const struct guest *guest)
{
        const struct instance *instance = guest->instance;
        uint32_t slot = guest->record[0].state_slot;
        struct state_process_use now = { .vgpu = instance->part[0].state_slot,
                                         .vgpu_id = instance->id,
                                         .utilization_gpu = guest->meter.percent[METER_SM],
                                         .gpu_ns = guest->meter.record.busy_ns[METER_SM] };
        struct page_use use;

        if (slot == UINT32_MAX || now.vgpu == UINT32_MAX)
                return;
        guest_get_use(guest, &use);
        now.memory_used = use.movable + use.fixed;
        copy_word(now.container, sizeof(now.container), guest->container);
        state_write_process_use(state_page, slot, &now);
}
