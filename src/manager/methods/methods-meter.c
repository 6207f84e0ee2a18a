/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-meter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <openvgpu/usage.h>

#include "base/clock.h"
#include "ledger/ledger-thread.h"
#include "manager/control/describe.h"
#include "manager/meter/meter.h"
#include "manager/model/account.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/residency-view.h"
#include "manager/schedule/schedule.h"
#include "record/records.h"
#include "record/usage-row.h"
#include "record/writer.h"

/* So many entries are in one answer; a client that wants more asks for what comes after. */
#define PAGE_MAX 1000

#define MIB_MS_PER_GIB_H (1024.0 * 3600 * 1000)

static struct vgpu_usage_percents get_percents(const uint32_t *percent)
{
        return (struct vgpu_usage_percents){
                .gpu = percent[METER_SM],
                .memory = percent[METER_MEMORY],
                .encoder = percent[METER_ENCODER],
                .decoder = percent[METER_DECODER],
                .jpeg = percent[METER_JPEG],
                .ofa = percent[METER_OFA],
        };
}

static struct vgpu_usage_seconds get_seconds(const uint64_t *busy_ns)
{
        return (struct vgpu_usage_seconds){
                .gpu = (double)busy_ns[METER_SM] / NS_PER_S,
                .memory = (double)busy_ns[METER_MEMORY] / NS_PER_S,
                .encoder = (double)busy_ns[METER_ENCODER] / NS_PER_S,
                .decoder = (double)busy_ns[METER_DECODER] / NS_PER_S,
                .jpeg = (double)busy_ns[METER_JPEG] / NS_PER_S,
                .ofa = (double)busy_ns[METER_OFA] / NS_PER_S,
        };
}

/* Now: as text, for there may be thousands of processes. */

static void write_process(struct writer *writer, const struct guest *guest, bool tells_name)
{
        const struct vgpu_usage_percents percents = get_percents(guest->meter.percent);
        const struct vgpu_usage_seconds seconds = get_seconds(guest->meter.record.busy_ns);
        struct vgpu_usage_process record = {
                .pid = guest->pid,
                .name = guest->name,
                .container = guest->container,
                .container_name = tells_name ? guest->container_name : "",
                .percents = &percents,
                .seconds = &seconds,
        };
        struct page_use use;

        guest_get_use(guest, &use);
        record.memory_used = use.movable + use.fixed;
        writer_begin_object(writer, NULL);
        record_write(&record_usage_process, &record, writer);
        writer_end_object(writer);
}

/* What a call has told of vGPUs. */
struct wanted {
        const struct control_pending *pending;
        bool is_short;
};

/* @busy_ns: the sum over all of them; with is_short nothing else is told of them. */
static void write_processes(struct writer *writer, const struct instance *instance,
                            const struct wanted *wanted, uint64_t *busy_ns)
{
        bool tells_names = wanted->pending->sees_all || wanted->pending->uid == instance->owner;
        const struct guest *guest;

        writer_begin_array(writer, "processes");
        list_for_each(guest, &instance->guests, link) {
                if (guest->meter.record.serial == 0 || guest->slot == UINT32_MAX)
                        continue;
                if (!wanted->is_short)
                        write_process(writer, guest, tells_names);
                for (int engine = 0; engine < METER_ENGINES; engine++)
                        busy_ns[engine] += guest->meter.record.busy_ns[engine];
        }
        writer_end_array(writer);
}

