/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/rest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "manager/guests/guest-request.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/group.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"
#include "manager/operation/rest-pairs.h"

/* Guests that need no steps mostly come to rest within the first pause. */
#define PAUSE_FIRST_US 1000
#define PAUSE_LAST_US  32000

/* After so many steps the pause doubles in any case: a gate that lies shall not keep vgpud busy. */
#define STEPS_PER_PAUSE 16

#define LAUNCHES_MAX 256

/* A gate that closes in vain says so at the deadline. Whoever does not is not waited for with an answer to the caller. */
#define ANSWER_MS 100

/* In a message: one process with its vGPU, and how many more there are. */
#define LISTED_MAX 56
#define MORE_MAX   28

/* A guest that launches nothing for so long has no thread at the gate that wants to: it rests again. */
#define STEP_MS 10

/* The operations that come to rest together, and their guests. */

static struct operation *next_member(const struct rest *rest, const struct operation *after)
{
        struct instance *instance;
        bool is_behind = !after;

        list_for_each(instance, &rest->manager->instances, link) {
                if (is_behind && instance->operation && instance->operation->rest == rest)
                        return instance->operation;
                is_behind |= after && instance->operation == after;
        }
        return NULL;
}

static struct guest *next_guest(const struct rest *rest, struct guest *after)
{
        struct operation *operation = after ? after->instance->operation : next_member(rest, NULL);
        struct guest *guest = operation ? operation_next_guest(operation, after) : NULL;

        while (!guest && (operation = next_member(rest, operation)))
                guest = operation_next_guest(operation, NULL);
        return guest;
}

#define for_each_guest(guest, rest) \
        for (guest = next_guest(rest, NULL); guest; guest = next_guest(rest, guest))

/* One of the group that has not begun to close its gates; NULL: all have. */
static const struct operation *find_late(const struct rest *rest)
{
        const struct operation *operation = next_member(rest, NULL), *other = NULL;

        while ((other = group_next(operation, other)))
                if (other->rest != rest)
                        return other;
        return NULL;
}

static bool has_failed(const struct rest *rest)
{
        struct operation *operation = NULL;

        while ((operation = next_member(rest, operation)))
                if (operation->error || operation->standing.fate == GROUP_BROKEN)
                        return true;
        return false;
}

static bool is_at_rest(const struct guest *guest)
{
        return guest->state == GATE_STATE_CLOSED && !guest->participant->rest.is_asked;
}

static uint32_t get_ms_left(const struct rest *rest)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        return now_ns < rest->deadline_ns ? (uint32_t)((rest->deadline_ns - now_ns) / 1000000) : 0;
}

static void look(struct rest *rest);
static void on_rest(struct guest *guest, const struct guest_answer *answer, void *userdata);

/* One of a group that begins late has what is left of the group's time. */
static void ask_to_close(struct operation *operation, struct guest *guest)
{
        uint32_t ms_left = get_ms_left(operation->rest);

        guest->participant->rest.is_asked = true;
        operation_begin_part(operation);
        guest_request(guest, GATE_CLOSE, ms_left > 0 ? ms_left : 1, on_rest, operation);
}

/* Steps. */

static void ask_to_step(struct guest *guest, uint32_t timeout_ms)
{
        struct operation *operation = guest->instance->operation;

        guest->participant->rest.is_asked = true;
        guest->participant->rest.n_missed = 0;
        operation_begin_part(operation);
        guest_request_step(guest, guest->participant->rest.n_launches, STEP_MS, timeout_ms, on_rest,
                           operation);
}

static void adapt(struct rest_guest *guest, bool has_changed)
{
        if (has_changed && guest->n_launches > 1)
                guest->n_launches /= 2;
        else if (!has_changed && guest->n_made > 0 && guest->n_launches < LAUNCHES_MAX)
                guest->n_launches *= 2;
        guest->n_made = 0;
}

static void take_step(struct rest *rest, uint32_t timeout_ms)
{
        struct guest *guest;

        rest->n_steps++;
        for_each_guest(guest, rest)
        {
                if (guest->participant->rest.is_asked)
                        guest->participant->rest.n_missed++;
                else
                        adapt(&guest->participant->rest, rest->has_changed);
                if (is_at_rest(guest) && guest->participant->rest.can_step)
                        ask_to_step(guest, timeout_ms);
        }
        if ((rest->has_changed || rest->n_steps % STEPS_PER_PAUSE == 0) &&
            rest->pause_us < PAUSE_LAST_US)
                rest->pause_us *= 2;
        rest->has_changed = false;
}

