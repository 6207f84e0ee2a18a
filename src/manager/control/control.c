/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/packet.h"
#include "daemon/crowd.h"
#include "daemon/foreign.h"
#include "daemon/log.h"
#include "manager/model/manager.h"
#include "manager/socket/fair-queue.h"
#include "manager/socket/listener.h"
#include "manager/socket/peer.h"
#include "manager/socket/unread.h"
#include "record/writer.h"

static const struct account_cost client_cost = {
        { [ACCOUNT_OBJECTS] = 1, [ACCOUNT_DESCRIPTORS] = 1 },
};
static const struct account_cost call_cost = { { [ACCOUNT_REQUESTS] = 1 } };

/* With so much unread, a client gets no more progress; and with so much, no more answers. */
#define PROGRESS_UNREAD_MAX 4096
#define ANSWERS_UNREAD_MAX  CONTROL_MESSAGE_MAX

#define LOG_INTERVAL_NS 1000000000u

/*
 * Clients have an epoll of their own: sd-event asks at each turn for all that is ready, to serve one of it. That would
 * cost n x n when a crowd of n hangs up at once.
 */
#define EVENTS_A_TURN 64

struct control {
        struct manager *manager;
        const struct control_service *service;
        struct listener listener;
        int epoll; /* of clients that do not wait for their turn */
        sd_event_source *source;
        struct list clients;
        struct crowd crowd;      /* of them */
        uint64_t turned_away_ns; /* when that was logged */
};

struct control_client {
        struct list link;
        struct control *control;
        int fd;
        struct ucred peer;
        bool sees_all, moves_all; /* struct control_pending */
        struct account_charge charge;
        struct fair_entry entry; /* while it waits, it is not watched */
        uint32_t events;         /* that it waits to handle */
        uint32_t watched;        /* what it is watched for */
        bool is_watched;
        struct control_buffer in;
        char *out;
        size_t out_size, out_sent;
        struct unread_fds unread;
        bool is_ended; /* sends no more; waits for its answers */
        bool is_gone;  /* an answer could not be sent: what else it asked for is not done */
        bool has_more; /* as long as that is so, nothing is read: one message at most is kept */
        struct control_pending *pending;
};

static void unwatch(struct control_client *client)
{
        if (client->is_watched)
                (void)epoll_ctl(client->control->epoll, EPOLL_CTL_DEL, client->fd, NULL);
        client->is_watched = false;
}

/* Errors: -ENOMEM, -ENOSPC. */
static int watch(struct control_client *client, uint32_t events)
{
        struct epoll_event event = { .events = events, .data.ptr = client };
        int how = client->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

        if (client->is_watched && client->watched == events)
                return 0;
        if (epoll_ctl(client->control->epoll, how, client->fd, &event) < 0)
                return -errno;
        client->is_watched = true;
        client->watched = events;
        return 0;
}

static struct control_client *client_free(struct control_client *client)
{
        struct crowd *crowd = &client->control->crowd;

        client->control->service->client_gone(client->control->manager, client);
        if (client->pending)
                client->pending->client = NULL;
        list_remove(&client->link);
        fair_deinit(&client->entry);
        unwatch(client);
        control_buffer_deinit(&client->in);
        account_give(&client->charge, ACCOUNT_BYTES, client->charge.cost.of[ACCOUNT_BYTES]);
        unread_hang_up(client->control->manager->unread, &client->unread, &client->charge,
                       client->fd, client->peer.uid);
        free(client->out);
        free(client);
        (void)crowd_go(crowd);
        return NULL;
}

/* Who asks and does not read is heard again when it has read: its answers are kept here. */
static bool is_behind(const struct control_client *client)
{
        return client->out_size - client->out_sent > ANSWERS_UNREAD_MAX;
}

/* Of what it sent and of what it has not read, before @more is kept. */
static int charge_bytes(struct control_client *client, size_t more)
{
        const struct account_cost cost = { { [ACCOUNT_BYTES] = more } };
        struct failure failure = { 0 };
        int r = account_take(client->control->manager->accounts, &client->charge, client->peer.uid,
                             &cost, &failure);

        if (r < 0)
                log_event_of(client->peer.uid, LOG_LEVEL_NOTICE,
                             "cut off a client for which too much is kept",
                             "pid=%d uid=%u bytes=%zu", (int)client->peer.pid, client->peer.uid,
                             client->in.size + client->out_size);
        return r;
}

