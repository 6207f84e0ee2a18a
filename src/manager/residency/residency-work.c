/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/promise.h"
#include "manager/model/residency-view.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"

bool residency_takes_part(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->presence != GUEST_JOINING &&
               guest->slot != UINT32_MAX;
}

/*
 * Did it have any since the last look? What is not known counts as work: also of a gate that is older than
 * we are and counts nothing, for it would not tell who waits either.
 */
static bool had_work(struct guest *guest)
{
        const struct instance_page_slot *slot =
                &guest->instance->part[0].page.map->slot[guest->slot];
        uint32_t n_works = atomic_load(&slot->n_works);
        uint64_t n_launches = atomic_load(&slot->n_launches);
        bool is_new =
                n_works != guest->residency.n_works || n_launches != guest->residency.n_launches;

        guest->residency.n_works = n_works;
        guest->residency.n_launches = n_launches;
        return is_new || n_works == 0 || !guest->gate || guest->watch.told == GATE_WATCH_NOTHING ||
               atomic_load(&slot->work) != INSTANCE_PAGE_IDLE;
}

void residency_look_at_work(struct instance *instance, uint64_t now)
{
        struct guest *guest;

        if (instance->residency.waiting_ns)
                instance->residency.last_work_ns = now;
        list_for_each(guest, &instance->guests, link)
                if (residency_takes_part(guest) && had_work(guest))
                        instance->residency.last_work_ns = now;
}

/* On those that are overcommitted others may be in its room when it comes back; on those that are not, new ones. */
static const struct device *find_other_kind(const struct instance *instance)
{
        bool is = promise_is_any_overcommitted(instance);

        for (size_t i = 0; i < instance->n_parts; i++)
                if (promise_is_overcommitted(instance->part[i].device) != is)
                        return instance->part[i].device;
        return NULL;
}

/* Each look at one that is stopped reads a file for each of its threads. */
#define LOOK_AT_STOPPED_NS 100000000u

static bool find_stopped(const struct instance *instance, char *text, size_t size)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                enum process_halt halt =
                        residency_takes_part(guest) ? process_get_halt(guest->pid) : PROCESS_RUNS;

                if (halt == PROCESS_RUNS)
                        continue;
                snprintf(text, size, "process %d (%.40s) %s", (int)guest->pid, guest->name,
                         process_describe_halt(halt));
                return true;
        }
        return false;
}

void residency_find_hold(const struct instance *instance, char *text, size_t size)
{
        const struct device *other = find_other_kind(instance);
        const struct guest *guest;
        struct page_use use;

        text[0] = '\0';
        if (other)
                snprintf(text, size, "its device %u is not overcommitted", other->index);
        list_for_each(guest, &instance->guests, link) {
                if (!residency_takes_part(guest) || instance->residency.keeps_context)
                        continue;
                page_read(&instance->part[0].page, guest->slot, instance->frame_buffer, &use);
                if (use.holds)
                        snprintf(text, size, "process %d (%.40s) holds %s", (int)guest->pid,
                                 guest->name, broadcast_what_keeps(use.holds));
                else if (guest->context.is_spoiled)
                        snprintf(text, size, "process %d (%.40s) " BROADCAST_SPOILED,
                                 (int)guest->pid, guest->name);
        }
        if (!text[0] && instance->residency.is_stopped)
                snprintf(text, size, "%s", instance->residency.stopped);
}

bool residency_look_at_stopped(struct instance *instance)
{
        struct residency_instance *mine = &instance->residency;
        char text[sizeof(mine->reason)], quoted[LOG_QUOTED_MAX];

        if (!find_stopped(instance, text, sizeof(text)))
                return false;
        if (!mine->is_stopped)
                log_event_of(instance->owner, LOG_LEVEL_NOTICE, "stays: it is stopped",
                             "vgpu=%s reason=%s", instance->name, log_quote(quoted, text));
        mine->is_stopped = true;
        mine->stopped_seen_ns = clock_now(CLOCK_MONOTONIC);
        snprintf(mine->stopped, sizeof(mine->stopped), "%.95s", text);
        snprintf(mine->reason, sizeof(mine->reason), "%s", text);
        return true;
}

void residency_look_whether_it_runs(struct instance *instance)
{
        struct residency_instance *mine = &instance->residency;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (!mine->is_stopped || now_ns - mine->stopped_seen_ns < LOOK_AT_STOPPED_NS)
                return;
        mine->stopped_seen_ns = now_ns;
        if (find_stopped(instance, mine->stopped, sizeof(mine->stopped)))
                return;
        mine->is_stopped = false;
        instance->residency.reason[0] = '\0';
}

bool residency_awaits_turn(const struct instance *instance)
{
        return instance->operation && instance->operation->admission.state == ADMISSION_AWAITS_TURN;
}

bool residency_is_wanted(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest_wants_device(guest))
                        return true;
        return false;
}
