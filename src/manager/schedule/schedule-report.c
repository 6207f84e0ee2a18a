/* SPDX-License-Identifier: Apache-2.0 */
/* What comes out of the turns: for the meter, the gates, the state page, the log, and for who asks. */
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/guests/guest-watch.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/schedule/schedule-internal.h"
#include "manager/schedule/schedule.h"
#include "state/state-page.h"

void schedule_give_to_meter(struct schedule *schedule, struct schedule_vgpu *vgpu, uint64_t now)
{
        uint64_t received = scheduler_get_received(&schedule->scheduler, &vgpu->member, now);

        if (received <= vgpu->given)
                return;
        for (size_t i = 0; i < vgpu->instance->n_parts; i++) /* its turns are on all at once */
                vgpu->instance->part[i].meter.turn_ns += received - vgpu->given;
        vgpu->given = received;
}

static void give_all_to_meter(struct schedule *schedule)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);
        struct schedule_vgpu *vgpu;

        if (!scheduler_is_enforcing(&schedule->scheduler))
                return;
        list_for_each(vgpu, &schedule->vgpus, link)
                schedule_give_to_meter(schedule, vgpu, now);
}

void schedule_tell_meter(struct device *device)
{
        struct schedule *schedule = device->schedule ? schedule_of(device) : NULL;

        if (!schedule)
                return;
        pthread_mutex_lock(&schedule->lock);
        give_all_to_meter(schedule);
        pthread_mutex_unlock(&schedule->lock);
}

static void tell_gates(const struct schedule *schedule)
{
        enum gate_watch watch = GATE_WATCH_NOTHING;
        struct schedule_vgpu *vgpu;
        struct schedule_guest *guest;

        if (scheduler_is_enforcing(&schedule->scheduler))
                watch = schedule->host ? GATE_WATCH_REPORT : GATE_WATCH_TURNS;
        list_for_each(vgpu, &schedule->vgpus, link)
                list_for_each(guest, &vgpu->guests, link)
                        if (!guest->is_leaving)
                                guest_watch(guest->guest, watch);
}

static void tell_stuck(const struct schedule_vgpu *vgpu, struct schedule_guest *guest)
{
        if ((guest->stuck < 0) == guest->is_stuck_told)
                return;
        guest->is_stuck_told = guest->stuck < 0;
        if (guest->is_stuck_told)
                log_event_of(guest->guest->payer, LOG_LEVEL_WARNING,
                             "a process cannot be let on its device; it is tried again and again",
                             "vgpu=%s pid=%d error=\"%s\"", vgpu->instance->name,
                             (int)guest->guest->pid, strerror(-guest->stuck));
        else
                log_event_of(guest->guest->payer, LOG_LEVEL_NOTICE,
                             "a process is on its device again", "vgpu=%s pid=%d",
                             vgpu->instance->name, (int)guest->guest->pid);
}

static void tell_failures(struct schedule *schedule)
{
        struct schedule_vgpu *vgpu;
        struct schedule_guest *guest;

        list_for_each(vgpu, &schedule->vgpus, link)
                list_for_each(guest, &vgpu->guests, link) {
                        tell_stuck(vgpu, guest);
                        if (guest->error == 0 || guest->is_error_told)
                                continue;
                        guest->is_error_told = true;
                        log_event_of(guest->guest->payer, LOG_LEVEL_WARNING,
                                     "a process cannot be held off its device and takes no turns",
                                     "vgpu=%s pid=%d error=\"%s\"", vgpu->instance->name,
                                     (int)guest->guest->pid, strerror(-guest->error));
                }
        if (schedule->failure == 0)
                return;
        log_event(LOG_LEVEL_WARNING, "turns are taken at the gates", "device=%u reason=\"%s\"",
                  schedule->device->index, schedule->reason);
        schedule->failure = 0;
}

/* From the clock of the turns to that of the state page. */
static uint64_t realtime_offset(void)
{
        return clock_now(CLOCK_REALTIME) - clock_now(CLOCK_MONOTONIC);
}

/* NVML's of the part that vGPU @id has there: each device's log has its own. */
static uint32_t find_id(const struct schedule *schedule, uint32_t id, const struct device *device)
{
        const struct schedule_vgpu *vgpu;

        list_for_each(vgpu, &schedule->vgpus, link) {
                const struct instance_part *part =
                        vgpu->member.id == id ? instance_find_part(vgpu->instance, device) : NULL;

                if (part)
                        return part->id;
        }
        return id;
}

