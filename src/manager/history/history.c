/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/history/history.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/size.h"
#include "base/text.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/place-text.h"
#include "manager/operation/operation.h"

/* Many processes may end in one turn. More events than this wait for a full disk in vain. */
#define WAITING_MAX 4096

struct history {
        struct manager *manager;
        sd_event_source *write;
        struct store_event *waiting;
        size_t n_waiting, room;
};

/* Noting. */

static struct store_event *make_slot(struct history *history)
{
        size_t room = history->room ? 2 * history->room : 16;
        struct store_event *waiting;

        if (history->n_waiting < history->room)
                return &history->waiting[history->n_waiting];
        if (history->room >= WAITING_MAX)
                return NULL;
        waiting = reallocarray(history->waiting, room, sizeof(*waiting));
        if (!waiting)
                return NULL;
        history->waiting = waiting;
        history->room = room;
        return &waiting[history->n_waiting];
}

/* The caller fills in the rest; an event that there is no room for goes to @spare. */
__attribute__((format(printf, 5, 6))) static struct store_event *
note(struct history *history, const struct instance *instance, const char *word,
     struct store_event *spare, const char *text, ...)
{
        struct store_event *event = make_slot(history);
        const struct place place = instance_place(instance);
        char devices[PLACE_TEXT_MAX];
        va_list args;

        if (event)
                history->n_waiting++;
        else
                event = spare;
        *event = (struct store_event){
                .time_ms = clock_now(CLOCK_REALTIME) / 1000000,
                .owner = instance->owner,
                .device = instance_home(instance)->index,
        };
        if (instance->n_parts > 1)
                (void)snprintf(event->devices, sizeof(event->devices), "%s",
                               place_describe(&place, devices));
        (void)snprintf(event->uuid, sizeof(event->uuid), "%s", instance->uuid);
        (void)snprintf(event->name, sizeof(event->name), "%s", instance->name);
        (void)snprintf(event->word, sizeof(event->word), "%s", word);
        va_start(args, text);
        (void)vsnprintf(event->text, sizeof(event->text), text, args);
        va_end(args);
        (void)sd_event_source_set_enabled(history->write, SD_EVENT_ONESHOT);
        return event;
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        const bool has_several = instance->n_parts > 1;
        struct store_event spare;
        const struct place place = instance_place(instance);
        char size[SIZE_TEXT_MAX], devices[PLACE_TEXT_MAX];

        if (event == INSTANCE_ADDED)
                note(userdata, instance, "created", &spare, "created: %s on %s %s",
                     size_format(size, instance->frame_buffer),
                     has_several ? "each of GPUs" : "GPU", place_describe(&place, devices))
                        ->bytes = instance->frame_buffer;
        else if (event == INSTANCE_LOADED && instance->gone[0])
                note(userdata, instance, "gpu-gone", &spare,
                     "vgpud began on GPU%s %s: %s is not there", has_several ? "s" : "",
                     place_describe(&place, devices), instance->gone);
        else if (event == INSTANCE_LOADED && instance->state != STATE_IDLE)
                note(userdata, instance, "vgpud-began", &spare,
                     "vgpud began again; programs that ended meanwhile have no event");
        else if (event == INSTANCE_RENAMED)
                note(userdata, instance, "renamed", &spare, "renamed: it is %s from now on",
                     instance->name);
        else if (event == INSTANCE_RESIZED)
                note(userdata, instance, "resized", &spare, "resized: %s%s from now on",
                     size_format(size, instance->frame_buffer),
                     has_several ? " on each of its GPUs" : "")
                        ->bytes = instance->frame_buffer;
        else if (event == INSTANCE_SHARE_SET)
                note(userdata, instance, "share", &spare,
                     "share: %u percent of the GPU's time are promised from now on",
                     instance->share);
        else if (event == INSTANCE_OUTSIDE)
                note(userdata, instance, "outside", &spare, "%s", instance->outside);
        else if (event == INSTANCE_REMOVED)
                note(userdata, instance, "removed", &spare, "removed");
}

