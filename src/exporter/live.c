/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/live.h"

#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "exporter/peer.h"
#include "exporter/scrape.h"

#define BLOCK_SIZE 16384

/* For the kernel to keep of a stream, so that one that nobody reads soon stops. */
#define SEND_BUFFER_SIZE 65536

/* One of the server-sent events; shared by those who are still sending it. */
struct event {
        unsigned int n_users;
        size_t size;
        char text[];
};

struct stream {
        struct list link;
        struct live *live;
        struct MHD_Connection *connection;
        int fd;              /* the connection's */
        uint64_t peer;       /* whose it is */
        int queued;          /* bytes that the kernel had of it when that was looked at last */
        uint64_t waits_ns;   /* since when these have not become less; 0: they have */
        struct event *event; /* that it sends, or NULL */
        size_t sent;
        uint64_t state, change; /* numbers of those that it took last */
        bool is_suspended;
        bool is_leaving; /* its place is another one's */
};

struct live {
        struct scrape *scrape;
        unsigned int rate; /* updates a second */
        pthread_t thread;
        bool has_thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;

        /* With the lock held. */
        struct list streams;
        unsigned int n_streams; /* those that are about to begin too, without those that leave */
        struct event *state;    /* NULL: nobody has looked before */
        struct event *change;   /* since that state; NULL: none */
        uint64_t n_states, n_changes;
        bool must_end;
};

DEFINE_CLEANUP(struct live *, live_free);

/* Events. */

/* @json is freed. @kind: "" is a state. */
static struct event *event_new(const char *kind, char *json)
{
        static const char frame[] = "%s%s%sdata: %s\n\n";
        const char *before = *kind ? "event: " : "", *after = *kind ? "\n" : "";
        size_t room = json ? strlen(kind) + strlen(json) + sizeof("event: ") + sizeof(frame) : 0;
        struct event *event = json ? malloc(sizeof(*event) + room) : NULL;

        if (event) {
                event->n_users = 1;
                event->size = (size_t)snprintf(event->text, room, frame, before, kind, after, json);
        }
        free(json);
        return event;
}

static struct event *event_unref(struct event *event)
{
        if (event && --event->n_users == 0)
                free(event);
        return NULL;
}

/* The thread. */

/* With the lock held. */
static void wake(struct stream *stream)
{
        if (!stream->is_suspended)
                return;
        stream->is_suspended = false;
        MHD_resume_connection(stream->connection);
}

/* With the lock held. */
static void wake_all(struct live *live)
{
        struct stream *stream;

        list_for_each(stream, &live->streams, link)
                wake(stream);
}

/* With the lock held. A change is worth nothing without its state. */
static void publish(struct live *live, struct event *state, struct event *change)
{
        if (state) {
                (void)event_unref(live->state);
                live->state = state;
                live->n_states++;
        }
        (void)event_unref(live->change);
        live->change = change;
        live->n_changes++;
        wake_all(live);
}

/* With the lock held, but not while vgpud is asked. */
static void tell_all(struct live *live)
{
        bool is_first = !live->state;
        struct event *state, *change;
        struct scrape_news news;

        (void)pthread_mutex_unlock(&live->lock);
        scrape_take_news(live->scrape, is_first, &news);
        state = event_new("", news.state);
        change = event_new("change", news.change);
        (void)pthread_mutex_lock(&live->lock);
        if (is_first && !state)
                change = event_unref(change); /* no memory: the next one begins anew */
        else
                publish(live, state, change);
}

/* With the lock held: what was told is too old for who looks next. */
static void forget(struct live *live)
{
        live->state = event_unref(live->state);
        live->change = event_unref(live->change);
}

static void pause_between(struct live *live)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(NS_PER_S / live->rate);
        until.tv_sec += until.tv_nsec / (long)NS_PER_S;
        until.tv_nsec %= (long)NS_PER_S;
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
                        forget(live);
                        (void)pthread_cond_wait(&live->changed, &live->lock);
                        continue;
                }
                tell_all(live);
                pause_between(live);
        }
        (void)pthread_mutex_unlock(&live->lock);
        return NULL;
}

/* Streams, in the server's thread. */

static void send_next(struct stream *stream, struct event *event)
{
        (void)event_unref(stream->event);
        stream->event = event;
        event->n_users++;
        stream->sent = 0;
}

/* With the lock held: is there something to send? A state comes before what has changed since. */
static bool take_event(struct stream *stream)
{
        const struct live *live = stream->live;

        if (stream->event && stream->sent < stream->event->size)
                return true;
        if (!live->state)
                return false;
        if (stream->state != live->n_states) {
                stream->state = live->n_states;
                send_next(stream, live->state);
                return true;
        }
        if (!live->change || stream->change == live->n_changes)
                return false;
        stream->change = live->n_changes;
        send_next(stream, live->change);
        return true;
}

