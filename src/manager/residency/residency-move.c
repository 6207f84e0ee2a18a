/* SPDX-License-Identifier: Apache-2.0 */
/* When it looks again; a vGPU leaves by itself, and what comes of a move that has failed. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"

/* To the millisecond: a program waits. (0 would be the default of sd-event, a quarter of a second.) */
#define ACCURACY_US 1000

/*
 * What a gate gets to drain. If it had no work when it was asked, who has begun some since is let on soon, and
 * stays. Whose turn is over has work, and may finish what is on the device.
 */
#define LEAVE_TIMEOUT_MS 1000
#define TURN_TIMEOUT_MS  5000

/* Without work for so long it is idle. */
#define IDLE_NS (100 * NS_PER_MS)

/* After a failure; twice as long each time. Somebody waits for those that come. */
#define LEAVE_PAUSE_NS     (NS_PER_S)
#define LEAVE_PAUSE_MAX_NS (300 * NS_PER_S)
#define COME_PAUSE_NS      (250 * NS_PER_MS)
#define COME_PAUSE_MAX_NS  (8 * NS_PER_S)

/* What coming in needs more after there was not room enough: so much, then twice as much, a part of the device at most. */
#define LACK_FIRST (32 * MIB)
#define LACK_PART  4

static uint64_t now_ns(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

void residency_look_in(struct residency *residency, uint64_t ns)
{
        uint64_t us = ns / NS_PER_US, at = now_ns() + ns;

        /* Also one that is due and has not come yet: a later one would put it off. */
        if (residency->timer && residency->next_ns && residency->next_ns <= at)
                return;
        residency->next_ns = at;
        if (!residency->timer) {
                (void)sd_event_add_time_relative(residency->manager->event, &residency->timer,
                                                 CLOCK_MONOTONIC, us, ACCURACY_US,
                                                 residency->on_time, residency);
                return;
        }
        (void)sd_event_source_set_time_relative(residency->timer, us);
        (void)sd_event_source_set_enabled(residency->timer, SD_EVENT_ONESHOT);
}

/* Failures. */

/* Failures. */

void residency_note_reason(struct instance *instance, const char *reason)
{
        snprintf(instance->residency.reason, sizeof(instance->residency.reason), "%s", reason);
}

static void pause_for(struct instance *instance, uint64_t first_ns, uint64_t last_ns)
{
        struct residency_instance *mine = &instance->residency;

        mine->pause_ns = mine->pause_ns < first_ns ? first_ns : 2 * mine->pause_ns;
        if (mine->pause_ns > last_ns)
                mine->pause_ns = last_ns;
        mine->failed_ns = now_ns();
        mine->not_before_ns = mine->failed_ns + mine->pause_ns;
}

void residency_pause(struct instance *instance, bool is_leaving)
{
        if (is_leaving)
                pause_for(instance, LEAVE_PAUSE_NS, LEAVE_PAUSE_MAX_NS);
        else
                pause_for(instance, COME_PAUSE_NS, COME_PAUSE_MAX_NS);
}

void residency_come_later(struct instance *instance)
{
        instance->residency.not_before_ns = now_ns() + COME_PAUSE_NS;
}

void residency_fail(struct instance *instance, bool is_leaving, const char *reason)
{
        char quoted[LOG_QUOTED_MAX];

        residency_pause(instance, is_leaving);
        if (strncmp(instance->residency.reason, reason, sizeof(instance->residency.reason) - 1) !=
            0)
                log_event_of(instance->owner, LOG_LEVEL_NOTICE,
                             is_leaving ? "stays though idle; tried again later"
                                        : "could not come in by demand; tried again",
                             "vgpu=%s reason=%s", instance->name, log_quote(quoted, reason));
        residency_note_reason(instance, reason);
}

void residency_succeed(struct instance *instance)
{
        instance->residency.pause_ns = instance->residency.not_before_ns = 0;
        instance->residency.n_passed = 0;
        instance->residency.is_stopped = false;
        residency_note_reason(instance, "");
}

void residency_note_lack(struct instance *instance, size_t part)
{
        uint64_t *extra = &instance->part[part].residency.extra;
        uint64_t most = instance->part[part].device->memory_total / LACK_PART;

        instance->residency.lacked_room = true;
        *extra = *extra ? 2 * *extra : LACK_FIRST;
        if (*extra > most)
                *extra = most;
}

/* Leaving. */

/* Leaving. */

void residency_leave(struct instance *instance, bool hands_over, const char *why)
{
        uint64_t idle_ns = now_ns() - instance->residency.last_work_ns;
        const struct operation_request request = {
                .keep_context = instance->residency.keeps_context,
                .timeout_ms = idle_ns >= IDLE_NS ? LEAVE_TIMEOUT_MS : TURN_TIMEOUT_MS,
                .is_by_itself = true,
                .hands_over = hands_over,
        };
        struct failure failure = { 0 };
        int r;

        if (residency_look_at_stopped(instance))
                return;
        log_event_of(instance->owner, LOG_LEVEL_INFO, "leaves by itself",
                     "vgpu=%s idle=%.3f reason=\"%s\"", instance->name, (double)idle_ns / NS_PER_S,
                     why);
        r = operation_start(instance, &operation_suspend, &request, &failure);
        instance->residency.is_leaving = r == 0;
        if (r == 0)
                return;
        (void)failure_from_errno(&failure, r, "leaving");
        residency_fail(instance, true, failure.message);
}