static void forget_timer(struct rest *rest)
{
        rest->timer = sd_event_source_disable_unref(rest->timer);
}

/* The first to come to rest may wait for one of the group that cannot begin: its mover does not go away. */
static void fail_late(struct rest *rest, const struct operation *late)
{
        struct operation *operation = next_member(rest, NULL);

        operation_fail(operation, -ETIMEDOUT, "TimedOut", "try again",
                       "vGPU %s could not begin to close its gates within %u ms",
                       late->instance->name, operation->request.timeout_ms);
}

static int on_wait_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rest *rest = userdata;
        const struct operation *late = find_late(rest);
        struct operation *operation = next_member(rest, NULL);
        uint32_t ms_left = get_ms_left(rest);

        (void)source, (void)usec;
        forget_timer(rest);
        if (late)
                fail_late(rest, late);
        else
                operation_pass(operation, "step");
        if (operation->error)
                look(rest);
        else if (ms_left > STEP_MS)
                take_step(rest, ms_left);
        return 0;
}

/* To 1 us: an accuracy of 0 stands for 250 ms. */
static void wait_for(struct rest *rest, uint64_t us)
{
        if (!rest->timer)
                (void)sd_event_add_time_relative(rest->manager->event, &rest->timer,
                                                 CLOCK_MONOTONIC, us, 1, on_wait_over, rest);
}

/* Time-outs. */

static bool has_timed_out(const struct guest *guest)
{
        return guest->participant->rest.has_timed_out;
}

static bool has_never_rested(const struct guest *guest)
{
        return guest->participant->rest.has_timed_out && !guest->participant->rest.was_at_rest;
}

static bool has_rested(const struct guest *guest)
{
        return guest->participant->rest.was_at_rest;
}

static struct guest *find(const struct rest *rest, bool (*is_one)(const struct guest *))
{
        struct guest *guest;

        for_each_guest(guest, rest) if (is_one(guest)) return guest;
        return NULL;
}

static bool is_stopped(const struct guest *guest)
{
        return guest->participant->rest.has_timed_out && process_is_stopped(guest->pid);
}

static bool are_several(const struct rest *rest)
{
        return next_member(rest, next_member(rest, NULL)) != NULL;
}

/* The pids of all but @except for which @is_one holds, behind @before; "" for none. */
static void list_guests(const struct rest *rest, char *text, size_t size, const char *before,
                        bool (*is_one)(const struct guest *), const struct guest *except)
{
        bool is_group = are_several(rest);
        size_t at = 0, n_more = 0;
        struct guest *guest;

        text[0] = '\0';
        for_each_guest(guest, rest)
        {
                if (guest == except || !is_one(guest))
                        continue;
                if (at + LISTED_MAX + MORE_MAX > size) {
                        n_more++;
                        continue;
                }
                at += (size_t)snprintf(text + at, size - at, "%s%d", at > 0 ? ", " : before,
                                       (int)guest->pid);
                if (is_group)
                        at += (size_t)snprintf(text + at, size - at, " in %.32s",
                                               guest->instance->name);
        }
        if (n_more > 0)
                (void)snprintf(text + at, size - at, " and %zu more", n_more);
}

static size_t count_guests(const struct rest *rest)
{
        struct guest *guest;
        size_t n = 0;

        for_each_guest(guest, rest) n++;
        return n;
}

/* A kernel may wait for what another process writes to memory that they share. */
static void list_pairs(const struct rest *rest, char text[REST_PAIRS_TEXT])
{
        CLEANUP(freep) struct guest **guests = calloc(count_guests(rest), sizeof(struct guest *));
        struct guest *guest;
        size_t n = 0;

        text[0] = '\0';
        if (!guests)
                return;
        for_each_guest(guest, rest) guests[n++] = guest;
        rest_list_pairs(guests, n, text);
}

static void fail_missing(struct rest *rest, struct guest *missing)
{
        struct operation *operation = missing->instance->operation;
        bool is_group = are_several(rest);
        char others[160], waited[160], pairs[REST_PAIRS_TEXT];

        list_guests(rest, others, sizeof(others), "; neither did ", has_never_rested, missing);
        list_guests(rest, waited, sizeof(waited), "; at rest meanwhile: ", has_rested, NULL);
        list_pairs(rest, pairs);
        operation_fail(operation, -ETIMEDOUT, "TimedOut",
                       is_group ? "all run on; try again with a longer --timeout"
                                : "it runs on; try again with a longer --timeout",
                       "process %d (%.40s)%s%.63s did not come to rest within %u ms%s%.40s%s%s%s",
                       (int)missing->pid, missing->name, is_group ? " of vGPU " : "",
                       is_group ? missing->instance->name : "", operation->request.timeout_ms,
                       missing->participant->rest.call[0] ? ": it is in " : "",
                       missing->participant->rest.call, others, waited, pairs);
}

