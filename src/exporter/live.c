/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/live.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "exporter/scrape.h"

#define INTERVAL_SECONDS 1
#define BLOCK_SIZE       16384

/* One state, as an event; shared by those who are still sending it. */
struct event {
        unsigned int n_users;
        size_t size;
        char text[];
};

struct stream {
        struct list link;
        struct live *live;
        struct MHD_Connection *connection;
        struct event *event; /* that it sends, or NULL */
        size_t sent;
        uint64_t version; /* of the last one that it took */
        bool is_suspended;
};

struct live {
        struct scrape *scrape;
        pthread_t thread;
        bool has_thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;

        /* With the lock held. */
        struct list streams;
        unsigned int n_streams; /* those that are about to begin too */
        struct event *event;    /* the newest */
        uint64_t version;
        bool must_end;
};

DEFINE_CLEANUP(struct live *, live_free);

/* Events. */

static struct event *event_new(const char *state)
{
        static const char frame[] = "data: %s\n\n";
        size_t room = strlen(state) + sizeof(frame);
        struct event *event = state ? malloc(sizeof(*event) + room) : NULL;

        if (!event)
                return NULL;
        event->n_users = 1;
        event->size = (size_t)snprintf(event->text, room, frame, state);
        return event;
}

static struct event *event_unref(struct event *event)
{
        if (event && --event->n_users == 0)
                free(event);
        return NULL;
}

static struct event *take_state(struct live *live, bool has_history)
{
        CLEANUP(freep) char *state = scrape_take_state(live->scrape, has_history);

        return state ? event_new(state) : NULL;
}

/* The thread. */

/* With the lock held. */
static void wake_all(struct live *live)
{
        struct stream *stream;

        list_for_each(stream, &live->streams, link) {
                if (!stream->is_suspended)
                        continue;
                stream->is_suspended = false;
                MHD_resume_connection(stream->connection);
        }
}

/* With the lock held, but not while vgpud is asked. */
static void tell_all(struct live *live)
{
        struct event *event;

        (void)pthread_mutex_unlock(&live->lock);
        event = take_state(live, false);
        (void)pthread_mutex_lock(&live->lock);
        if (!event)
                return;
        (void)event_unref(live->event);
        live->event = event;
        live->version++;
        wake_all(live);
}

static void pause_a_second(struct live *live)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += INTERVAL_SECONDS;
        while (!live->must_end &&
               pthread_cond_timedwait(&live->changed, &live->lock, &until) != ETIMEDOUT)
                ;
}

static void *run_live(void *userdata)
{
        struct live *live = userdata;

        (void)pthread_mutex_lock(&live->lock);
        while (!live->must_end) {
                if (live->n_streams == 0) {
                        (void)pthread_cond_wait(&live->changed, &live->lock);
                        continue;
                }
                pause_a_second(live);
                if (!live->must_end)
                        tell_all(live);
        }
        (void)pthread_mutex_unlock(&live->lock);
        return NULL;
}

/* Streams, in the server's thread. */

/* With the lock held: is there something to send? */
static bool take_event(struct stream *stream)
{
        struct live *live = stream->live;

        if (stream->event && stream->sent < stream->event->size)
                return true;
        if (stream->version == live->version || !live->event)
                return false;
        (void)event_unref(stream->event);
        stream->event = live->event;
        stream->event->n_users++;
        stream->version = live->version;
        stream->sent = 0;
        return true;
}

static ssize_t read_stream(void *userdata, uint64_t position, char *to, size_t room)
{
        struct stream *stream = userdata;
        struct live *live = stream->live;
        ssize_t n = 0;

        (void)position;
        (void)pthread_mutex_lock(&live->lock);
        if (live->must_end) {
                n = MHD_CONTENT_READER_END_OF_STREAM;
        } else if (take_event(stream)) {
                size_t left = stream->event->size - stream->sent;

                n = (ssize_t)(left < room ? left : room);
                memcpy(to, stream->event->text + stream->sent, (size_t)n);
                stream->sent += (size_t)n;
        } else {
                stream->is_suspended = true;
                MHD_suspend_connection(stream->connection);
        }
        (void)pthread_mutex_unlock(&live->lock);
        return n;
}

static void free_stream(void *userdata)
{
        struct stream *stream = userdata;
        struct live *live = stream->live;

        (void)pthread_mutex_lock(&live->lock);
        list_remove(&stream->link);
        live->n_streams--;
        (void)event_unref(stream->event);
        (void)pthread_mutex_unlock(&live->lock);
        free(stream);
}

/* The place is taken before vgpud is asked: who is turned away costs vgpud nothing. */
static bool take_place(struct live *live)
{
        bool has_place;

        (void)pthread_mutex_lock(&live->lock);
        has_place = live->n_streams < LIVE_STREAMS_MAX && !live->must_end;
        live->n_streams += has_place;
        (void)pthread_mutex_unlock(&live->lock);
        return has_place;
}

static void leave_place(struct live *live)
{
        (void)pthread_mutex_lock(&live->lock);
        live->n_streams--;
        (void)pthread_mutex_unlock(&live->lock);
}

/* It begins with a state of its own, which has the last minutes. NULL: too many look, or no memory. */
static struct stream *add_stream(struct live *live, struct MHD_Connection *connection)
{
        struct stream *stream;
        struct event *first;

        if (!take_place(live))
                return NULL;
        first = take_state(live, true);
        stream = calloc(1, sizeof(*stream));
        if (!first || !stream) {
                (void)event_unref(first);
                free(stream);
                leave_place(live);
                return NULL;
        }
        (void)pthread_mutex_lock(&live->lock);
        *stream = (struct stream){
                .live = live, .connection = connection, .event = first, .version = live->version
        };
        list_append(&live->streams, &stream->link);
        (void)pthread_cond_broadcast(&live->changed);
        (void)pthread_mutex_unlock(&live->lock);
        return stream;
}

int live_serve(struct live *live, struct MHD_Connection *connection)
{
        struct stream *stream = add_stream(live, connection);
        struct MHD_Response *response;
        enum MHD_Result result;

        if (!stream)
                return 1;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_stream,
                                                     stream, free_stream);
        if (!response) {
                free_stream(stream);
                return 1;
        }
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        result = MHD_queue_response(connection, MHD_HTTP_OK, response);
        MHD_destroy_response(response);
        return result == MHD_YES ? 0 : -EIO;
}

/* Life. */

int live_new(struct live **ret_live, struct scrape *scrape)
{
        CLEANUP(live_freep) struct live *live = calloc(1, sizeof(*live));
        pthread_condattr_t attributes;
        int r;

        if (!live)
                return -ENOMEM;
        live->scrape = scrape;
        list_init(&live->streams);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&live->changed, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        (void)pthread_mutex_init(&live->lock, NULL);
        r = -pthread_create(&live->thread, NULL, run_live, live);
        live->has_thread = r == 0;
        if (r < 0)
                return r;
        *ret_live = TAKE(live);
        return 0;
}

void live_end(struct live *live)
{
        if (!live->has_thread)
                return;
        (void)pthread_mutex_lock(&live->lock);
        live->must_end = true;
        wake_all(live);
        (void)pthread_cond_broadcast(&live->changed);
        (void)pthread_mutex_unlock(&live->lock);
        (void)pthread_join(live->thread, NULL);
        live->has_thread = false;
}

struct live *live_free(struct live *live)
{
        if (!live)
                return NULL;
        live_end(live);
        (void)event_unref(live->event);
        (void)pthread_cond_destroy(&live->changed);
        (void)pthread_mutex_destroy(&live->lock);
        free(live);
        return NULL;
}
