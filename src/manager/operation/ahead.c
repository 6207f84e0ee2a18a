/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/ahead.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "manager/guests/guest-request.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/sharing.h"
#include "manager/operation/copies.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"
#include "manager/operation/refresh.h"

/* Who does not come to rest in this time is copied when it stands still, which it has longer for. */
#define CLOSE_MS 500

/* Thousands of pieces take a second; more than this is a hang. */
#define ANSWER_MS 10000

#define ROUNDS_MAX 8

/* So little that another round would take longer than it saves. */
#define LITTLE      (8 * MIB)
#define LITTLE_PART 64

#define LOOK_US 5000

/* The end. */

bool ahead_lets_wait(const struct device *device)
{
        return device->n_ahead > 0 || promise_is_overcommitted(device);
}

/* On an overcommitted device the others are answered as ever. */
static void let_part_wait(struct instance_part *part, bool is_own)
{
        bool waits = ahead_lets_wait(part->device);

        if (is_own || !waits)
                page_answer(&part->page, false);
        page_write_waits(&part->page, waits);
}

/* All vGPUs of these devices: what one frees and the mover holds is room that another was promised. */
static void let_wait(struct instance *of, bool is_ahead)
{
        struct instance *instance;

        for (size_t i = 0; i < of->n_parts; i++)
                of->part[i].device->n_ahead += is_ahead ? 1u : -1u;
        list_for_each(instance, &of->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (instance_is_on(of, instance->part[i].device))
                                let_part_wait(&instance->part[i], instance == of && !is_ahead);
}

static void end(struct operation *operation)
{
        operation->ahead.timer = sd_event_source_disable_unref(operation->ahead.timer);
        operation->ahead.ns = clock_now(CLOCK_MONOTONIC) - operation->ahead.began_ns;
        let_wait(operation->instance, false);
        refresh_stop_all(operation->instance->manager);
        log_event_of(operation->instance->owner, LOG_LEVEL_INFO, "copied while it ran",
                     "vgpu=%s bytes=%" PRIu64 " rounds=%u seconds=%.3f", operation->instance->name,
                     operation->ahead.bytes, operation->ahead.n_rounds,
                     (double)operation->ahead.ns / 1e9);
}

static void end_guest(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        guest_forget_memory(guest);
        if (--operation->ahead.n_guests == 0)
                end(operation);
        operation_end_part(operation);
}

/* A round. */

static void begin_round(struct guest *guest);

static bool is_little(const struct guest *guest, uint64_t bytes)
{
        return bytes <= LITTLE || bytes <= guest->participant->ahead.memory_bytes / LITTLE_PART;
}

/* What one round copies has changed in the time of the one before: it is no use where that does not shrink. */
static bool wants_another(const struct guest *guest, uint64_t copied)
{
        if (guest_is_dead(guest) || guest->instance->operation->ahead.must_stop ||
            guest->participant->ahead.n_rounds >= ROUNDS_MAX)
                return false;
        return guest->participant->ahead.is_cut ||
               (!is_little(guest, copied) &&
                (guest->participant->ahead.n_rounds == 1 ||
                 copied < guest->participant->ahead.copied - guest->participant->ahead.copied / 4));
}

static void note_round(struct guest *guest, uint64_t copied)
{
        struct operation *operation = guest->instance->operation;

        log_event_of(guest->payer, LOG_LEVEL_DEBUG, "copied a round while it ran",
                     "vgpu=%s pid=%d round=%u bytes=%" PRIu64 " copied=%" PRIu64,
                     guest->instance->name, (int)guest->pid, guest->participant->ahead.n_rounds,
                     guest->participant->ahead.memory_bytes, copied);
        operation->ahead.bytes += copied;
        if (guest->participant->ahead.n_rounds > operation->ahead.n_rounds)
                operation->ahead.n_rounds = guest->participant->ahead.n_rounds;
        operation_pass(operation, "round");
}

static void on_copied(struct guest *guest, bool is_done)
{
        uint64_t copied = guest->participant->copy.n_live_bytes;
        bool has_moved, goes_on;

        guest->participant->ahead.is_copying = false;
        guest_forget_memory(guest);
        clean_copy_end(guest, is_done, is_done);
        if (!is_done || clean_copy_complete(guest, &has_moved) < 0) {
                clean_copy_spoil(guest);
                end_guest(guest);
                return;
        }
        guest->participant->ahead.n_rounds++;
        note_round(guest, copied);
        goes_on = wants_another(guest, copied);
        guest->participant->ahead.copied = copied;
        if (goes_on)
                begin_round(guest);
        else
                end_guest(guest);
}

/* Room was made for what it claimed. */
static bool has_place(const struct guest *guest)
{
        return guest->memory_bytes > 0 && guest->reservation &&
               pool_get_length(guest->reservation) == guest->memory_bytes &&
               pool_is_lone(guest->instance->manager->pool, guest->reservation);
}

static void on_opened(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)userdata;
        if (answer->error || guest_is_dead(guest) || !guest->participant->ahead.is_exported ||
            guest->instance->operation->ahead.must_stop || !has_place(guest)) {
                end_guest(guest);
                return;
        }
        guest->participant->ahead.memory_bytes = guest->memory_bytes;
        guest->participant->ahead.is_copying = true;
        guest->participant->ahead.is_cut = false;
        copies_ahead(guest, on_copied);
}

