/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that hung when its vGPU was resumed was left behind, off the device, with its memory in the
 * pool. Its gate is back: the rest of a resume, for it alone, while the others run or wait a moment. What
 * fails leaves it behind.
 */
#include <errno.h>

#include "base/fault.h"
#include "daemon/log.h"
#include "manager/guests/gate-link.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/recovery.h"
#include "manager/model/sharing.h"
#include "manager/operation/coming.h"
#include "manager/operation/contexts.h"
#include "manager/operation/copies.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"

/* Of what no client has set a time for. */
#define CATCH_UP_TIMEOUT_MS 10000

/* After one that has failed; doubled up to the last. */
#define PAUSE_FIRST_US 500000
#define PAUSE_LAST_US  16000000

static bool is_back(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->gate && !guest->request.done &&
               guest->presence == GUEST_ABSENT &&
               (guest->state == GATE_STATE_RELEASED || guest->is_unfilled);
}

static bool is_any_back(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (is_back(guest))
                        return true;
        return false;
}

static void call_those_back(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (is_back(guest))
                        guest_set_presence(guest, GUEST_RETURNING);
}

static void set_presence(struct instance *instance, enum guest_presence presence)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->presence == GUEST_RETURNING)
                        guest_set_presence(guest, presence);
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct instance *instance = userdata;

        (void)source, (void)usec;
        instance->catch_up_timer = sd_event_source_disable_unref(instance->catch_up_timer);
        (void)operation_start_catching_up(instance);
        return 0;
}

/* What was lacking, room on the device say, may be lacking for days. */
static void pause_catching_up(struct instance *instance)
{
        uint64_t pause_us = 2 * instance->catch_up_pause_us;

        if (pause_us < PAUSE_FIRST_US)
                pause_us = PAUSE_FIRST_US;
        if (pause_us > PAUSE_LAST_US)
                pause_us = PAUSE_LAST_US;
        instance->catch_up_pause_us = pause_us;
        sd_event_source_disable_unref(instance->catch_up_timer);
        instance->catch_up_timer = NULL;
        (void)sd_event_add_time_relative(instance->manager->event, &instance->catch_up_timer,
                                         CLOCK_MONOTONIC, pause_us, 0, on_pause_over, instance);
}

/* The same for a test that has it fail, but less time. */
static uint32_t get_timeout_ms(void)
{
        return fault_point("catch-up.hurried") ? CATCH_UP_TIMEOUT_MS / 20 : CATCH_UP_TIMEOUT_MS;
}

bool operation_start_catching_up(struct instance *instance)
{
        struct operation_request request = { 0 };
        struct failure failure = { 0 };

        if (instance->operation || instance->image || !instance_is_usable(instance) ||
            !is_any_back(instance))
                return false;
        if (instance->catch_up_timer)
                return true; /* soon */
        call_those_back(instance);
        request.timeout_ms = get_timeout_ms();
        if (operation_start(instance, &operation_catch_up, &request, &failure) == 0)
                return true;
        set_presence(instance, GUEST_ABSENT);
        log_event_of(instance->owner, LOG_LEVEL_ERROR,
                     "a process that was left behind cannot catch up", "vgpu=%s reason=\"%s\"",
                     instance->name, failure.message);
        return true;
}

static int check(struct operation *operation, struct failure *failure)
{
        struct guest *guest;

        (void)failure;
        operation_for_each_guest(guest, operation)
                operation->measured.bytes += guest->memory_bytes;
        return 0;
}

/* Undone last of all. */
static void give_up(struct operation *operation)
{
        set_presence(operation->instance, GUEST_ABSENT);
}

static void restore(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                contexts_move(operation, guest, &operation->target);
}

static void drop(struct operation *operation)
{
        struct guest *guest;

        coming_drop(operation);
        operation->instance->catch_up_pause_us = 0;
        set_presence(operation->instance, GUEST_PRESENT);
        list_for_each(guest, &operation->instance->guests, link)
                if (!guest_is_dead(guest) && guest->slot != UINT32_MAX)
                        (void)recovery_store_process(
                                guest); /* if not, its gate says so: it is open */
}

static const struct operation_step steps[] = {
        { "checked", "context", coming_check, give_up, 0 },
        { "withdrawn", "context", coming_undo_create, NULL, 0 }, /* what it made while it hung */
        { "restored", "context", restore, NULL, 0 },
        { "created", "copying", coming_create, coming_undo_create, 0 },
        { "copied", "copying", coming_copy, coming_undo_copy, 0 },
        { "recorded", "finishing", coming_record, NULL, OPERATION_RECORDS },
        { "opened", "finishing", coming_open, NULL, OPERATION_ANSWERS },
        { "let-go", "finishing", coming_let_go, NULL, 0 },
        { "dropped", "finishing", drop, NULL, 0 },
};

const struct operation_kind operation_catch_up = {
        .number = OPERATION_CATCH_UP,
        .undone = pause_catching_up,
        .name = "catch-up",
        .past = "caught up",
        .steps = steps,
        .n_steps = sizeof(steps) / sizeof(steps[0]),
        .busy_state = STATE_RESUMING,
        .is_from_pool = true,
        .guests = GUEST_RETURNING,
        .settled_state = STATE_RUNNING,
        .check = check,
};
