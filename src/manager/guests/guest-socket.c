/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/guest-socket.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "daemon/foreign.h"
#include "daemon/log.h"
#include "manager/guests/container-order.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/guest-request.h"
#include "manager/guests/share.h"
#include "manager/model/account.h"
#include "manager/model/burial.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/socket/fair-queue.h"
#include "manager/socket/listener.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* From connect to JOIN; the gate sends it at once. */
#define JOIN_TIMEOUT_US 10000000

/* Until it has joined, it is a request as well. */
static const struct account_cost link_cost = {
        { [ACCOUNT_OBJECTS] = 1, [ACCOUNT_DESCRIPTORS] = 1, [ACCOUNT_REQUESTS] = 1 },
};

/* One wake-up reads so many messages, then the others have their turn. */
#define MESSAGES_A_TURN 32

struct guest_socket {
        struct manager *manager;
        struct listener listener;
        struct list links;
};

static void drop(struct gate_link *link, int error)
{
        struct guest *guest = link->guest;

        if (error == -EPROTO)
                log_event_of(link->payer, guest ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG,
                             "cut off a gate that broke the protocol", "pid=%d uid=%u vgpu=%s",
                             (int)link->peer.pid, link->peer.uid,
                             guest ? guest->instance->name : "?");
        gate_link_free(link);
        if (!guest)
                return;
        guest_detach(guest, error);
        if (error == -ENOTCONN && !guest_is_dead(guest) && guest_is_replaced(guest))
                burial_add(guest->instance->manager->burial, guest);
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
        log_event_of(link->payer, LOG_LEVEL_NOTICE, "refused a process", "pid=%d uid=%u reason=%s",
                     (int)link->peer.pid, link->peer.uid, log_quote(quoted, refused.text));
        (void)gate_link_send(link, &refused, sizeof(refused), NULL, 0);
        return -ECONNREFUSED;
}

static void attach(struct gate_link *link, struct guest *guest, const struct gate_join *join)
{
        link->join_timer = sd_event_source_disable_unref(link->join_timer);
        account_give(&link->charge, ACCOUNT_REQUESTS, 1);
        foreign_allow_fds(link->fd, true);
        link->guest = guest;
        guest->refused_version = 0;
        guest_attach(guest, link, join);
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
        log_event_of_program(
                &(struct log_program){ guest->payer, guest->instance->id, guest->instance->name },
                LOG_LEVEL_INFO, "process joined", "vgpu=%s pid=%d uid=%u slot=%u name=%s",
                guest->instance->name, (int)guest->pid, guest->uid, guest->slot,
                log_quote(quoted, guest->name));
        (void)guest_welcome(guest); /* a broken connection shows as a hang-up */
        return 0;
}

static int admit_now(struct gate_link *link)
{
        struct instance *instance = link->guest->instance;
        int r = 0;

        if (instance_is_usable(instance))
                r = admit(link);
        else
                observer_tell_guest(&instance->manager->observers, link->guest, GUEST_WANTS);
        if (r == 0)
                instance_settle(instance);
        return r;
}

static struct gate_link *find_waiting(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->presence == GUEST_JOINING && guest->gate)
                        return guest->gate;
        return NULL;
}

/* Programs that have not joined: they need not wait any more. */
static void forget_waiting(struct instance *instance)
{
        struct guest *guest, *after;
        bool has_any = false;

        list_for_each_safe(guest, after, &instance->guests, link) {
                if (guest->presence != GUEST_JOINING || guest->gate || guest_is_dead(guest))
                        continue;
                guest_leave(guest);
                guest_succeed(guest);
                guest_free(guest);
                has_any = true;
        }
        if (has_any)
                instance_settle(instance);
}

/* Those in that joined while @instance was not usable. */
static void admit_waiting(struct instance *instance)
{
        struct gate_link *link;

        while ((link = find_waiting(instance)))
                if (admit(link) < 0)
                        drop(link, 0); /* the guest is gone already */
        forget_waiting(instance);
}

static int rejoin(struct gate_link *link, struct guest *guest, const struct gate_join *join)
{
        log_event_of(guest->payer, LOG_LEVEL_INFO, "process is back", "vgpu=%s pid=%d state=%d",
                     guest->instance->name, (int)guest->pid, (int)join->state);
        attach(link, guest, join);
        if (guest->presence == GUEST_JOINING)
                return admit_now(link);
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_RETURNED);
        return 0;
}

