/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation says, of its progress, its failure and its end, to the caller and to the log. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openvgpu/operation.h>

#include "base/clock.h"
#include "base/text.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/control/control.h"
#include "manager/control/describe.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/place-text.h"
#include "manager/model/silence.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "record/records.h"

#define PROGRESS_INTERVAL_NS 50000000

#define DRIVER_OUT_OF_MEMORY 2

/* Failing. */

static void note_failure(struct operation *operation, int error)
{
        if (operation->error == 0)
                operation->error = error;
        if (operation->is_undoing && error == -ENOSPC)
                operation->has_lacked_room = true;
}

void operation_fail(struct operation *operation, int error, const char *name, const char *hint,
                    const char *message, ...)
{
        char text[512];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        note_failure(operation, error);
        (void)failure_set(&operation->failure, error, name, hint, "%s", text);
}

void operation_fail_errno(struct operation *operation, int error, const char *what)
{
        note_failure(operation, error);
        (void)failure_from_errno(&operation->failure, error, what);
}

void operation_fail_silent(struct operation *operation, const struct guest *guest)
{
        note_failure(operation, silence_refuse(guest, &operation->failure));
}

void operation_fail_store(struct operation *operation, int error, const char *what)
{
        operation->has_failed_store = true;
        operation_fail(operation, error, "Failed", OPERATION_STORE_HINT,
                       "%s: the state database takes no writes (%s)", what, strerror(-error));
}

bool operation_is_spoiled(const char *call, int code)
{
        return strcmp(call, "cuCheckpointProcessCheckpoint") == 0 && code == DRIVER_OUT_OF_MEMORY;
}

static const char *hint_after(const struct operation *operation, const char *call, int code)
{
        if (operation->is_undoing)
                return "";
        return operation_is_spoiled(call, code)
                       ? "the vGPU and the process continue as before; a process for whose checkpoint "
                         "the GPU had no memory left is never checkpointed again"
                       : "the vGPU and the process continue as before";
}

void operation_fail_driver(struct operation *operation, struct guest *guest, const char *call,
                           int code, int error)
{
        bool is_first = !operation->failure.name;

        operation_fail(operation, error, "DriverFailed", hint_after(operation, call, code),
                       "process %d (%.40s): %.63s failed with %d", (int)guest->pid, guest->name,
                       *call ? call : "the driver", code ? code : error);
        if (!is_first)
                return;
        snprintf(operation->failure.call, sizeof(operation->failure.call), "%.63s", call);
        operation->failure.code = code;
        operation->failure.process = guest->pid;
}

void operation_lost_mover(struct operation *operation, const struct device *device)
{
        operation->has_lost_peer = true;
        operation_fail(operation, -ECONNRESET, "Failed", "the log of vgpud has more",
                       "the mover of device %u died", device->index);
}

void operation_lost_gate(struct operation *operation)
{
        operation->has_lost_peer = true;
}

/* Telling. */

static const char *stage_of(const struct operation *operation)
{
        size_t step = operation->step < operation->kind->n_steps ? operation->step
                                                                 : operation->kind->n_steps - 1;

        return operation->is_undoing ? "finishing" : operation->kind->steps[step].stage;
}

void operation_report_progress(struct operation *operation)
{
        const struct vgpu_operation_progress progress = {
                .stage = stage_of(operation),
                .bytes_done = operation->measured.bytes_done,
                .bytes_total = operation->measured.bytes,
        };

        operation->measured.progress_ns = clock_now(CLOCK_MONOTONIC);
        if (operation->request.pending)
                control_progress(operation->request.pending,
                                 record_make(&record_progress, &progress));
}

void operation_add_progress(struct operation *operation, uint64_t bytes)
{
        operation->measured.bytes_done += bytes;
        if (operation->measured.bytes_done > operation->measured.bytes)
                operation->measured.bytes_done = operation->measured.bytes;
        if (clock_now(CLOCK_MONOTONIC) - operation->measured.progress_ns >= PROGRESS_INTERVAL_NS)
                operation_report_progress(operation);
}

/* Those of a suspend stand still from then on, until they are resumed. */
static uint64_t get_stopped_ns(const struct operation *operation)
{
        if (operation->measured.closing_ns == 0)
                return 0;
        return clock_now(CLOCK_MONOTONIC) - operation->measured.closing_ns;
}