static ssize_t read_stream(void *userdata, uint64_t position, char *to, size_t room)
{
        struct stream *stream = userdata;
        struct live *live = stream->live;
        ssize_t n = 0;

        (void)position;
        (void)pthread_mutex_lock(&live->lock);
        if (live->must_end || stream->is_leaving) {
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
        live->n_streams -= !stream->is_leaving;
        (void)event_unref(stream->event);
        (void)pthread_mutex_unlock(&live->lock);
        free(stream);
}

/* With the lock held. */
static unsigned int count_of(const struct live *live, uint64_t peer)
{
        const struct stream *stream;
        unsigned int n = 0;

        list_for_each(stream, &live->streams, link)
                n += stream->peer == peer && !stream->is_leaving;
        return n;
}

/*
 * With the lock held: the oldest one of whoever has most, if @peer has less than that also with one more. So nobody
 * is kept out by one who has many, and two who have as many do not take turns. NULL: none.
 */
static struct stream *find_surplus(struct live *live, uint64_t peer)
{
        unsigned int most = count_of(live, peer) + 1;
        struct stream *stream, *surplus = NULL;

        list_for_each(stream, &live->streams, link) {
                unsigned int n = count_of(live, stream->peer);

                if (stream->is_leaving || n <= most)
                        continue;
                most = n;
                surplus = stream;
        }
        return surplus;
}

/* With the lock held: the server's thread closes it soon, also one that reads nothing. */
static void send_away(struct stream *stream)
{
        stream->is_leaving = true;
        stream->live->n_streams--;
        (void)shutdown(stream->fd, SHUT_RDWR);
        wake(stream);
}

/* The place is taken before vgpud is asked: who is turned away costs vgpud nothing. */
static bool take_place(struct live *live, uint64_t peer)
{
        struct stream *surplus;
        bool has_place;

        (void)pthread_mutex_lock(&live->lock);
        surplus = live->n_streams >= LIVE_STREAMS_MAX ? find_surplus(live, peer) : NULL;
        if (surplus)
                send_away(surplus);
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

static int get_fd(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        return info ? info->connect_fd : -1;
}

/* It begins with what was before, and then gets what all get. NULL: too many look, or no memory. */
static struct stream *add_stream(struct live *live, struct MHD_Connection *connection)
{
        const int size = SEND_BUFFER_SIZE;
        int fd = get_fd(connection);
        uint64_t peer = peer_get(fd);
        struct stream *stream;
        struct event *first;

        if (!take_place(live, peer))
                return NULL;
        first = event_new("past", scrape_take_past(live->scrape));
        stream = calloc(1, sizeof(*stream));
        if (!first || !stream) {
                (void)event_unref(first);
                free(stream);
                leave_place(live);
                return NULL;
        }
        (void)pthread_mutex_lock(&live->lock);
        *stream = (struct stream){
                .live = live, .connection = connection, .fd = fd, .peer = peer, .event = first
        };
        (void)setsockopt(stream->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
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

/* Some of what waits has been read since the last look, or nothing waits: it goes on. */
static bool is_stuck(struct stream *stream, uint64_t now_ns)
{
        int before = stream->queued;

        if (ioctl(stream->fd, SIOCOUTQ, &stream->queued) < 0)
                stream->queued = 0;
        if (stream->queued == 0 || stream->queued < before)
                stream->waits_ns = 0;
        else if (stream->waits_ns == 0)
                stream->waits_ns = now_ns;
        return stream->waits_ns != 0 && now_ns - stream->waits_ns > LIVE_SECONDS_MAX * NS_PER_S;
}

/* A descriptor is closed only after its stream has been freed, so it is never somebody else's. */
void live_sweep(struct live *live)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        struct stream *stream;

        (void)pthread_mutex_lock(&live->lock);
        list_for_each(stream, &live->streams, link) {
                if (is_stuck(stream, now_ns))
                        (void)shutdown(stream->fd, SHUT_RDWR);
        }
        (void)pthread_mutex_unlock(&live->lock);
}

/* Life. */

int live_new(struct live **ret_live, struct scrape *scrape, unsigned int rate)
{
        CLEANUP(live_freep) struct live *live = calloc(1, sizeof(*live));
        pthread_condattr_t attributes;
        int r;

        if (!live)
                return -ENOMEM;
        live->scrape = scrape;
        live->rate = rate;
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
        forget(live);
        (void)pthread_cond_destroy(&live->changed);
        (void)pthread_mutex_destroy(&live->lock);
        free(live);
        return NULL;
}
