/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-scheduler.h"

#include <errno.h>
#include <string.h>

#include "manager/control/control.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule.h"
#include "scheduler/scheduler.h"
#include "state/state-page.h"

static const char *const mode_names[] = {
        [SCHEDULE_OFF] = "off",
        [SCHEDULE_HARDWARE] = "hardware",
        [SCHEDULE_GATE] = "gate",
};

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

static json_t *describe_share(const struct instance *instance, bool has_turns)
{
        struct schedule_share share = { 0 };
        bool is_there = schedule_get_share(instance, &share);

        if (!has_turns)
                ask_meter(instance, &share);
        return json_pack("{ss, sI, si, sf, sf, sb, sb, sb, ss}", "name", instance->name, "id",
                         (json_int_t)instance->id, "share", (int)instance->share, "entitled",
                         share.entitled * 100.0 / SCHEDULER_WHOLE, "received",
                         (double)share.received / 1e9, "has_work", is_there && share.has_work,
                         "waits", share.is_off, "enforced", is_there && share.is_enforced, "error",
                         share.error < 0 ? strerror(-share.error) : "");
}

static json_t *describe_shares(const struct device *device, bool has_turns)
{
        const struct instance *instance;
        json_t *shares = json_array();

        list_for_each(instance, &device->manager->instances, link)
                if (instance->device == device)
                        json_array_append_new(shares, describe_share(instance, has_turns));
        return shares;
}

int methods_get_scheduler(struct control_pending *pending, struct failure *failure)
{
        struct device *device = find_device(pending, failure);
        struct schedule_view view;
        bool has_turns;

        if (!device)
                return -ENODEV;
        schedule_settle(device);
        schedule_get(device, &view);
        has_turns = view.settings.policy != SCHEDULER_BEST_EFFORT;
        control_reply(
                pending,
                json_pack("{si, ss, ss, si, sb, si, si, sI, sI, sb, so}", "device",
                          (int)device->index, "mode", mode_names[view.mode], "reason", view.reason,
                          "policy", (int)view.settings.policy, "arr",
                          has_turns && view.settings.is_adaptive, "averaging_factor",
                          has_turns && view.settings.is_adaptive
                                  ? (int)view.settings.averaging_factor
                                  : 0,
                          "frequency",
                          has_turns && view.settings.is_adaptive ? (int)view.settings.frequency : 0,
                          "time_slice", (json_int_t)view.slice, "turns", (json_int_t)view.n_turns,
                          "taking_turns", view.is_taking_turns, "vgpus",
                          describe_shares(device, view.mode != SCHEDULE_OFF)));
        return 0;
}

static const char *name_of(const struct manager *manager, uint32_t id)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance->id == id)
                        return instance->name;
        return "";
}

static json_t *describe_turn(const struct manager *manager, uint64_t number,
                             const struct state_turn *turn)
{
        return json_pack("{sI, sI, sI, ss, sI, sI, sI, sI, si}", "number", (json_int_t)number,
                         "timestamp", (json_int_t)turn->timestamp, "id", (json_int_t)turn->run_list,
                         "name", name_of(manager, turn->run_list), "run", (json_int_t)turn->run,
                         "run_total", (json_int_t)turn->run_total, "target",
                         (json_int_t)turn->target, "preempted", (json_int_t)turn->preempted,
                         "weight", (int)turn->weight);
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