/* Where each member of a vGPU's use comes from; but its parts, and its processes. */
static void get_vgpu(const struct instance *instance, struct vgpu_usage_instance *ret_record)
{
        struct residency_view view;

        residency_view_get(instance, &view);
        *ret_record = (struct vgpu_usage_instance){
                .id = instance->id,
                .name = instance->name,
                .uuid = instance->uuid,
                .owner = instance->owner,
                .device = instance_home(instance)->index,
                .state = describe_get_state(instance),
                .frame_buffer = instance->frame_buffer * instance->n_parts,
                .frame_buffer_used = guests_get_used(instance),
                .share = instance->share,
                .n_programs = (uint32_t)describe_count_processes(instance),
                .idle = view.idle,
                .demand = view.demand,
                .demand_reason = view.reason,
                .idle_after = (double)instance->residency.after_ns / NS_PER_S,
                .idle_keeps_context = instance->residency.keeps_context,
                .host_memory = describe_get_host_memory(instance),
                .demand_percent = view.percent,
                .swap_class = residency_record_get_class(instance->residency.is_interactive),
                .resident_seconds = (double)residency_view_get_resident(instance) / NS_PER_S,
                .n_swaps = instance->residency.sums.n_swaps,
                .swapped_bytes = instance->residency.sums.swapped_bytes,
                .n_waits = instance->residency.sums.n_waits,
                .waited_seconds = (double)instance->residency.sums.waited_ns / NS_PER_S,
                .container = guests_find_container(instance),
                .n_whole = guests_count_whole(instance, INSTANCE_PAGE_MENDED),
                .n_unwhole = guests_count_whole(instance, INSTANCE_PAGE_UNWHOLE),
        };
}

struct parts {
        struct vgpu_usage_part part[INSTANCE_PARTS_MAX];
        struct vgpu_usage_percents percents[INSTANCE_PARTS_MAX];
        struct vgpu_usage_seconds seconds[INSTANCE_PARTS_MAX];
        const struct vgpu_usage_part *list[INSTANCE_PARTS_MAX];
};

static struct vgpu_usage_seconds get_part_seconds(const struct instance *instance, size_t part)
{
        uint64_t busy_ns[METER_ENGINES] = { 0 };
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->meter.record.serial != 0 && guest->slot != UINT32_MAX)
                        for (int engine = 0; engine < METER_ENGINES; engine++)
                                busy_ns[engine] += guest->meter.part[part].busy_ns[engine];
        return get_seconds(busy_ns);
}

/* What the vGPU has of all its devices is the sum, and of their time the average. */
static void get_parts(const struct instance *instance, struct parts *parts,
                      struct vgpu_usage_instance *record)
{
        double entitled = schedule_get_entitled(instance);

        record->entitled = entitled;
        for (size_t i = 0; i < instance->n_parts; i++) {
                const struct instance_part *part = &instance->part[i];

                parts->percents[i] = get_percents(part->meter.percent);
                parts->seconds[i] = get_part_seconds(instance, i);
                parts->part[i] = (struct vgpu_usage_part){
                        .id = part->id,
                        .device = part->device->index,
                        .frame_buffer_used = guests_get_used_of(instance, part),
                        .entitled = entitled,
                        .percents = &parts->percents[i],
                        .seconds = &parts->seconds[i],
                        .gpu_seconds_total = (double)part->meter.busy_ns / NS_PER_S,
                };
                parts->list[i] = &parts->part[i];
                record->gpu_seconds_total += parts->part[i].gpu_seconds_total;
        }
        record->n_parts = instance->n_parts;
        record->parts = parts->list;
}

static void write_vgpu(struct writer *writer, const struct instance *instance,
                       const struct wanted *wanted)
{
        const struct vgpu_usage_percents percents = get_percents(instance->meter.percent);
        uint64_t busy_ns[METER_ENGINES] = { 0 };
        struct vgpu_usage_instance record;
        struct vgpu_usage_seconds seconds;
        struct parts parts;

        get_vgpu(instance, &record);
        get_parts(instance, &parts, &record);
        writer_begin_object(writer, NULL);
        write_processes(writer, instance, wanted, busy_ns);
        seconds = get_seconds(busy_ns);
        record.percents = &percents;
        record.seconds = &seconds;
        record_write(&record_usage_instance, &record, writer);
        writer_end_object(writer);
}

