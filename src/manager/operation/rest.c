/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/rest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "manager/guests/guest-request.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/operation.h"

/* Guests that need no steps mostly come to rest within the first pause. */
#define PAUSE_FIRST_US 1000
#define PAUSE_LAST_US  32000

/* After so many steps the pause doubles in any case: a gate that lies shall not keep vgpud busy. */
#define STEPS_PER_PAUSE 16

#define LAUNCHES_MAX 256

/* A guest that launches nothing for so long has no thread at the gate that wants to: it rests again. */
#define STEP_MS 10

static bool is_at_rest(const struct guest *guest)
{
        return guest->state == GATE_STATE_CLOSED && !guest->rest.is_asked;
}

static uint32_t get_ms_left(const struct rest *rest)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        return now_ns < rest->deadline_ns ? (uint32_t)((rest->deadline_ns - now_ns) / 1000000) : 0;
}

static void look(struct operation *operation);
static void on_rest(struct guest *guest, const struct guest_answer *answer, void *userdata);

static void ask_to_close(struct operation *operation, struct guest *guest)
{
        guest->rest.is_asked = true;
        operation_begin_part(operation);
        guest_request(guest, GATE_CLOSE, operation->timeout_ms, on_rest, operation);
}

/* Steps. */

static void ask_to_step(struct operation *operation, struct guest *guest, uint32_t timeout_ms)
{
        guest->rest.is_asked = true;
        guest->rest.n_missed = 0;
        operation_begin_part(operation);
        guest_request_step(guest, guest->rest.n_launches, STEP_MS, timeout_ms, on_rest, operation);
}

static void adapt(struct rest_guest *guest, bool has_changed)
{
        if (has_changed && guest->n_launches > 1)
                guest->n_launches /= 2;
        else if (!has_changed && guest->n_made > 0 && guest->n_launches < LAUNCHES_MAX)
                guest->n_launches *= 2;
        guest->n_made = 0;
}

static void take_step(struct operation *operation, uint32_t timeout_ms)
{
        struct rest *rest = &operation->rest;
        struct guest *guest;

        rest->n_steps++;
        operation_for_each_guest(guest, operation) {
                if (guest->rest.is_asked)
                        guest->rest.n_missed++;
                else
                        adapt(&guest->rest, rest->has_changed);
                if (is_at_rest(guest) && guest->rest.can_step)
                        ask_to_step(operation, guest, timeout_ms);
        }
        if ((rest->has_changed || rest->n_steps % STEPS_PER_PAUSE == 0) &&
            rest->pause_us < PAUSE_LAST_US)
                rest->pause_us *= 2;
        rest->has_changed = false;
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct operation *operation = userdata;
        uint32_t ms_left = get_ms_left(&operation->rest);

        (void)source, (void)usec;
        rest_forget(&operation->rest);
        operation_pass(operation, "step");
        if (operation->error)
                look(operation);
        else if (ms_left > STEP_MS)
                take_step(operation, ms_left);
        return 0;
}

/* To 1 us: an accuracy of 0 stands for 250 ms. */
static void pause_before_step(struct operation *operation)
{
        struct rest *rest = &operation->rest;

        if (!rest->timer)
                (void)sd_event_add_time_relative(operation->instance->manager->event, &rest->timer,
                                                 CLOCK_MONOTONIC, rest->pause_us, 1, on_pause_over,
                                                 operation);
}

void rest_forget(struct rest *rest)
{
        rest->timer = sd_event_source_disable_unref(rest->timer);
}

/* Time-outs. */

static bool has_timed_out(const struct guest *guest)
{
        return guest->rest.has_timed_out;
}

static bool has_never_rested(const struct guest *guest)
{
        return guest->rest.has_timed_out && !guest->rest.was_at_rest;
}

static bool has_rested(const struct guest *guest)
{
        return guest->rest.was_at_rest;
}

static struct guest *find(const struct operation *operation, bool (*is_one)(const struct guest *))
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (is_one(guest))
                        return guest;
        return NULL;
}

static bool is_stopped(const struct guest *guest)
{
        return guest->rest.has_timed_out && process_is_stopped(guest->pid);
}

/* The pids of all but @except for which @is_one holds, behind @before; "" for none. */
static void list_guests(const struct operation *operation, char *text, size_t size,
                        const char *before, bool (*is_one)(const struct guest *),
                        const struct guest *except)
{
        size_t at = 0, n_more = 0;
        struct guest *guest;

        text[0] = '\0';
        operation_for_each_guest(guest, operation) {
                if (guest == except || !is_one(guest))
                        continue;
                if (at + 36 < size)
                        at += (size_t)snprintf(text + at, size - at, "%s%d", at > 0 ? ", " : before,
                                               (int)guest->pid);
                else
                        n_more++;
        }
        if (n_more > 0)
                (void)snprintf(text + at, size - at, " and %zu more", n_more);
}