static void note_over_quota(struct history *history, const struct guest *guest)
{
        const struct instance *instance = guest->instance;
        char name[PROCESS_NAME_MAX], quota[SIZE_TEXT_MAX], times[48] = "";
        struct store_event spare, *event;

        if (guest->n_refused_told > 1)
                (void)snprintf(times, sizeof(times), ", %llu times so far",
                               (unsigned long long)guest->n_refused_told);
        event = note(history, instance, "out-of-memory", &spare,
                     "process %d (%s) asked for more than the quota of %s%s: it was refused%s",
                     (int)guest->pid, text_clean(name, sizeof(name), guest->name),
                     size_format(quota, instance->frame_buffer),
                     instance->n_parts > 1 ? " on each GPU" : "", times);
        event->pid = guest->pid;
        event->bytes = instance->frame_buffer;
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        const char *what = event == GUEST_JOINED     ? "began"
                           : guest->let_go_reason[0] ? "was let go: "
                                                     : "ended";
        struct store_event spare;
        char name[PROCESS_NAME_MAX], reason[sizeof(guest->let_go_reason)];

        if (event == GUEST_REFUSED)
                note(userdata, guest->instance, "refused", &spare,
                     "process %d (%s) got no memory of another process: %s", (int)guest->pid,
                     text_clean(name, sizeof(name), guest->name), guest->share.refusal)
                        ->pid = guest->pid;
        if (event == GUEST_OVER_QUOTA)
                note_over_quota(userdata, guest);
        if (event != GUEST_JOINED && event != GUEST_LEFT)
                return;
        note(userdata, guest->instance, event == GUEST_JOINED ? "process-began" : "process-ended",
             &spare, "process %d (%s) %s%s", (int)guest->pid,
             text_clean(name, sizeof(name), guest->name), what,
             text_clean(reason, sizeof(reason), guest->let_go_reason))
                ->pid = guest->pid;
}

static const char *plural(const struct operation *operation)
{
        return operation->instance->n_parts > 1 ? "s" : "";
}

/* "from GPU 0", "to GPU 1", "from GPUs 0,1 to GPUs 2,3" */
static const char *describe_way(char *text, size_t size, const struct operation *operation)
{
        bool is_suspend = operation->kind->number == OPERATION_SUSPEND;
        char place[PLACE_TEXT_MAX];

        *text = '\0';
        if (is_suspend || operation->kind->number == OPERATION_MIGRATE)
                (void)snprintf(text, size, "from GPU%s %s%s", plural(operation),
                               place_describe(&operation->source, place), is_suspend ? "" : " ");
        if (!is_suspend)
                (void)snprintf(text + strlen(text), size - strlen(text), "to GPU%s %s",
                               plural(operation), place_describe(&operation->target, place));
        return text;
}

/* ", asked for by user 1000", where that is not the owner. */
static const char *describe_asker(char *text, size_t size, const struct operation *operation)
{
        *text = '\0';
        if (operation->asker != operation->instance->owner)
                (void)snprintf(text, size, ", asked for by user %u", operation->asker);
        return text;
}

static void note_success(struct history *history, const struct operation *operation)
{
        uint64_t duration_ms =
                (clock_now(CLOCK_MONOTONIC) - operation->measured.started_ns) / 1000000;
        char way[2 * PLACE_TEXT_MAX + 24], size[SIZE_TEXT_MAX], asker[48];
        char left_behind[OPERATION_LEFT_BEHIND_MAX];
        struct store_event spare, *event;

        operation_describe_left_behind(operation, left_behind);
        event = note(history, operation->instance, operation->kind->past, &spare,
                     "%s%s%s: %s %s in %.2f s%s%s%s", operation->kind->past,
                     operation->request.is_by_itself ? " by itself" : "",
                     operation->request.keep_context ? ", its context stays" : "",
                     size_format(size, operation->measured.bytes),
                     describe_way(way, sizeof(way), operation), (double)duration_ms / 1e3,
                     describe_asker(asker, sizeof(asker), operation), *left_behind ? "; " : "",
                     left_behind);
        event->bytes = operation->measured.bytes;
        event->duration_ms = duration_ms;
        event->copy_ms = operation->measured.copy_ns / 1000000;
        event->context_ms = operation->measured.context_ns / 1000000;
        if (operation->measured.drained_ns > operation->measured.started_ns)
                event->drain_ms =
                        (operation->measured.drained_ns - operation->measured.started_ns) / 1000000;
}