/* Those with a name; of many, how many more. */
#define LEFT_BEHIND_NAMED 2

static void describe_one_behind(char text[OPERATION_LEFT_BEHIND_MAX], const struct guest *guest)
{
        size_t at = strlen(text);
        int pid = (int)guest->pid;
        enum process_halt halt = process_get_halt(guest->pid);
        char name[PROCESS_NAME_MAX];

        text_clean(name, sizeof(name), guest->name);
        at += (size_t)snprintf(text + at, OPERATION_LEFT_BEHIND_MAX - at, "%sprocess %d (%.40s) ",
                               at > 0 ? "; " : "", pid, name);
        if (halt == PROCESS_STOPPED)
                snprintf(text + at, OPERATION_LEFT_BEHIND_MAX - at,
                         "is stopped and follows after kill -CONT %d", pid);
        else if (halt == PROCESS_FROZEN)
                snprintf(text + at, OPERATION_LEFT_BEHIND_MAX - at,
                         "is frozen (its container is paused) and follows once it is thawed");
        else
                snprintf(text + at, OPERATION_LEFT_BEHIND_MAX - at,
                         "hung and follows once it answers");
}

char *operation_describe_left_behind(const struct operation *operation,
                                     char text[OPERATION_LEFT_BEHIND_MAX])
{
        const struct guest *guest;
        size_t n = 0, at;

        text[0] = '\0';
        if (!operation->kind->may_leave_behind)
                return text;
        list_for_each(guest, &operation->instance->guests, link)
                if (!guest_is_dead(guest) && guest->presence == GUEST_ABSENT &&
                    n++ < LEFT_BEHIND_NAMED)
                        describe_one_behind(text, guest);
        at = strlen(text);
        if (n > LEFT_BEHIND_NAMED)
                snprintf(text + at, OPERATION_LEFT_BEHIND_MAX - at, "; %zu more",
                         n - LEFT_BEHIND_NAMED);
        return text;
}

static json_t *make_report(const struct operation *operation)
{
        char left_behind[OPERATION_LEFT_BEHIND_MAX] = "";
        uint64_t drain = operation->measured.drained_ns
                                 ? operation->measured.drained_ns - operation->measured.started_ns
                                 : 0;
        const struct vgpu_operation_report record = {
                .bytes = operation->measured.bytes,
                .seconds =
                        (double)(clock_now(CLOCK_MONOTONIC) - operation->measured.started_ns) / 1e9,
                .copy_seconds = (double)operation->measured.copy_ns / 1e9,
                .context_seconds = (double)operation->measured.context_ns / 1e9,
                .drain_seconds = (double)drain / 1e9,
                .pool_seconds = (double)operation->measured.pool_ns / 1e9,
                .n_processes = (uint32_t)(operation->n_processes - operation->n_left_behind),
                .from_device = operation->source.device[0]->index,
                .to_device = operation->target.device[0]->index,
                .lost = operation->lost,
                .had_left = operation->had_left,
                .bytes_unchanged = operation->measured.bytes_unchanged,
                .fetch_seconds = (double)operation->measured.fetch_ns / 1e9,
                .stopped_seconds = (double)get_stopped_ns(operation) / 1e9,
                .pre_copy_seconds = (double)operation->ahead.ns / 1e9,
                .pre_copy_bytes = operation->ahead.bytes,
                .left_behind = operation->had_left
                                       ? ""
                                       : operation_describe_left_behind(operation, left_behind),
        };
        json_t *report = record_make(&record_report, &record);

        json_object_set_new(report, "vgpu", describe_instance(operation->instance));
        return report;
}

json_t *operation_report_left(struct instance *instance)
{
        const struct operation nothing = {
                .instance = instance,
                .source = instance_place(instance),
                .target = instance_place(instance),
                .measured.started_ns = clock_now(CLOCK_MONOTONIC),
                .n_processes = guests_count(instance),
                .had_left = true,
        };

        return make_report(&nothing);
}