static void fail_missing(struct operation *operation, struct guest *missing)
{
        char others[80], waited[80];

        list_guests(operation, others, sizeof(others), "; neither did ", has_never_rested, missing);
        list_guests(operation, waited, sizeof(waited), "; at rest meanwhile: ", has_rested, NULL);
        operation_fail(
                operation, -ETIMEDOUT, "TimedOut", "it runs on; try again with a longer --timeout",
                "process %d (%.40s) did not come to rest within %u ms%s%.40s%s%s",
                (int)missing->pid, missing->name, operation->timeout_ms,
                missing->rest.call[0] ? ": it is in " : "", missing->rest.call, others, waited);
}

static void fail_in_turn(struct operation *operation)
{
        char all[128];

        list_guests(operation, all, sizeof(all), "", has_rested, NULL);
        operation_fail(operation, -ETIMEDOUT, "TimedOut",
                       "they run on; try again with a longer --timeout",
                       "processes %s wait for each other: each came to rest within %u ms, but not "
                       "all at once",
                       all, operation->timeout_ms);
}

static void fail_timed_out(struct operation *operation)
{
        struct guest *guest = find(operation, is_stopped);

        if (guest) {
                broadcast_fail_stopped(operation, guest);
                return;
        }
        guest = find(operation, has_never_rested);
        if (guest)
                fail_missing(operation, guest);
        else if (find(operation, has_timed_out))
                fail_in_turn(operation);
        else
                operation_fail(
                        operation, -ETIMEDOUT, "TimedOut", "try again",
                        "a process of vGPU %s did not come to rest within %u ms, and has ended",
                        operation->instance->name, operation->timeout_ms);
}

/* Answers. */

static void count(const struct operation *operation, size_t *ret_asked, size_t *ret_at_rest)
{
        struct guest *guest;

        *ret_asked = *ret_at_rest = 0;
        operation_for_each_guest(guest, operation) {
                *ret_asked += guest->rest.is_asked;
                *ret_at_rest += is_at_rest(guest);
        }
}

static void on_opened(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        (void)answer; /* a gate that is still closed opens, or fails to, when the step is undone */
        guest->rest.is_asked = false;
        look(operation);
        operation_end_part(operation);
}

/* It has failed. Who is at rest runs on at once: others may wait for it, and their gates as well. */
static void open_all(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                if (!is_at_rest(guest) || guest->rest.was_opened)
                        continue;
                guest->rest.is_asked = guest->rest.was_opened = true;
                operation_begin_part(operation);
                guest_request(guest, GATE_OPEN, BROADCAST_ANSWER_MS, on_opened, operation);
        }
}

static void look(struct operation *operation)
{
        struct rest *rest = &operation->rest;
        size_t n_asked, n_at_rest;

        count(operation, &n_asked, &n_at_rest);
        if (n_asked == 0 || rest->has_timed_out || operation->error)
                rest_forget(rest);
        if (n_asked == 0 && rest->has_timed_out)
                fail_timed_out(operation);
        else if (rest->has_timed_out || operation->error)
                open_all(operation);
        else if (n_asked > 0 && n_at_rest > 0)
                pause_before_step(operation);
        else if (n_asked == 0 && rest->n_steps > 0)
                log_event(LOG_LEVEL_DEBUG, "at rest together", "vgpu=%s processes=%zu steps=%u",
                          operation->instance->name, n_at_rest, rest->n_steps);
}

static void note_rest(struct operation *operation, struct guest *guest,
                      const struct guest_answer *answer)
{
        bool is_new = !guest->rest.was_at_rest || answer->n_launches > 0;

        guest->rest.was_at_rest = true;
        guest->rest.can_step = answer->can_step;
        guest->rest.n_made = answer->n_launches;
        operation->rest.has_changed |= is_new && guest->rest.n_missed > 0;
}

static void on_rest(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        guest->rest.is_asked = false;
        if (answer->error == 0)
                note_rest(operation, guest, answer);
        if (answer->error == -ETIMEDOUT) {
                operation->rest.has_timed_out = guest->rest.has_timed_out = true;
                snprintf(guest->rest.call, sizeof(guest->rest.call), "%s", answer->call);
        } else {
                broadcast_note_closed(operation, guest, answer);
        }
        look(operation);
        operation_end_part(operation);
}

void rest_begin(struct operation *operation)
{
        struct guest *guest;

        operation->rest = (struct rest){
                .deadline_ns =
                        clock_now(CLOCK_MONOTONIC) + operation->timeout_ms * (uint64_t)1000000,
                .pause_us = PAUSE_FIRST_US,
        };
        operation_for_each_guest(guest, operation) {
                guest->rest = (struct rest_guest){ .can_step = guest->rest.can_step,
                                                   .was_at_rest = guest->state == GATE_STATE_CLOSED,
                                                   .n_launches = 1 };
                if (guest->state == GATE_STATE_OPEN)
                        ask_to_close(operation, guest);
        }
}
