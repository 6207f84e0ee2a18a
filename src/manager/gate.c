/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/gate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "manager/guest.h"
#include "manager/image.h"
#include "manager/instance.h"
#include "manager/listener.h"
#include "manager/log.h"
#include "manager/manager.h"
#include "manager/operation.h"
#include "manager/policy.h"

/* From connect to JOIN; the gate sends it at once. */
#define JOIN_TIMEOUT_US 10000000

/* Connections in all, and such that have not said who they are: the rest waits in the backlog. */
#define LINKS_MAX     4096
#define STRANGERS_MAX 128

/* Of one user, other than our own: more are hung up on, and try again; so a user keeps nobody out. */
#define STRANGERS_USER_MAX 32

/* One wake-up reads so many messages, then the others have their turn. */
#define MESSAGES_A_TURN 32

struct gate {
        struct manager *manager;
        struct listener listener;
        struct list links;
        size_t n_links, n_strangers;
};

struct gate_link {
        struct list link;
        struct gate *gate;
        int fd;
        struct ucred peer;
        bool is_stranger;    /* has not joined */
        struct guest *guest; /* NULL for a stranger */
        sd_event_source *source;
        sd_event_source *join_timer;
};

struct gate_link *gate_link_free(struct gate_link *link)
{
        if (!link)
                return NULL;
        list_remove(&link->link);
        link->gate->n_links--;
        if (link->is_stranger)
                link->gate->n_strangers--;
        listener_set_enabled(&link->gate->listener, true);
        sd_event_source_disable_unref(link->join_timer);
        sd_event_source_disable_unref(link->source);
        fd_close(link->fd);
        free(link);
        return NULL;
}

static void drop(struct gate_link *link, int error)
{
        struct guest *guest = link->guest;

        if (error == -EPROTO)
                log_event(guest ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG,
                          "cut off a gate that broke the protocol", "pid=%d uid=%u vgpu=%s",
                          (int)link->peer.pid, link->peer.uid, guest ? guest->instance->name : "?");
        gate_link_free(link);
        if (guest)
                guest_detach(guest, error);
}

int gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                   size_t n_fds)
{
        int r = packet_send(link->fd, message, size, fds, n_fds);

        if (r == -EAGAIN)
                sd_event_source_set_io_events(link->source, EPOLLIN | EPOLLOUT);
        return r;
}

/* The caller hangs up. Returns -ECONNREFUSED. */
__attribute__((format(printf, 3, 4))) static int refuse(struct gate_link *link, int error,
                                                        const char *format, ...)
{
        struct gate_refused refused = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_REFUSED },
                .error = error,
        };
        char quoted[LOG_QUOTED_MAX];
        va_list args;

        va_start(args, format);
        vsnprintf(refused.text, sizeof(refused.text), format, args);
        va_end(args);
        log_event(LOG_LEVEL_NOTICE, "refused a process", "pid=%d uid=%u reason=%s",
                  (int)link->peer.pid, link->peer.uid, log_quote(quoted, refused.text));
        (void)gate_link_send(link, &refused, sizeof(refused), NULL, 0);
        return -ECONNREFUSED;
}

static void attach(struct gate_link *link, struct guest *guest, enum gate_state state)
{
        link->join_timer = sd_event_source_disable_unref(link->join_timer);
        link->is_stranger = false;
        link->gate->n_strangers--;
        link->guest = guest;
        guest_attach(guest, link, state);
}

static int admit(struct gate_link *link)
{
        struct guest *guest = link->guest;
        char quoted[LOG_QUOTED_MAX];
        int r = guest_admit(guest);

        if (r < 0) {
                link->guest = NULL;
                guest->gate = NULL;
                guest_unload(guest);
                return refuse(link, -r,
                              r == -ENOSPC ? "the vGPU has %d processes already"
                                           : "vgpud could not admit it (limit %d)",
                              INSTANCE_PAGE_SLOTS);
        }
        log_event(LOG_LEVEL_INFO, "process joined", "vgpu=%s pid=%d uid=%u slot=%u name=%s",
                  guest->instance->name, (int)guest->pid, guest->uid, guest->slot,
                  log_quote(quoted, guest->name));
        (void)guest_welcome(guest); /* a broken connection shows as a hang-up */
        return 0;
}