static int join_new(struct gate_link *link, struct instance *instance, uint64_t start_time,
                    const struct gate_join *join)
{
        struct failure failure = { 0 };
        struct guest *guest;
        int r;

        if (join->state != GATE_STATE_OPEN)
                return refuse(link, EIO,
                              "vgpud no longer has the memory of process %d; it must be ended",
                              (int)link->peer.pid);

        r = guest_new(&guest, instance, link->peer.pid, link->peer.uid, start_time);
        if (r < 0)
                return refuse(link, -r, "the process could not be added: %s", strerror(-r));
        guest->payer = link->payer;
        r = guest_charge(guest, &failure);
        if (r < 0) {
                guest_unload(guest);
                return refuse(link, -r, "%s; %s", failure.message, failure.hint);
        }
        guest_set_presence(guest, GUEST_JOINING);
        attach(link, guest, join);
        return admit_now(link);
}

/* The upgrade came while the process was in a vGPU; operations on that say what is the matter. */
static int refuse_version(struct gate_link *link, uint16_t version)
{
        struct instance *instance;
        struct guest *guest;

        list_for_each(instance, &link->manager->instances, link) {
                guest = guest_find(instance, link->peer.pid);
                if (guest)
                        guest->refused_version = version;
        }
        return refuse(link, EPROTONOSUPPORT,
                      "the gate speaks version %u and vgpud version %u: upgrade and restart "
                      "the older of them",
                      version, GATE_WIRE_VERSION);
}

static int check_version(struct gate_link *link, const struct gate_header *header)
{
        if (header->version < GATE_WIRE_OLDEST || header->version > GATE_WIRE_VERSION)
                return refuse_version(link, header->version);
        link->version = header->version;
        return 0;
}

/* A program that was started before OpenVGPU was upgraded has the gate of that time. */
static int check_devices(struct gate_link *link, const struct instance *instance)
{
        if (instance->n_parts == 1 || link->version >= GATE_WIRE_DEVICES)
                return 0;
        return refuse(
                link, EPROTONOSUPPORT,
                "vGPU %s has %zu devices, and the gate of this process is older than that: start "
                "the program anew",
                instance->name, instance->n_parts);
}

/* At a door: what can be joined there, by whomever. Elsewhere: one's own. */
static int check_access(struct gate_link *link, const struct instance *instance)
{
        struct failure failure = { 0 };
        bool is_new = strcmp(link->only, GATE_VGPU_NEW) == 0;

        if (is_new ? container_order_check(instance, link->peer.pid) < 0
                   : link->only[0] && strcmp(link->only, instance->uuid) != 0)
                return refuse(link, EPERM, "a container may join its own vGPU, not another one");
        if (!link->only[0] && instance_check_owner(instance, link->peer.uid, &failure) < 0)
                return refuse(link, EPERM, "%s", failure.message);
        return check_devices(link, instance);
}

static int check_join(struct gate_link *link, const struct gate_join *join, size_t size,
                      struct instance **ret_instance)
{
        struct failure failure = { 0 };
        int r;

        if (size < sizeof(join->header) || join->header.magic != GATE_WIRE_MAGIC ||
            join->header.message != GATE_JOIN)
                return -EPROTO;
        r = check_version(link, &join->header);
        if (r < 0)
                return r;
        if (size != gate_join_size(link->version) ||
            !memchr(join->vgpu, '\0', sizeof(join->vgpu)) || join->state > GATE_STATE_CREATED ||
            join->n_imports > GATE_IMPORTS_MAX)
                return -EPROTO;

        *ret_instance = instance_find_settled(link->manager, join->vgpu, &failure);
        if (!*ret_instance)
                return refuse(link, ENOENT, "%s", failure.message);
        return check_access(link, *ret_instance);
}

/* An operation looks at it still: what is dropped then must not be what its successor has by then. */
static bool is_buried_later(const struct instance *instance, pid_t pid)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->pid == pid && guest_is_dead(guest))
                        return true;
        return false;
}

/* Who connected; since Linux 6.5, and whatever has its number by now. */
static bool is_peer_dead(int socket)
{
        CLEANUP(fd_closep) int pidfd = -1;
        socklen_t size = sizeof(pidfd);
        struct pollfd end = { .events = POLLIN };

        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
                pidfd = -1;
                return errno != ENOPROTOOPT && errno != EMFILE && errno != ENFILE;
        }
        end.fd = pidfd;
        return poll(&end, 1, 0) != 0;
}

/* -ENOTCONN: it has just died. -EPROTO: its number is somebody else's. */
static int check_peer(const struct gate_link *link, uint64_t *ret_start_time)
{
        uid_t user;
        int r = process_get_start_time(link->peer.pid, ret_start_time);

        if (r == 0)
                r = process_get_user(link->peer.pid, &user);
        if (r < 0)
                return -ENOTCONN;
        return user != link->peer.uid || is_peer_dead(link->fd) ? -EPROTO : 0;
}