static void fail_in_turn(struct rest *rest)
{
        struct operation *operation = next_member(rest, NULL);
        char all[240], pairs[REST_PAIRS_TEXT];

        list_guests(rest, all, sizeof(all), "", has_rested, NULL);
        list_pairs(rest, pairs);
        operation_fail(operation, -ETIMEDOUT, "TimedOut",
                       "they run on; try again with a longer --timeout",
                       "processes %s wait for each other: each came to rest within %u ms, but not "
                       "all at once%s",
                       all, operation->request.timeout_ms, pairs);
}

static void fail_ended(struct rest *rest)
{
        struct operation *operation = next_member(rest, NULL);

        operation_fail(operation, -ETIMEDOUT, "TimedOut", "try again",
                       "a process of vGPU %s did not come to rest within %u ms, and has ended",
                       operation->instance->name, operation->request.timeout_ms);
}

static void fail_timed_out(struct rest *rest)
{
        struct guest *guest = find(rest, is_stopped);

        if (guest) {
                broadcast_fail_stopped(guest->instance->operation, guest);
                return;
        }
        guest = find(rest, has_never_rested);
        if (guest)
                fail_missing(rest, guest);
        else if (find(rest, has_timed_out))
                fail_in_turn(rest);
        else
                fail_ended(rest);
}

/* The end. */

static void count(const struct rest *rest, size_t *ret_asked, size_t *ret_at_rest)
{
        struct guest *guest;

        *ret_asked = *ret_at_rest = 0;
        for_each_guest(guest, rest)
        {
                *ret_asked += guest->participant->rest.is_asked;
                *ret_at_rest += is_at_rest(guest);
        }
}

static void on_opened(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        (void)answer; /* a gate that is still closed opens, or fails to, when the step is undone */
        guest->participant->rest.is_asked = false;
        look(operation->rest);
        operation_end_part(operation);
}

/* It has failed. Who is at rest runs on at once: others may wait for it, and their gates as well. */
static void open_all(struct rest *rest)
{
        struct guest *guest;

        for_each_guest(guest, rest)
        {
                if (!is_at_rest(guest) || guest->participant->rest.was_opened)
                        continue;
                guest->participant->rest.is_asked = guest->participant->rest.was_opened = true;
                operation_begin_part(guest->instance->operation);
                guest_request(guest, GATE_OPEN, BROADCAST_ANSWER_MS, on_opened,
                              guest->instance->operation);
        }
}

/* All that came to rest together go on, or give up. */
static void end(struct rest *rest)
{
        for (size_t n = rest->n_members; n > 0; n--) {
                struct operation *operation = next_member(rest, NULL);

                if (operation->error)
                        group_break(operation);
                rest_leave(operation);
                operation_end_part(operation);
        }
}

static void look_at_failure(struct rest *rest, size_t n_asked)
{
        forget_timer(rest);
        if (n_asked > 0) {
                open_all(rest);
                return;
        }
        if (!has_failed(rest))
                fail_timed_out(rest);
        end(rest);
}

static void look_at_all(struct rest *rest, size_t n_asked, size_t n_at_rest)
{
        if (n_asked == 0) {
                if (rest->n_steps > 0)
                        log_event(LOG_LEVEL_DEBUG, "at rest together",
                                  "vgpu=%s vgpus=%zu processes=%zu steps=%u",
                                  next_member(rest, NULL)->instance->name, rest->n_members,
                                  n_at_rest, rest->n_steps);
                forget_timer(rest);
                end(rest);
        } else if (n_at_rest > 0) {
                wait_for(rest, rest->pause_us);
        }
}

static void look(struct rest *rest)
{
        size_t n_asked, n_at_rest;

        if (!rest)
                return;
        count(rest, &n_asked, &n_at_rest);
        if (rest->has_timed_out || has_failed(rest))
                look_at_failure(rest, n_asked);
        else if (find_late(rest))
                wait_for(rest, get_ms_left(rest) * (uint64_t)1000);
        else
                look_at_all(rest, n_asked, n_at_rest);
}

/* The deadline. */