static void settle_bytes(struct control_client *client)
{
        uint64_t kept = client->in.size + client->out_size;
        uint64_t charged = client->charge.cost.of[ACCOUNT_BYTES];

        if (charged > kept)
                account_give(&client->charge, ACCOUNT_BYTES, charged - kept);
}

/* Reading stops while a call is under way, but a hang-up is still told. */
static void update_events(struct control_client *client)
{
        uint32_t events = 0;

        if (!client->pending && !client->is_ended && !is_behind(client))
                events |= EPOLLIN;
        settle_bytes(client);
        unread_settle(&client->unread, &client->charge, client->fd);
        if (client->out_sent < client->out_size)
                events |= EPOLLOUT;
        if (fair_is_waiting(&client->entry)) {
                unwatch(client);
        } else if (watch(client, events) < 0) {
                client->is_gone = true; /* nothing would be heard of it any more */
                fair_wait(&client->entry);
        }
}

/* Sending. Negative: the client is gone. */

static int flush(struct control_client *client)
{
        while (client->out_sent < client->out_size) {
                ssize_t n = send(client->fd, client->out + client->out_sent,
                                 client->out_size - client->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                client->out_sent += (size_t)n;
        }
        client->out_size = client->out_sent = 0;
        return 0;
}

static int append_out(struct control_client *client, const char *text)
{
        size_t size = strlen(text) + 1; /* the NUL ends the message */
        char *out = charge_bytes(client, size) == 0 ? realloc(client->out, client->out_size + size)
                                                    : NULL;

        if (!out)
                return -ENOMEM;
        memcpy(out + client->out_size, text, size);
        client->out = out;
        client->out_size += size;
        return 0;
}

/* What of @text goes out now goes with the descriptors; they cannot wait. Returns the bytes. */
static ssize_t send_with_fds(const struct control_client *client, char *text, const int *fds,
                             size_t n_fds)
{
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
        } control = { 0 };
        struct iovec iov = { text, strlen(text) + 1 };
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)) };
        ssize_t n;

        if (client->out_size > client->out_sent)
                return -EAGAIN;
        control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(n_fds * sizeof(int)) };
        memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        do
                n = sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

static int send_text(struct control_client *client, char *text, const int *fds, size_t n_fds)
{
        ssize_t n = 0;
        int r = 0;

        if (!text)
                return -ENOMEM;
        if (n_fds > 0)
                n = send_with_fds(client, text, fds, n_fds);
        if (n < 0)
                return (int)n;
        if ((size_t)n <= strlen(text))
                r = append_out(client, text + n);
        if (r == 0)
                r = flush(client);
        return r;
}

/* Takes @message. */
static char *dump(json_t *message)
{
        char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

        json_decref(message);
        return text;
}

static int send_message(struct control_client *client, json_t *message)
{
        CLEANUP(freep) char *text = dump(message);

        return send_text(client, text, NULL, 0);
}

static void pending_free(struct control_pending *pending)
{
        if (pending->client)
                pending->client->pending = NULL;
        account_end(&pending->charge);
        control_call_deinit(&pending->call);
        free(pending);
}

int control_take_fds(struct control_pending *pending, size_t n, struct failure *failure)
{
        struct control_client *client = pending->client;

        return client ? unread_take(pending->manager->unread, &client->unread, &client->charge,
                                    client->fd, client->peer.uid, n, failure)
                      : 0;
}

/* Takes @text; @pending is gone afterwards. What the client asked next waits for its turn. */
static void answer_text(struct control_pending *pending, char *text, const int *fds, size_t n_fds)
{
        struct control_client *client = pending->client;
        CLEANUP(freep) char *own = text;

        pending->service->before_answer(pending->manager);
        pending_free(pending);
        if (!client)
                return;
        if (send_text(client, own, fds, n_fds) < 0)
                client->is_gone = true; /* not freed: the caller may be serving it */
        fair_wait(&client->entry);      /* perhaps the next call is here already */
        update_events(client);
}

static void answer(struct control_pending *pending, json_t *message)
{
        answer_text(pending, dump(message), NULL, 0);
}

void control_reply_fds(struct control_pending *pending, json_t *parameters, const int *fds,
                       size_t n_fds)
{
        answer_text(pending,
                    dump(json_pack("{so}", "parameters", parameters ? parameters : json_object())),
                    fds, n_fds);
}