/* It hangs up when it has the answer. */
static int receive_order(struct gate_link *link, const struct gate_order *order, size_t size)
{
        struct failure failure = { 0 };
        struct gate_made made;
        uint64_t start_time;
        int r;

        if (order->header.magic != GATE_WIRE_MAGIC)
                return -EPROTO;
        r = check_version(link, &order->header);
        if (r < 0)
                return r;
        if (size != sizeof(*order) ||
            !memchr(order->frame_buffer, '\0', sizeof(order->frame_buffer)) ||
            !memchr(order->share, '\0', sizeof(order->share)))
                return -EPROTO;
        if (strcmp(link->only, GATE_VGPU_NEW) != 0)
                return refuse(
                        link, EPERM,
                        "no vGPU is made here; openvgpu.org/vgpu=new is a device for containers");
        r = check_peer(link, &start_time);
        if (r < 0)
                return r;
        r = container_order_answer(link->manager, link->peer.pid, order, &made, &failure);
        if (r < 0)
                return refuse(link, -r, "%s%s%s", failure.message, failure.hint[0] ? "; " : "",
                              failure.hint);
        return gate_link_send(link, &made, sizeof(made), NULL, 0);
}

/* The loop may not have come to the end of the former program's connection. */
static void bury_former_program(struct manager *manager, pid_t pid)
{
        struct instance *instance;
        struct guest *guest;

        list_for_each(instance, &manager->instances, link) {
                guest = guest_find(instance, pid);
                if (!guest || !guest_is_replaced(guest))
                        continue;
                burial_add(manager->burial, guest);
                return;
        }
}

static int receive_join(struct gate_link *link, const struct gate_join *join, size_t size)
{
        struct instance *instance = NULL;
        struct guest *guest;
        uint64_t start_time;
        int r;

        bury_former_program(link->manager, link->peer.pid);
        r = check_join(link, join, size, &instance);
        if (r == 0)
                r = check_peer(link, &start_time);
        if (r < 0)
                return r;

        if ((join->state != GATE_STATE_OPEN && instance->keeps_gates_away) ||
            is_buried_later(instance, link->peer.pid))
                return -ENOTCONN; /* it tries again */

        guest = guest_find(instance, link->peer.pid);
        if (guest && guest_is_replaced(guest))
                return -ENOTCONN; /* many are buried just now */
        if (guest && guest->start_time == start_time)
                return rejoin(link, guest, join);
        if (guest || guest_is_elsewhere(instance, link->peer.pid))
                return refuse(link, EBUSY, "process %d is in another vGPU already",
                              (int)link->peer.pid);
        return join_new(link, instance, start_time, join);
}

/*
 * A gate that has had its last answer hangs up. If it has not read all that we sent, the kernel says so before it gives
 * us that answer: once, and then all that was sent to us comes.
 */
static int take_packet(const struct gate_link *link, void *buffer, size_t room, size_t *ret_size,
                       int *fds, size_t *ret_n_fds)
{
        int r = packet_receive_any(link->fd, buffer, room, ret_size, fds, ret_n_fds);

        return r == -ECONNRESET
                       ? packet_receive_any(link->fd, buffer, room, ret_size, fds, ret_n_fds)
                       : r;
}

static int receive(struct gate_link *link)
{
        union {
                struct gate_header header;
                struct gate_join join;
                struct gate_order order;
                char bytes[PACKET_SIZE_MAX];
        } message;
        int fds[PACKET_FDS_ANY];
        size_t size, n_fds;
        int r = take_packet(link, &message, sizeof(message), &size, fds, &n_fds);

        if (r == 0 && link->guest && guest_is_dead(link->guest))
                r = -ENOTCONN;
        if (r == 0 && !link->guest && size >= sizeof(message.header) && n_fds == 0 &&
            message.header.message == GATE_ORDER)
                return receive_order(link, &message.order, size);
        if (r == 0 && !link->guest && size > 0 && n_fds == 0)
                return receive_join(link, &message.join, size);
        if (r == 0 && link->guest && size >= sizeof(message.header) &&
            message.header.magic == GATE_WIRE_MAGIC && message.header.version == link->version)
                r = guest_receive(link->guest, &message, size, fds, n_fds);
        else if (r == -EMSGSIZE || (r == 0 && (size > 0 || n_fds > 0)))
                r = -EPROTO;
        else if (r != -EAGAIN)
                r = -ENOTCONN;
        foreign_close(fds, n_fds, link->payer); /* those that were taken are -1 */
        return r;
}

static bool is_behind(const struct gate_link *link)
{
        uid_t user = link->payer;

        return foreign_is_behind(
                user, account_get_room(link->manager->accounts, user, ACCOUNT_DESCRIPTORS) > 0);
}

/* A stranger's first message. A user whose processes join in a loop does not delay those of others. */
static void on_turn(void *userdata)
{
        struct gate_link *link = userdata;
        int r = is_behind(link) ? -ENOTCONN : receive(link);

        if (r < 0 && r != -EAGAIN)
                drop(link, r);
        else
                sd_event_source_set_enabled(link->source, SD_EVENT_ON);
}

