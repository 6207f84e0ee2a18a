/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-history.h"

#include <stdio.h>

#include <openvgpu/event.h>

#include "manager/history/history.h"
#include "manager/model/account.h"
#include "manager/model/manager.h"
#include "record/records.h"
#include "record/writer.h"

/* A client asks again for what comes after these. */
#define PAGE_MAX 512

struct listing {
        struct writer writer;
        size_t n;
};

static int write_event(const struct store_event *event, void *userdata)
{
        struct listing *listing = userdata;
        struct writer *writer = &listing->writer;
        struct vgpu_event record;
        char device[16];

        if (listing->n++ == PAGE_MAX)
                return 0;
        snprintf(device, sizeof(device), "%u", event->device);
        record = (struct vgpu_event){
                .id = event->id,
                .time = (double)event->time_ms / 1e3,
                .vgpu = event->name,
                .vgpu_uuid = event->uuid,
                .owner = event->owner,
                .event = event->word,
                .device = event->device,
                .pid = event->pid,
                .bytes = event->bytes,
                .seconds = (double)event->duration_ms / 1e3,
                .message = event->text,
                .drain_seconds = (double)event->drain_ms / 1e3,
                .copy_seconds = (double)event->copy_ms / 1e3,
                .context_seconds = (double)event->context_ms / 1e3,
                .devices = event->devices[0] ? event->devices : device,
        };
        writer_begin_object(writer, NULL);
        record_write(&record_event, &record, writer);
        writer_end_object(writer);
        return 0;
}

static int list_events(struct control_pending *pending, struct failure *failure)
{
        struct history *history = pending->manager->history;
        const char *name = control_call_text(&pending->call, "name");
        char uuid[STORE_UUID_MAX];
        struct store_event_query query = {
                .uuid = name ? uuid : NULL,
                .owner = pending->sees_all ? STORE_ANY_OWNER : (int64_t)pending->uid,
                .after = control_call_size(&pending->call, "after"),
                .since_ms = (uint64_t)(control_call_seconds(&pending->call, "since", 0) * 1e3),
                .limit = PAGE_MAX + 1,
        };
        struct listing listing = { .n = 0 };
        int r = name ? history_find(history, name, query.owner, uuid, failure) : 0;

        if (r < 0)
                return r;
        writer_begin_object(&listing.writer, NULL);
        writer_begin_object(&listing.writer, "parameters");
        writer_begin_array(&listing.writer, "events");
        r = history_each(history, &query, write_event, &listing);
        if (r < 0) {
                free(writer_take(&listing.writer));
                return r;
        }
        writer_end_array(&listing.writer);
        writer_boolean(&listing.writer, "more", listing.n > PAGE_MAX);
        writer_end_object(&listing.writer);
        writer_end_object(&listing.writer);
        control_reply_text(pending, &listing.writer);
        return 0;
}

static const struct control_parameter list_parameters[] = {
        { "name", CONTROL_TEXT, false },
        { "after", CONTROL_SIZE, false },
        { "since", CONTROL_TIME, false },
        { 0 },
};

const struct control_method methods_history[] = {
        { "ListEvents", CONTROL_ANYBODY, list_events, list_parameters },
};
const size_t n_methods_history = sizeof(methods_history) / sizeof(methods_history[0]);