static void log_end(const struct operation *operation, bool has_succeeded)
{
        const struct instance *instance = operation->instance;
        char quoted[LOG_QUOTED_MAX], from[PLACE_TEXT_MAX], to[PLACE_TEXT_MAX];

        if (has_succeeded)
                log_event_of(instance->owner, LOG_LEVEL_NOTICE, operation->kind->past,
                             "vgpu=%s bytes=%" PRIu64 " unchanged=%" PRIu64
                             " seconds=%.3f copy=%.3f context=%.3f "
                             "pool=%.3f fetch=%.3f processes=%zu from=%s to=%s",
                             instance->name, operation->measured.bytes,
                             operation->measured.bytes_unchanged,
                             (double)(clock_now(CLOCK_MONOTONIC) - operation->measured.started_ns) /
                                     1e9,
                             (double)operation->measured.copy_ns / 1e9,
                             (double)operation->measured.context_ns / 1e9,
                             (double)operation->measured.pool_ns / 1e9,
                             (double)operation->measured.fetch_ns / 1e9,
                             operation->n_processes - operation->n_left_behind,
                             place_describe(&operation->source, from),
                             place_describe(&operation->target, to));
        else if (operation->is_recovery && !operation->has_failed_undo)
                log_event(LOG_LEVEL_NOTICE, "undid an incomplete operation",
                          "vgpu=%s operation=%s state=%s", instance->name, operation->kind->name,
                          instance_state_name(instance->state));
        else
                log_event_of(operation->has_failed_undo ? 0 : instance->owner,
                             operation->has_failed_undo ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                             operation->has_failed_undo ? "could not be undone" : "undone",
                             "vgpu=%s operation=%s step=%s reason=%s", instance->name,
                             operation->kind->name, operation->kind->steps[operation->step].name,
                             log_quote(quoted, operation->failure.message));
}

/* In the one that could not be, too, it took place. */
static struct tally_ahead get_ahead(const struct operation *operation)
{
        if (operation->ahead.n_rounds == 0)
                return (struct tally_ahead){ 0 };
        return (struct tally_ahead){
                .n = 1,
                .n_rounds = operation->ahead.n_rounds,
                .bytes = operation->ahead.bytes,
                .ns = operation->ahead.ns,
                .stopped_ns = get_stopped_ns(operation),
        };
}

static void count_end(const struct operation *operation, bool has_succeeded)
{
        enum tally_result result = has_succeeded                ? TALLY_DONE
                                   : operation->has_failed_undo ? TALLY_FAILED
                                                                : TALLY_UNDONE;

        const struct tally_end end = {
                .kind = operation->kind->name,
                .result = result,
                .vgpu = operation->instance->name,
                .ns = clock_now(CLOCK_MONOTONIC) - operation->measured.started_ns,
                .bytes = has_succeeded ? operation->measured.bytes : 0,
                .at_ns = clock_now(CLOCK_REALTIME),
                .ahead = get_ahead(operation),
        };

        tally_add(&operation->instance->manager->tally, &end);
}

void operation_report_early(struct operation *operation, const struct failure *failure)
{
        if (operation->request.pending)
                control_fail(operation->request.pending, failure);
        operation->request.pending = NULL;
}

void operation_report_end(struct operation *operation, bool has_succeeded)
{
        log_end(operation, has_succeeded);
        count_end(operation, has_succeeded);
        observer_tell_operation(&operation->instance->manager->observers, operation, has_succeeded);
        if (!operation->request.pending)
                return;
        if (has_succeeded)
                control_reply(operation->request.pending, make_report(operation));
        else
                control_fail(operation->request.pending, &operation->failure);
        operation->request.pending = NULL;
}

void operation_report_moment(const struct operation *operation, const char *moment)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        log_event(LOG_LEVEL_DEBUG, moment, "vgpu=%s after_ms=%.1f at_ms=%.1f",
                  operation->instance->name, (double)(now - operation->measured.started_ns) / 1e6,
                  (double)now / 1e6);
}

void operation_report_part(const struct operation *operation, const char *moment, size_t first,
                           size_t n, size_t n_beside)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        log_event(LOG_LEVEL_DEBUG, moment,
                  "vgpu=%s first=%zu n=%zu beside=%zu after_ms=%.1f at_ms=%.1f",
                  operation->instance->name, first, n, n_beside,
                  (double)(now - operation->measured.started_ns) / 1e6, (double)now / 1e6);
}