static const struct failure *find_failure(const struct rest *rest)
{
        const struct operation *operation = NULL;

        while ((operation = next_member(rest, operation))) {
                if (operation->error)
                        return &operation->failure;
                if (operation->standing.fate == GROUP_BROKEN)
                        return &operation->standing.broken_by;
        }
        return NULL;
}

static void answer_callers(const struct rest *rest)
{
        const struct failure *failure = find_failure(rest);
        struct operation *operation = NULL;

        while (failure && (operation = next_member(rest, operation)))
                operation_report_early(operation, failure);
}

/* Some gate says nothing: it hangs, or is slow. Its process runs on with it, when it does; all others now. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rest *rest = userdata;
        struct guest *guest;

        (void)source, (void)usec;
        rest->deadline_timer = sd_event_source_disable_unref(rest->deadline_timer);
        for_each_guest(guest, rest)
        {
                if (guest->participant->rest.is_asked && !guest->participant->rest.was_opened)
                        rest->has_timed_out = guest->participant->rest.has_timed_out = true;
        }
        if (rest->has_timed_out && !has_failed(rest))
                fail_timed_out(rest);
        answer_callers(rest);
        look(rest);
        return 0;
}

static void set_deadline(struct rest *rest, uint32_t timeout_ms)
{
        rest->deadline_ns = clock_now(CLOCK_MONOTONIC) + timeout_ms * (uint64_t)1000000;
        (void)sd_event_add_time_relative(rest->manager->event, &rest->deadline_timer,
                                         CLOCK_MONOTONIC, (timeout_ms + ANSWER_MS) * (uint64_t)1000,
                                         1000, on_deadline, rest);
}

/* Answers. */

static void note_rest(struct rest *rest, struct guest *guest, const struct guest_answer *answer)
{
        bool is_new = !guest->participant->rest.was_at_rest || answer->n_launches > 0;

        guest->participant->rest.was_at_rest = true;
        guest->participant->rest.can_step = answer->can_step;
        guest->participant->rest.n_made = answer->n_launches;
        rest->has_changed |= is_new && guest->participant->rest.n_missed > 0;
}

static void note_time_out(struct rest *rest, struct guest *guest, const struct guest_answer *answer)
{
        rest->has_timed_out = guest->participant->rest.has_timed_out = true;
        snprintf(guest->participant->rest.call, sizeof(guest->participant->rest.call), "%s",
                 answer->call);
}

static void on_rest(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;
        struct rest *rest = operation->rest;

        guest->participant->rest.is_asked = false;
        if (rest && answer->error == 0)
                note_rest(rest, guest, answer);
        if (rest && answer->error == -ETIMEDOUT)
                note_time_out(rest, guest, answer);
        else
                broadcast_note_closed(operation, guest, answer);
        look(rest);
        operation_end_part(operation);
}

/* The beginning, and the end of one operation. */

static struct rest *find_of_group(const struct operation *operation)
{
        const struct operation *other = NULL;

        while ((other = group_next(operation, other)))
                if (other->rest)
                        return other->rest;
        return NULL;
}

static struct rest *make(const struct operation *operation)
{
        struct rest *rest = calloc(1, sizeof(*rest));

        if (rest)
                *rest = (struct rest){
                        .manager = operation->instance->manager,
                        .pause_us = PAUSE_FIRST_US,
                };
        if (rest)
                set_deadline(rest, operation->request.timeout_ms);
        return rest;
}

static bool join(struct operation *operation)
{
        struct rest *rest = find_of_group(operation);

        if (!rest)
                rest = make(operation);
        if (!rest) {
                operation_fail_errno(operation, -ENOMEM, "closing the gates");
                return false;
        }
        operation->rest = rest;
        rest->n_members++;
        return true;
}

void rest_leave(struct operation *operation)
{
        struct rest *rest = operation->rest;

        operation->rest = NULL;
        if (!rest || --rest->n_members > 0)
                return;
        forget_timer(rest);
        sd_event_source_disable_unref(rest->deadline_timer);
        free(rest);
}

void rest_begin(struct operation *operation)
{
        struct guest *guest;

        if (!join(operation))
                return;
        operation_begin_part(operation); /* until all of the group are at rest */
        operation_for_each_guest(guest, operation) {
                guest->participant->rest =
                        (struct rest_guest){ .can_step = guest->participant->rest.can_step,
                                             .was_at_rest = guest->state == GATE_STATE_CLOSED,
                                             .n_launches = 1 };
                if (guest->state == GATE_STATE_OPEN)
                        ask_to_close(operation, guest);
        }
        forget_timer(operation->rest); /* the group may have waited for this one */
        look(operation->rest);
}
