/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-scheduler.h"

#include <errno.h>
#include <string.h>

#include <openvgpu/time-sharing.h>

#include "manager/control/control.h"
#include "manager/meter/meter.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule.h"
#include "record/records.h"
#include "scheduler/scheduler.h"
#include "state/state-page.h"

static struct device *find_device(const struct control_pending *pending, struct failure *failure)
{
        return device_find(pending->manager, control_call_text(&pending->call, "device"), failure);
}

/* While no turns are taken, nothing but the meter knows what a vGPU has had and whether it works. */
static void ask_meter(const struct instance *instance, struct schedule_share *share)
{
        const struct guest *guest;
        uint64_t busy_ns = 0;

        list_for_each(guest, &instance->guests, link)
                busy_ns += guest->meter.record.busy_ns[METER_SM];
        share->received = busy_ns;
        share->has_work |= instance->meter.percent[METER_SM] > 0;
}

/* The same of what one of several devices has had. */
static void ask_meter_of_part(struct instance *instance, const struct device *device,
                              struct schedule_share *share)
{
        const struct instance_part *part = instance_find_part(instance, device);

        share->received = part->meter.busy_ns;
        share->has_work = part->meter.percent[METER_SM] > 0;
}

static json_t *describe_share(struct instance *instance, const struct device *device,
                              bool has_turns)
{
        struct schedule_share share = { 0 };
        bool is_there = schedule_get_share(instance, &share);
        struct vgpu_time_sharing_vgpu record;

        if (!has_turns && instance->n_parts > 1)
                ask_meter_of_part(instance, device, &share);
        else if (!has_turns)
                ask_meter(instance, &share);
        record = (struct vgpu_time_sharing_vgpu){
                .name = instance->name,
                .id = instance->id,
                .share = instance->share,
                .entitled_percent = schedule_get_entitled(instance),
                .received_seconds = (double)share.received / 1e9,
                .has_work = is_there && share.has_work,
                .waits = share.is_off,
                .is_enforced = is_there && share.is_enforced,
                .error = share.error < 0 ? strerror(-share.error) : "",
        };
        return record_make(&record_turns_vgpu, &record);
}

static json_t *describe_shares(const struct device *device, bool has_turns)
{
        struct instance *instance;
        json_t *shares = json_array();

        list_for_each(instance, &device->manager->instances, link)
                if (instance_is_on(instance, device))
                        json_array_append_new(shares, describe_share(instance, device, has_turns));
        return shares;
}

static json_t *describe_turns(const struct device *device)
{
        struct schedule_view view;
        struct vgpu_time_sharing record;
        bool has_turns, has_arr;
        json_t *turns;

        schedule_get(device, &view);
        has_turns = view.settings.policy != SCHEDULER_BEST_EFFORT;
        has_arr = has_turns && view.settings.is_adaptive;
        record = (struct vgpu_time_sharing){
                .device = device->index,
                .mode = schedule_mode_get_name(view.mode),
                .reason = view.reason,
                .policy = view.settings.policy,
                .has_arr = has_arr,
                .average_factor = has_arr ? view.settings.averaging_factor : 0,
                .frequency_hz = has_arr ? view.settings.frequency : 0,
                .timeslice_ns = view.slice,
                .n_turns = view.n_turns,
                .are_taken = view.is_taking_turns,
        };
        turns = record_make(&record_turns, &record);
        json_object_set_new(turns, "vgpus", describe_shares(device, view.mode != SCHEDULE_OFF));
        return turns;
}

int methods_get_scheduler(struct control_pending *pending, struct failure *failure)
{
        struct device *device = find_device(pending, failure);

        if (!device)
                return -ENODEV;
        schedule_settle(device);
        control_reply(pending, describe_turns(device));
        return 0;
}

static const char *name_of(const struct manager *manager, uint32_t id)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance_has_id(instance, id))
                        return instance->name;
        return "";
}

static json_t *describe_turn(const struct manager *manager, uint64_t number,
                             const struct state_turn *turn)
{
        const struct vgpu_time_sharing_entry record = {
                .number = number,
                .timestamp_ns = turn->timestamp,
                .id = turn->run_list,
                .name = name_of(manager, turn->run_list),
                .run_ns = turn->run,
                .run_total_ns = turn->run_total,
                .target_ns = turn->target,
                .preempted_ns = turn->preempted,
                .weight = turn->weight,
        };

        return record_make(&record_turns_entry, &record);
}

int methods_get_scheduler_log(struct control_pending *pending, struct failure *failure)
{
        struct manager *manager = pending->manager;
        const struct state_page *state_page = manager->state_page;
        struct device *device = find_device(pending, failure);
        uint64_t number, count;
        json_t *turns;
        uint32_t slot;

        if (!device)
                return -ENODEV;
        schedule_settle(device);
        slot = state_slot_of_scheduler(state_site_of_device(device->index), STATE_ENGINE_GRAPHICS);
        count = state_count_turn(state_page, slot);
        number = state_first_turn(state_page, slot);
        if (control_call_size(&pending->call, "from") > number)
                number = control_call_size(&pending->call, "from");
        turns = json_array();
        for (; number < count; number++) {
                struct state_turn turn;

                if (state_read_turn(state_page, slot, number, &turn))
                        json_array_append_new(turns, describe_turn(manager, number, &turn));
        }
        control_reply(pending, json_pack("{sI, so}", "next", (json_int_t)count, "turns", turns));
        return 0;
}
