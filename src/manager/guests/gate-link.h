/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GATE_LINK_H
#define MANAGER_GATE_LINK_H

/* One connection of the gate socket (guest-socket.h). */

#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "manager/model/account.h"
#include "manager/socket/fair-queue.h"
#include "manager/socket/unread.h"
#include "store/store.h"

struct guest_socket;
struct guest;
struct manager;

/*
 * Edge-triggered: of many whose processes have ended at once, the kernel tells each once. Who leaves messages
 * unread sets them again, which tells of what is there.
 */
#define GATE_LINK_EVENTS (EPOLLIN | EPOLLET)

struct gate_link {
        struct list link;
        struct manager *manager;
        int fd;
        struct ucred peer;
        uint16_t version; /* GATE_WIRE_*, as it said in JOIN */
        uid_t payer; /* who is charged for it; at a door of a container the peer's number says nothing */
        struct account_charge charge;
        struct unread_fds unread;
        /* The vGPU that can be joined here, by any user; GATE_VGPU_NEW: the container's; "": one's own. */
        char only[STORE_UUID_MAX];
        struct guest *guest;     /* NULL for a stranger */
        struct fair_entry entry; /* of a stranger; while it waits, its source is off */
        sd_event_source *source;
        sd_event_source *join_timer;
        sd_event_source *rest_timer; /* its source is off until then */
        uint64_t resting_ns;         /* since when; 0: it is not */
};

/*
 * gate_link_send() - send @message, which gets the gate's version. Errors: -EAGAIN (guest_flush() follows when
 * there is room), -EPIPE.
 */
int gate_link_send(struct gate_link *link, void *message, size_t size, const int *fds,
                   size_t n_fds);

/*
 * gate_link_rest() - leave what the gate sends where it is for a moment: descriptors of its user wait to be closed.
 * False: it has been so for long, and nothing says that it will end. gate_link_go_on() - they do not wait any more.
 */
bool gate_link_rest(struct gate_link *link);
void gate_link_go_on(struct gate_link *link);

/* gate_link_hang_up() - also while one of its messages is dealt with; guest_detach() follows. */
void gate_link_hang_up(struct gate_link *link);

/* gate_link_free() - hang up; the guest is not told. Returns NULL. */
struct gate_link *gate_link_free(struct gate_link *link);

#endif