/* Of what is there by now, at the next wake-up. */
static void tell_again(sd_event_source *source)
{
        uint32_t events;

        if (sd_event_source_get_io_events(source, &events) >= 0)
                (void)sd_event_source_set_io_events(source, events);
}

static int on_link(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct gate_link *link = userdata;
        int r = 0;

        (void)fd;
        if (!link->guest) {
                sd_event_source_set_enabled(source, SD_EVENT_OFF);
                fair_wait(&link->entry);
                return 0;
        }
        if (events & EPOLLOUT) {
                sd_event_source_set_io_events(link->source, GATE_LINK_EVENTS);
                guest_flush(link->guest);
        }
        if (is_behind(link)) {
                if (!gate_link_rest(link))
                        drop(link, -ENOTCONN); /* it tries again */
                return 0;
        }
        gate_link_go_on(link);
        for (int i = 0; r == 0 && i < MESSAGES_A_TURN; i++)
                r = receive(link);
        if (r < 0 && r != -EAGAIN)
                drop(link, r);
        else if (r == 0)
                tell_again(source);
        return 0;
}

static int on_no_join(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        drop(userdata, -ETIMEDOUT);
        return 0;
}

int guest_socket_accept(struct guest_socket *socket, int fd, const struct ucred *peer, uid_t payer,
                        const char *uuid)
{
        struct gate_link *link = calloc(1, sizeof(*link));
        struct failure failure = { 0 };
        int r = link ? account_take(socket->manager->accounts, &link->charge, payer, &link_cost,
                                    &failure)
                     : -ENOMEM;

        if (r < 0) { /* it tries again */
                foreign_hang_up(fd, payer);
                free(link);
                return r;
        }
        link->manager = socket->manager;
        link->fd = fd;
        link->version = GATE_WIRE_VERSION;
        link->peer = *peer;
        link->payer = payer;
        if (uuid)
                strcpy(link->only, uuid);
        list_append(&socket->links, &link->link);
        r = fair_init(&link->entry, socket->manager->fair_queue, payer, on_turn, link);
        if (r == 0)
                r = sd_event_add_io(socket->manager->event, &link->source, fd, GATE_LINK_EVENTS,
                                    on_link, link);
        if (r == 0)
                r = sd_event_add_time_relative(socket->manager->event, &link->join_timer,
                                               CLOCK_MONOTONIC, JOIN_TIMEOUT_US, 0, on_no_join,
                                               link);
        if (r < 0)
                gate_link_free(link);
        return r;
}

static int on_connection(int fd, const struct ucred *peer, void *userdata)
{
        return guest_socket_accept(userdata, fd, peer, peer->uid, NULL);
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        (void)userdata;
        if (event == INSTANCE_SETTLED)
                admit_waiting(instance);
}

static void leave(struct guest *guest)
{
        if (guest->gate)
                gate_link_hang_up(guest->gate);
        guest_end_request(guest, -ESRCH);
}

static void unload(struct guest *guest)
{
        guest->gate = gate_link_free(guest->gate);
        guest->request.timer = sd_event_source_disable_unref(guest->request.timer);
        guest->request.look = sd_event_source_disable_unref(guest->request.look);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        (void)userdata;
        if (event == GUEST_LEFT)
                leave(guest);
        else if (event == GUEST_UNLOADED)
                unload(guest);
}

/* To the manager's end: guests are unloaded when the socket is closed. */
static struct observer observer = { .of_instance = on_instance, .of_guest = on_guest };

int guest_socket_new(struct guest_socket **ret_socket, struct manager *manager)
{
        struct guest_socket *socket = calloc(1, sizeof(*socket));
        int r;

        if (!socket)
                return -ENOMEM;
        socket->manager = manager;
        list_init(&socket->links);
        r = listener_init(&socket->listener, manager, PATHS_GATE_SOCKET, SOCK_SEQPACKET,
                          on_connection, socket);
        if (r < 0) {
                free(socket);
                return r;
        }
        observer_add(&manager->observers, &observer, NULL);
        share_subscribe(manager);
        *ret_socket = socket;
        return 0;
}

void guest_socket_start(struct guest_socket *socket)
{
        listener_set_enabled(&socket->listener, true);
}

struct guest_socket *guest_socket_free(struct guest_socket *socket)
{
        struct gate_link *link, *after;

        if (!socket)
                return NULL;
        list_for_each_safe(link, after, &socket->links, link) {
                if (link->guest)
                        link->guest->gate = NULL;
                gate_link_free(link);
        }
        listener_deinit(&socket->listener);
        free(socket);
        return NULL;
}