static void publish_turn(const struct schedule *schedule, const struct scheduler_turn *turn,
                         const struct device *device, uint64_t offset)
{
        const struct state_turn record = {
                .timestamp = turn->end + offset,
                .run = turn->run,
                .run_total = turn->run_total,
                .target = turn->target,
                .preempted = turn->preempted,
                .run_list = find_id(schedule, turn->id, device),
                .weight = turn->weight,
        };

        (void)state_append_turn(
                device->manager->state_page,
                state_slot_of_scheduler(state_site_of_device(device->index), STATE_ENGINE_GRAPHICS),
                &record);
}

static void publish_log(struct schedule *schedule)
{
        const struct manager *manager = schedule->device->manager;
        uint64_t offset = realtime_offset();
        const struct scheduler *scheduler = &schedule->scheduler;

        if (scheduler->n_logged - schedule->n_published > SCHEDULER_LOG_MAX)
                schedule->n_published = scheduler->n_logged - SCHEDULER_LOG_MAX;
        for (; schedule->n_published < scheduler->n_logged; schedule->n_published++) {
                const struct scheduler_turn *turn =
                        &scheduler->log[schedule->n_published % SCHEDULER_LOG_MAX];

                for (size_t i = 0; i < manager->n_devices; i++)
                        if (turn->devices & UINT64_C(1) << manager->device[i].index)
                                publish_turn(schedule, turn, &manager->device[i], offset);
        }
}

/* What was before comes from the old source. */
static void set_turns(struct device *device, bool has_turns)
{
        if (device->meter.has_turns == has_turns)
                return;
        observer_tell_device(&device->manager->observers, device, DEVICE_SWITCHES_SOURCE);
        device->meter.has_turns = has_turns;
}

void schedule_report(struct schedule *schedule)
{
        struct manager *manager = schedule->device->manager;
        const uint64_t devices = schedule_get_devices(schedule);

        give_all_to_meter(schedule);
        for (size_t i = 0; i < manager->n_devices; i++)
                if (devices & UINT64_C(1) << manager->device[i].index)
                        set_turns(&manager->device[i],
                                  scheduler_is_enforcing(&schedule->scheduler));
        publish_log(schedule);
        tell_gates(schedule);
        tell_failures(schedule);
}

/* What is shown. */

const char *schedule_mode_get_name(enum schedule_mode mode)
{
        static const char *const names[] = {
                [SCHEDULE_OFF] = "off",
                [SCHEDULE_HARDWARE] = "hardware",
                [SCHEDULE_GATE] = "gate",
        };

        return names[mode];
}

void schedule_get(const struct device *device, struct schedule_view *ret_view)
{
        struct schedule *schedule = schedule_of(device);

        pthread_mutex_lock(&schedule->lock);
        *ret_view = (struct schedule_view){
                .mode = schedule->host ? SCHEDULE_HARDWARE : SCHEDULE_GATE,
                .reason = schedule->reason,
                .settings = schedule->scheduler.settings,
                .slice = scheduler_settings_get_slice(&schedule->scheduler.settings),
                .n_turns = schedule->scheduler.n_logged,
                .is_taking_turns = schedule->scheduler.order.mode != SCHEDULER_FREE,
        };
        if (!scheduler_is_enforcing(&schedule->scheduler)) {
                ret_view->mode = SCHEDULE_OFF;
                ret_view->reason = ret_view->settings.policy == SCHEDULER_BEST_EFFORT
                                           ? "best effort needs two vGPUs and at least one share: "
                                             "the driver divides the time"
                                           : "there are fewer than two vGPUs";
        }
        pthread_mutex_unlock(&schedule->lock);
}

double schedule_get_entitled(const struct instance *instance)
{
        struct schedule_share share;

        return schedule_get_share(instance, &share) ? share.entitled * 100.0 / SCHEDULER_WHOLE : 0;
}

bool schedule_get_share(const struct instance *instance, struct schedule_share *ret_share)
{
        struct schedule_vgpu *vgpu;
        struct schedule *schedule = schedule_find(instance, &vgpu);
        const struct schedule_guest *guest;

        if (!schedule)
                return false;
        pthread_mutex_lock(&schedule->lock);
        *ret_share = (struct schedule_share){
                .entitled = scheduler_get_entitled(&vgpu->member),
                .received = scheduler_get_received(&schedule->scheduler, &vgpu->member,
                                                   clock_now(CLOCK_MONOTONIC)),
                .has_work = vgpu->member.has_work,
                .is_off = vgpu->is_off,
                .is_enforced = true,
        };
        list_for_each(guest, &vgpu->guests, link)
                if (guest->error < 0 || guest->stuck < 0) {
                        ret_share->is_enforced = false;
                        ret_share->error = guest->stuck < 0 ? guest->stuck : guest->error;
                }
        pthread_mutex_unlock(&schedule->lock);
        return true;
}