void control_reply_text(struct control_pending *pending, struct writer *writer)
{
        answer_text(pending, writer_take(writer), NULL, 0);
}

void control_reply(struct control_pending *pending, json_t *parameters)
{
        answer(pending, json_pack("{so}", "parameters", parameters ? parameters : json_object()));
}

void control_fail(struct control_pending *pending, const struct failure *failure)
{
        answer(pending, control_error_json(failure));
}

static int on_call_again(sd_event_source *source, void *userdata)
{
        (void)source;
        struct control_pending *pending = userdata;

        pending->service->call(pending);
        return 0;
}

void control_call_again(struct control_pending *pending)
{
        const struct failure failure = { .name = "Failed", .message = "vgpud is out of memory" };

        if (sd_event_add_defer(pending->manager->event, NULL, on_call_again, pending) < 0)
                control_fail(pending, &failure);
}

void control_progress(struct control_pending *pending, json_t *parameters)
{
        struct control_client *client = pending->client;

        if (!client || !pending->call.wants_progress ||
            client->out_size - client->out_sent > PROGRESS_UNREAD_MAX) {
                json_decref(parameters);
                return;
        }
        (void)send_message(client, json_pack("{so, sb}", "parameters", parameters, "continues", 1));
        update_events(client);
}

/* Receiving. */

static int refuse_size(struct failure *failure)
{
        return failure_set(failure, -E2BIG, "InvalidParameter", "",
                           "a call has at most %d members and %d values", CONTROL_MEMBERS_MAX,
                           CONTROL_VALUES_MAX);
}

static int start_call(struct control_client *client, const char *text, size_t size)
{
        struct control_pending *pending = calloc(1, sizeof(*pending));
        struct failure failure = { 0 };
        int r;

        if (!pending)
                return -ENOMEM;
        r = control_call_parse(&pending->call, text, size);
        if (r < 0 && r != -E2BIG) {
                free(pending);
                return r;
        }
        pending->manager = client->control->manager;
        pending->service = client->control->service;
        pending->client = client;
        pending->uid = client->peer.uid;
        pending->pid = client->peer.pid;
        pending->sees_all = client->sees_all;
        pending->moves_all = client->moves_all;
        client->pending = pending;
        r = r < 0 ? refuse_size(&failure)
                  : account_take(client->control->manager->accounts, &pending->charge, pending->uid,
                                 &call_cost, &failure);
        if (r < 0)
                control_fail(pending, &failure);
        else
                client->control->service->call(pending);
        return 0;
}

static int read_some(struct control_client *client)
{
        char bytes[65536];
        int fds[PACKET_FDS_ANY];
        size_t size, n_fds;
        int r = packet_receive_any(client->fd, bytes, sizeof(bytes), &size, fds, &n_fds);

        if (n_fds > 0) { /* no call has any */
                foreign_close(fds, n_fds, client->peer.uid);
                return -EINVAL;
        }
        if (r < 0)
                return r == -EAGAIN ? 0 : r;
        if (size == 0) {
                client->is_ended = true;
                return 0;
        }
        r = charge_bytes(client, size);
        return r < 0 ? r : control_buffer_append(&client->in, bytes, size);
}

/* One call a turn. */
static int next_call(struct control_client *client)
{
        const char *text;
        size_t size;

        if (client->pending || is_behind(client))
                return 0;
        text = control_buffer_next(&client->in, &size);
        client->has_more = text != NULL;
        if (text)
                return start_call(client, text, size);
        return client->is_ended && client->out_sent == client->out_size ? -ENODATA : 0;
}

static int serve(struct control_client *client, uint32_t events)
{
        int r = 0;

        if (client->is_gone)
                return -ECONNRESET;
        if ((events & EPOLLERR) || ((events & EPOLLHUP) && client->pending))
                return -ECONNRESET; /* without a call under way, what it said before counts */
        if (events & EPOLLOUT)
                r = flush(client);
        if (r == 0 && (events & EPOLLIN) && !client->has_more)
                r = read_some(client);
        return r == 0 ? next_call(client) : r;
}