static void write_device(struct writer *writer, const struct device *device)
{
        const struct vgpu_usage_percents percents = get_percents(device->meter.percent);
        struct vgpu_usage_device record = {
                .index = device->index,
                .uuid = device->uuid,
                .name = device->name,
                .source = meter_get_source_name(device),
                .memory_total = device->memory_total,
                .memory_promised = promise_get_sum(device, NULL),
                .memory_swapped = promise_get_swapped(device),
                .is_overcommitted = promise_is_overcommitted(device),
                .memory_used = device_get_used(device),
                .percents = &percents,
        };
        struct schedule_view turns;

        schedule_get(device, &turns);
        record.n_turns = turns.n_turns;
        record.turns_mode = schedule_mode_get_name(turns.mode);
        writer_begin_object(writer, NULL);
        record_write(&record_usage_device, &record, writer);
        writer_end_object(writer);
}

static void write_vgpus(struct writer *writer, const struct control_pending *pending)
{
        struct wanted wanted = { .pending = pending,
                                 .is_short = control_call_bool(&pending->call, "short") };
        const struct manager *manager = pending->manager;
        const struct instance *instance;

        writer_begin_array(writer, "vgpus");
        list_for_each(instance, &manager->instances, link)
                write_vgpu(writer, instance, &wanted);
        writer_end_array(writer);
}

static int get_utilization(struct control_pending *pending, struct failure *failure)
{
        struct manager *manager = pending->manager;
        struct writer writer = { 0 };

        (void)failure;
        meter_sync(manager->meter);
        writer_begin_object(&writer, NULL);
        writer_begin_object(&writer, "parameters");
        writer_begin_array(&writer, "devices");
        for (size_t i = 0; i < manager->n_devices; i++)
                write_device(&writer, &manager->device[i]);
        writer_end_array(&writer);
        write_vgpus(&writer, pending);
        writer_end_object(&writer);
        writer_end_object(&writer);
        control_reply_text(pending, &writer);
        return 0;
}

/* Statistics: of the manager itself, for monitoring. */

static int get_statistics(struct control_pending *pending, struct failure *failure)
{
        struct manager *manager = pending->manager;
        struct writer writer = { 0 };

        (void)failure;
        writer_begin_object(&writer, NULL);
        writer_begin_object(&writer, "parameters");
        writer_real(&writer, "started", (double)manager->tally.started_ns / NS_PER_S);
        writer_begin_object(&writer, "ledger");
        writer_boolean(&writer, "working", meter_reaches_ledger(manager->meter));
        writer_end_object(&writer);
        describe_write_tally(&writer, &manager->tally);
        writer_end_object(&writer);
        writer_end_object(&writer);
        control_reply_text(pending, &writer);
        return 0;
}

/* Accounting. */

static json_t *make_account(const struct accounting_record *record,
                            const struct vgpu_usage_seconds *seconds)
{
        const struct vgpu_usage_account account = {
                .id = record->serial,
                .pid = record->pid,
                .name = record->name,
                .is_running = record->is_running,
                .started = (double)record->start_us / 1e6,
                .life = (double)record->life_ns / NS_PER_S,
                .gpu_utilization = (uint32_t)accounting_percent(record, METER_SM),
                .memory_utilization = (uint32_t)accounting_percent(record, METER_MEMORY),
                .memory_peak = record->max_memory,
                .seconds = seconds,
        };

        return record_make(&record_account, &account);
}

static void add_other_parts(struct instance *instance, struct accounting_record *all)
{
        for (size_t i = 1; i < instance->n_parts; i++) {
                const struct accounting_record *record =
                        accounting_find(&instance->part[i].meter.accounting, all->serial);

                if (!record)
                        continue;
                all->max_memory += record->max_memory;
                for (int engine = 0; engine < METER_ENGINES; engine++)
                        all->busy_ns[engine] += record->busy_ns[engine];
        }
}