static void on_operation(const struct operation *operation, bool has_succeeded, void *userdata)
{
        const char *end = operation->has_failed_undo ? "and could not be undone" : "and was undone";
        struct store_event spare;
        char asker[48];

        if (has_succeeded)
                note_success(userdata, operation);
        else if (operation->is_recovery && !operation->has_failed_undo)
                note(userdata, operation->instance, "undone", &spare,
                     "%s undone: vgpud had ended in the middle of it", operation->kind->name);
        else
                note(userdata, operation->instance,
                     operation->has_failed_undo ? "failed" : "undone", &spare, "%s failed %s: %s%s",
                     operation->kind->name, end, operation->failure.message,
                     describe_asker(asker, sizeof(asker), operation));
}

static struct observer observer = { .of_instance = on_instance,
                                    .of_guest = on_guest,
                                    .of_operation = on_operation };

/* Writing and reading. */

static void flush(struct history *history)
{
        if (history->n_waiting > 0 &&
            store_add_events(history->manager->store, history->waiting, history->n_waiting) == 0)
                history->n_waiting = 0;
}

static int on_write(sd_event_source *source, void *userdata)
{
        struct history *history = userdata;

        (void)source;
        if (history->n_waiting > 0)
                (void)fault_point("history.write"); /* to kill */
        flush(history);
        return 0;
}

void history_write(struct manager *manager)
{
        if (manager->history)
                flush(manager->history);
}

int history_find(struct history *history, const char *name, int64_t owner,
                 char ret_uuid[STORE_UUID_MAX], struct failure *failure)
{
        struct failure missing = { 0 };
        struct instance *instance = instance_find(history->manager, name, &missing);
        int r;

        if (instance && (owner == STORE_ANY_OWNER || (int64_t)instance->owner == owner)) {
                (void)snprintf(ret_uuid, STORE_UUID_MAX, "%s", instance->uuid);
                return 0;
        }
        flush(history);
        r = store_find_event_vgpu(history->manager->store, name, owner, ret_uuid);
        if (r != -ENOENT)
                return r;
        if (instance)
                return instance_check_owner(instance, (uid_t)owner, failure);
        *failure = missing;
        return -ENOENT;
}

int history_each(struct history *history, const struct store_event_query *query,
                 store_event_fn each, void *userdata)
{
        flush(history);
        return store_each_event(history->manager->store, query, each, userdata);
}

/* Birth and death. */

int history_new(struct history **ret_history, struct manager *manager)
{
        struct history *history = calloc(1, sizeof(*history));
        int r;

        if (!history)
                return -ENOMEM;
        history->manager = manager;
        r = sd_event_add_defer(manager->event, &history->write, on_write, history);
        if (r >= 0)
                r = sd_event_source_set_enabled(history->write, SD_EVENT_OFF);
        if (r < 0) {
                sd_event_source_disable_unref(history->write);
                free(history);
                return r;
        }
        observer_add(&manager->observers, &observer, history);
        *ret_history = history;
        return 0;
}

struct history *history_free(struct history *history)
{
        if (!history)
                return NULL;
        flush(history);
        observer_remove(&history->manager->observers, &observer);
        sd_event_source_disable_unref(history->write);
        free(history->waiting);
        free(history);
        return NULL;
}