static void on_turn(void *userdata)
{
        struct control_client *client = userdata;
        int r = serve(client, client->events);

        client->events = 0;
        if (r == -EINVAL || r == -EMSGSIZE)
                log_event_of(client->peer.uid, LOG_LEVEL_NOTICE,
                             "cut off a client that sent no call", "pid=%d uid=%u",
                             (int)client->peer.pid, client->peer.uid);
        if (r < 0)
                client_free(client);
        else
                update_events(client);
}

/* None is freed here: that is for its turn. */
static int on_clients(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct epoll_event ready[EVENTS_A_TURN];
        int n = epoll_wait(fd, ready, EVENTS_A_TURN, 0);

        (void)source, (void)events, (void)userdata;
        for (int i = 0; i < n; i++) {
                struct control_client *client = ready[i].data.ptr;

                client->events = ready[i].events;
                fair_wait(&client->entry);
                update_events(client);
        }
        return 0;
}

/* Who connects in a loop does not fill the log. */
static void log_turned_away(struct control *control, const struct ucred *peer)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (control->turned_away_ns && now_ns < control->turned_away_ns + LOG_INTERVAL_NS)
                return;
        control->turned_away_ns = now_ns;
        log_event(LOG_LEVEL_INFO, "turned a client away", "pid=%d uid=%u", (int)peer->pid,
                  peer->uid);
}

/* Before it has said anything: the answer to its first call, if there is one. Takes @fd. */
static void turn_away(struct control *control, int fd, const struct ucred *peer,
                      const struct failure *failure)
{
        CLEANUP_JSON json_t *message = control_error_json(failure);
        CLEANUP(freep) char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

        if (text)
                (void)send(fd, text, strlen(text) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        log_turned_away(control, peer);
        foreign_hang_up(fd, peer->uid);
}

static void set_rights(struct control_client *client)
{
        const struct options *options = client->control->manager->options;

        client->moves_all = account_is_operator(client->peer.uid) ||
                            (options->has_stewards &&
                             peer_has_group(client->fd, &client->peer, options->stewards));
        client->sees_all =
                client->moves_all || (options->has_watchers &&
                                      peer_has_group(client->fd, &client->peer, options->watchers));
}

static int on_connection(int fd, const struct ucred *peer, void *userdata)
{
        struct control *control = userdata;
        struct control_client *client = calloc(1, sizeof(*client));
        struct failure failure = { 0 };
        int r = client ? account_take(control->manager->accounts, &client->charge, peer->uid,
                                      &client_cost, &failure)
                       : -ENOMEM;

        if (r < 0) {
                (void)failure_from_errno(&failure, r, "accepting a connection");
                turn_away(control, fd, peer, &failure);
                free(client);
                return r;
        }
        client->control = control;
        client->fd = fd;
        client->peer = *peer;
        set_rights(client);
        list_append(&control->clients, &client->link);
        crowd_come(&control->crowd);
        r = fair_init(&client->entry, control->manager->fair_queue, peer->uid, on_turn, client);
        if (r == 0)
                r = watch(client, EPOLLIN);
        if (r < 0)
                client_free(client);
        return r;
}

static int watch_clients(struct control *control)
{
        control->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (control->epoll < 0)
                return -errno;
        return sd_event_add_io(control->manager->event, &control->source, control->epoll, EPOLLIN,
                               on_clients, control);
}

static void end_watching(struct control *control)
{
        control->source = sd_event_source_disable_unref(control->source);
        control->epoll = fd_close(control->epoll);
}

int control_new(struct control **ret_control, struct manager *manager,
                const struct control_service *service)
{
        struct control *control = calloc(1, sizeof(*control));
        int r;

        if (!control)
                return -ENOMEM;
        control->manager = manager;
        control->service = service;
        list_init(&control->clients);
        r = watch_clients(control);
        if (r == 0)
                r = listener_init(&control->listener, manager, PATHS_CONTROL_SOCKET, SOCK_STREAM,
                                  on_connection, control);
        if (r < 0) {
                end_watching(control);
                free(control);
                return r;
        }
        *ret_control = control;
        return 0;
}

void control_start(struct control *control)
{
        listener_set_enabled(&control->listener, true);
}

struct control *control_free(struct control *control)
{
        struct control_client *client, *after;

        if (!control)
                return NULL;
        list_for_each_safe(client, after, &control->clients, link)
                client_free(client);
        listener_deinit(&control->listener);
        end_watching(control);
        free(control);
        return NULL;
}