static int admit_now(struct gate_link *link)
{
        struct instance *instance = link->guest->instance;
        int r = instance_is_usable(instance) ? admit(link) : 0;

        if (r == 0)
                instance_settle(instance);
        return r;
}

static struct gate_link *find_waiting(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->is_waiting && guest->gate)
                        return guest->gate;
        return NULL;
}

void gate_admit_waiting(struct instance *instance)
{
        struct gate_link *link;

        while ((link = find_waiting(instance)))
                if (admit(link) < 0)
                        drop(link, 0); /* the guest is gone already */
}

static int rejoin(struct gate_link *link, struct guest *guest, enum gate_state state)
{
        log_event(LOG_LEVEL_INFO, "process is back", "vgpu=%s pid=%d state=%d",
                  guest->instance->name, (int)guest->pid, (int)state);
        attach(link, guest, state);
        if (guest->is_waiting)
                return admit_now(link);
        operation_guest_returned(guest);
        return 0;
}

static int join_new(struct gate_link *link, struct instance *instance, uint64_t start_time,
                    enum gate_state state)
{
        struct guest *guest;
        int r;

        if (state != GATE_STATE_OPEN)
                return refuse(link, EIO,
                              "vgpud no longer has the memory of process %d; it must be ended",
                              (int)link->peer.pid);

        r = guest_new(&guest, instance, link->peer.pid, link->peer.uid, start_time);
        if (r < 0)
                return refuse(link, -r, "the process could not be added: %s", strerror(-r));
        guest->is_waiting = true;
        attach(link, guest, state);
        return admit_now(link);
}

static int check_join(struct gate_link *link, const struct gate_join *join, size_t size,
                      struct instance **ret_instance)
{
        struct failure failure = { 0 };

        if (size < sizeof(join->header) || join->header.magic != GATE_WIRE_MAGIC ||
            join->header.message != GATE_JOIN)
                return -EPROTO;
        if (join->header.version != GATE_WIRE_VERSION)
                return refuse(
                        link, EPROTONOSUPPORT,
                        "the gate speaks version %u and vgpud version %u: upgrade and restart "
                        "the older of them",
                        join->header.version, GATE_WIRE_VERSION);
        if (size != sizeof(*join) || !memchr(join->vgpu, '\0', sizeof(join->vgpu)) ||
            join->state > GATE_STATE_CREATED)
                return -EPROTO;

        *ret_instance = instance_find(link->gate->manager, join->vgpu, &failure);
        if (!*ret_instance)
                return refuse(link, ENOENT, "%s", failure.message);
        if (instance_check_owner(*ret_instance, link->peer.uid, &failure) < 0)
                return refuse(link, EPERM, "%s", failure.message);
        return 0;
}

static bool is_elsewhere(struct manager *manager, const struct instance *here, pid_t pid)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance != here && guest_find(instance, pid))
                        return true;
        return false;
}

static int receive_join(struct gate_link *link, const struct gate_join *join, size_t size)
{
        struct instance *instance = NULL;
        struct guest *guest;
        uint64_t start_time;
        uid_t user;
        int r = check_join(link, join, size, &instance);

        if (r < 0)
                return r;
        r = process_get_start_time(link->peer.pid, &start_time);
        if (r == 0)
                r = process_get_user(link->peer.pid, &user);
        if (r < 0)
                return -ENOTCONN;   /* it has just died */
        if (user != link->peer.uid) /* who connected has died, and its number is somebody else's */
                return -EPROTO;

        if (join->state != GATE_STATE_OPEN && image_keeps_away(instance))
                return -ENOTCONN; /* it tries again */

        guest = guest_find(instance, link->peer.pid);
        if (guest && guest->start_time == start_time)
                return rejoin(link, guest, join->state);
        if (guest || is_elsewhere(link->gate->manager, instance, link->peer.pid))
                return refuse(link, EBUSY, "process %d is in another vGPU already",
                              (int)link->peer.pid);
        return join_new(link, instance, start_time, join->state);
}