/* In all parts of its vGPU: the sum, and of the time of all its devices the part that it was busy. */
static json_t *describe_record(struct instance *instance, size_t number)
{
        struct accounting_record all = instance->part[0].meter.accounting.records[number];
        struct vgpu_usage_seconds seconds;

        add_other_parts(instance, &all);
        seconds = get_seconds(all.busy_ns);
        for (int engine = 0; engine < METER_ENGINES; engine++)
                all.busy_ns[engine] /= instance->n_parts;
        return make_account(&all, &seconds);
}

/* As with usage, users see what is theirs. NVML's answer, which all see, is on the state page. */
static int get_accounting(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance =
                instance_find(pending->manager, control_call_text(&pending->call, "name"), failure);
        size_t first = (size_t)control_call_size(&pending->call, "offset"), end;
        const struct accounting *accounting;
        json_t *records;

        if (!instance)
                return -ENOENT;
        meter_sync(pending->manager->meter);
        accounting = &instance->part[0].meter.accounting;
        if (first > accounting->n)
                first = accounting->n;
        end = accounting->n - first > PAGE_MAX ? first + PAGE_MAX : accounting->n;
        records = json_array();
        for (size_t i = first; i < end; i++)
                json_array_append_new(records, describe_record(instance, i));
        control_reply(pending,
                      json_pack("{so, sb}", "records", records, "more", end < accounting->n));
        return 0;
}

/* Usage. */

static const struct {
        const char *name;
        enum ledger_group group;
} groups[] = {
        { "tenant", LEDGER_BY_TENANT },   { "vgpu", LEDGER_BY_VGPU },
        { "process", LEDGER_BY_PROCESS }, { "device", LEDGER_BY_DEVICE },
        { "job", LEDGER_BY_JOB },         { "container", LEDGER_BY_CONTAINER },
        { "part", LEDGER_BY_PART },
};

static json_t *describe_row(const struct ledger_row *row, enum ledger_group group)
{
        static const enum vgpu_usage_group usage_groups[] = {
                [LEDGER_BY_TENANT] = VGPU_USAGE_BY_TENANT,
                [LEDGER_BY_VGPU] = VGPU_USAGE_BY_VGPU,
                [LEDGER_BY_PROCESS] = VGPU_USAGE_BY_PROCESS,
                [LEDGER_BY_DEVICE] = VGPU_USAGE_BY_DEVICE,
                [LEDGER_BY_JOB] = VGPU_USAGE_BY_JOB,
                [LEDGER_BY_CONTAINER] = VGPU_USAGE_BY_CONTAINER,
                [LEDGER_BY_PART] = VGPU_USAGE_BY_PART,
        };
        const struct vgpu_usage_seconds seconds = get_seconds(row->amount.busy_ns);
        const struct vgpu_usage_row record = {
                .tenant = (uint32_t)row->tenant,
                .vgpu = row->vgpu.name,
                .vgpu_uuid = row->vgpu.uuid,
                .pid = row->pid,
                .name = row->process_name,
                .started = (double)row->started_ms / 1e3,
                .ended = (double)row->ended_ms / 1e3,
                .device_uuid = row->device.uuid,
                .device_name = row->device.name,
                .seconds = &seconds,
                .quota_gib_hours = (double)row->amount.quota_mib_ms / MIB_MS_PER_GIB_H,
                .used_gib_hours = (double)row->amount.used_mib_ms / MIB_MS_PER_GIB_H,
                .job = row->job,
                .memory_peak = row->memory_peak,
                .container = row->container,
                .container_name = row->container_name,
        };

        return usage_row_make(&record, usage_groups[group]);
}

struct asking {
        struct control_pending *pending;
        enum ledger_group group;
};