static void on_exported(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        guest->participant->ahead.is_exported = answer->error == 0;
        guest_request(guest, GATE_OPEN, ANSWER_MS, on_opened, userdata);
}

static void on_closed(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        if (answer->error || guest_is_dead(guest)) {
                end_guest(guest);
                return;
        }
        guest_forget_memory(guest);
        guest_request(guest, GATE_EXPORT, ANSWER_MS, on_exported, userdata);
}

static void begin_round(struct guest *guest)
{
        guest->participant->ahead.is_exported = false;
        guest_request(guest, GATE_CLOSE, CLOSE_MS, on_closed, NULL);
}

/* Looking whether memory has been freed, and whether somebody wants it. */

/* On an overcommitted device others ask for the room of others, and wait for that. */
static bool is_asking_for(const struct instance_part *part, const struct instance *of)
{
        return instance_is_on(of, part->device) && !promise_is_overcommitted(part->device) &&
               page_is_asking(&part->page);
}

static bool is_any_asking(const struct instance *of)
{
        const struct instance *instance;

        for (size_t i = 0; i < of->n_parts; i++)
                if (page_is_asking(&of->part[i].page))
                        return true;
        list_for_each(instance, &of->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (is_asking_for(&instance->part[i], of))
                                return true;
        return false;
}

static bool has_freed(const struct guest *guest)
{
        struct page_use use;

        guest_get_use(guest, &use);
        return use.movable < guest->participant->ahead.memory_bytes;
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct operation *operation = userdata;
        struct guest *guest;

        if (is_any_asking(operation->instance))
                operation->ahead.must_stop = true;
        operation_for_each_guest(guest, operation) {
                if (!guest->participant->ahead.is_copying || guest->participant->ahead.is_cut ||
                    !(operation->ahead.must_stop || guest_is_dead(guest) || has_freed(guest)))
                        continue;
                guest->participant->ahead.is_cut = true;
                copies_stop(guest);
        }
        (void)sd_event_source_set_time(source, usec + LOOK_US);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The step. */

static bool may_begin(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->gate && !guest->request.done &&
               guest->state == GATE_STATE_OPEN && guest->context.state == GUEST_CONTEXT_RUNNING &&
               guest->sharing.n_imports == 0 && !sharing_is_any(guest) &&
               !process_is_stopped(guest->pid) && guest->reservation;
}

void ahead_run(struct operation *operation)
{
        struct manager *manager = operation->instance->manager;
        struct guest *guest;

        if (!operation->request.pre_copies || operation->was_retried ||
            operation->standing.fate == GROUP_BROKEN ||
            manager->options->clean_copies == OPTIONS_CLEAN_COPIES_OFF)
                return;
        operation->ahead.began_ns = clock_now(CLOCK_MONOTONIC);
        operation_for_each_guest(guest, operation) {
                if (!may_begin(guest))
                        continue;
                if (operation->ahead.n_guests++ == 0)
                        let_wait(operation->instance, true);
                operation_begin_part(operation);
                memset(&guest->participant->ahead, 0, sizeof(guest->participant->ahead));
                begin_round(guest);
        }
        if (operation->ahead.n_guests > 0)
                (void)sd_event_add_time_relative(manager->event, &operation->ahead.timer,
                                                 CLOCK_MONOTONIC, LOOK_US, 0, on_look, operation);
}