static int receive(struct gate_link *link)
{
        union {
                struct gate_header header;
                struct gate_join join;
                char bytes[PACKET_SIZE_MAX];
        } message;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        int r = packet_receive(link->fd, &message, &size, fds, &n_fds);

        if (r == -EMSGSIZE)
                return -EPROTO;
        if (r < 0)
                return r == -EAGAIN ? r : -ENOTCONN;

        if (!link->guest && n_fds == 0)
                return receive_join(link, &message.join, size);
        if (link->guest && size >= sizeof(message.header) &&
            message.header.magic == GATE_WIRE_MAGIC && message.header.version == GATE_WIRE_VERSION)
                return guest_receive(link->guest, &message, size, fds, n_fds);
        packet_close_fds(fds, n_fds);
        return -EPROTO;
}

static int on_link(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct gate_link *link = userdata;
        int r = 0;

        (void)source, (void)fd;
        if (events & EPOLLOUT) {
                sd_event_source_set_io_events(link->source, EPOLLIN);
                if (link->guest)
                        guest_flush(link->guest);
        }
        for (int i = 0; r == 0 && i < MESSAGES_A_TURN; i++)
                r = receive(link);
        if (r < 0 && r != -EAGAIN)
                drop(link, r);
        return 0;
}

static int on_no_join(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        drop(userdata, -ETIMEDOUT);
        return 0;
}

static bool is_welcome(const struct gate *gate, uid_t uid)
{
        const struct gate_link *link;
        size_t n = 0;

        if (policy_is_operator(uid))
                return true;
        list_for_each(link, &gate->links, link)
                n += link->is_stranger && link->peer.uid == uid;
        return n < STRANGERS_USER_MAX;
}

static int on_connection(int fd, const struct ucred *peer, void *userdata)
{
        struct gate *gate = userdata;
        struct gate_link *link = is_welcome(gate, peer->uid) ? calloc(1, sizeof(*link)) : NULL;
        int r;

        if (!link) {
                fd_close(fd);
                return -ENOMEM;
        }
        *link = (struct gate_link){ .gate = gate, .fd = fd, .peer = *peer, .is_stranger = true };
        list_append(&gate->links, &link->link);
        gate->n_links++;
        gate->n_strangers++;
        if (gate->n_links >= LINKS_MAX || gate->n_strangers >= STRANGERS_MAX)
                listener_set_enabled(&gate->listener, false); /* until one goes */

        r = sd_event_add_io(gate->manager->event, &link->source, fd, EPOLLIN, on_link, link);
        if (r == 0)
                r = sd_event_add_time_relative(gate->manager->event, &link->join_timer,
                                               CLOCK_MONOTONIC, JOIN_TIMEOUT_US, 0, on_no_join,
                                               link);
        if (r < 0)
                gate_link_free(link);
        return r;
}

int gate_new(struct gate **ret_gate, struct manager *manager)
{
        struct gate *gate = calloc(1, sizeof(*gate));
        int r;

        if (!gate)
                return -ENOMEM;
        gate->manager = manager;
        list_init(&gate->links);
        r = listener_init(&gate->listener, manager, PATHS_GATE_SOCKET, SOCK_SEQPACKET, NULL,
                          on_connection, gate);
        if (r < 0) {
                free(gate);
                return r;
        }
        *ret_gate = gate;
        return 0;
}

void gate_start(struct gate *gate)
{
        listener_set_enabled(&gate->listener, true);
}

struct gate *gate_free(struct gate *gate)
{
        struct gate_link *link, *after;

        if (!gate)
                return NULL;
        list_for_each_safe(link, after, &gate->links, link) {
                if (link->guest)
                        link->guest->gate = NULL;
                gate_link_free(link);
        }
        listener_deinit(&gate->listener);
        free(gate);
        return NULL;
}