static void on_answer(const struct ledger_answer *answer, void *userdata)
{
        struct asking asking = *(struct asking *)userdata;
        struct failure failure = { 0 };
        const char *what, *hint;
        size_t n = answer->n_rows < PAGE_MAX ? answer->n_rows : PAGE_MAX;
        json_t *rows;

        free(userdata);
        if (answer->error < 0) {
                what = ledger_explain(answer->error, &hint);
                (void)failure_set(&failure, answer->error, "Failed", hint,
                                  "the ledger cannot be read: %s", what);
                control_fail(asking.pending, &failure);
                return;
        }
        rows = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(rows, describe_row(&answer->rows[i], asking.group));
        control_reply(asking.pending,
                      json_pack("{so, sb}", "rows", rows, "more", answer->n_rows > PAGE_MAX));
}

static int find_group(const char *name, enum ledger_group *ret_group, struct failure *failure)
{
        for (size_t i = 0; name && i < sizeof(groups) / sizeof(groups[0]); i++)
                if (strcmp(groups[i].name, name) == 0) {
                        *ret_group = groups[i].group;
                        return 0;
                }
        if (name)
                return failure_parameter(
                        failure, "by", "say tenant, vgpu, part, process, device, job or container",
                        "usage cannot be summed up by '%.32s'", name);
        *ret_group = LEDGER_BY_VGPU;
        return 0;
}

static uint64_t to_minute(double seconds, bool is_end)
{
        return (uint64_t)(is_end ? ceil(seconds / 60) : floor(seconds / 60));
}

/* Users see what is theirs; root, who runs vgpud, watchers and stewards see all. */
static int get_usage(struct control_pending *pending, struct failure *failure)
{
        struct ledger_thread *ledger = meter_get_ledger(pending->manager->meter);
        double since = control_call_seconds(&pending->call, "since", 0);
        double until = control_call_seconds(&pending->call, "until", CONTROL_TIME_MAX);
        struct ledger_query query = {
                .since = to_minute(since, false),
                .until = to_minute(until, true),
                .tenant = pending->sees_all ? LEDGER_ANY_TENANT : (int64_t)pending->uid,
                .offset = control_call_size(&pending->call, "offset"),
                .limit = PAGE_MAX + 1,
        };
        struct asking *asking;
        int r = find_group(control_call_text(&pending->call, "by"), &query.group, failure);

        if (r < 0)
                return r;
        if (until <= since)
                return failure_parameter(failure, "until", "give a later time",
                                         "the end of the time range is not after its beginning");
        if (!ledger)
                return failure_set(failure, -EIO, "Failed", "the log of vgpud says why",
                                   "usage is not metered");
        asking = calloc(1, sizeof(*asking));
        if (!asking)
                return -ENOMEM;
        *asking = (struct asking){ pending, query.group };
        meter_write(pending->manager->meter);
        r = ledger_thread_ask(ledger, &query, on_answer, asking);
        if (r < 0)
                free(asking);
        return r;
}

static const struct control_parameter no_parameters[] = { { 0 } };
static const struct control_parameter utilization_parameters[] = {
        { "short", CONTROL_BOOL, false },
        { 0 },
};
static const struct control_parameter accounting_parameters[] = {
        { "name", CONTROL_TEXT, true },
        { "offset", CONTROL_NUMBER, false },
        { 0 },
};
static const struct control_parameter usage_parameters[] = {
        { "since", CONTROL_TIME, true },
        { "until", CONTROL_TIME, false },
        { "by", CONTROL_TEXT, false },
        { "offset", CONTROL_NUMBER, false },
        { 0 },
};

const struct control_method methods_meter[] = {
        { "GetUtilization", CONTROL_ANYBODY, get_utilization, utilization_parameters },
        { "GetStatistics", CONTROL_ANYBODY, get_statistics, no_parameters },
        { "GetAccounting", CONTROL_OWNER, get_accounting, accounting_parameters },
        { "GetUsage", CONTROL_ANYBODY, get_usage, usage_parameters },
};
const size_t n_methods_meter = sizeof(methods_meter) / sizeof(methods_meter[0]);
