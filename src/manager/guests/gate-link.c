/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/gate-link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/packet.h"
#include "manager/model/manager.h"
#include "wire/gate.h"

void gate_link_hang_up(struct gate_link *link)
{
        (void)shutdown(link->fd, SHUT_RDWR);
}

struct gate_link *gate_link_free(struct gate_link *link)
{
        if (!link)
                return NULL;
        list_remove(&link->link);
        fair_deinit(&link->entry);
        sd_event_source_disable_unref(link->join_timer);
        sd_event_source_disable_unref(link->source);
        account_give(&link->charge, ACCOUNT_REQUESTS, 1);
        unread_hang_up(link->manager->unread, &link->unread, &link->charge, link->fd, link->payer);
        free(link);
        return NULL;
}

int gate_link_send(struct gate_link *link, void *message, size_t size, const int *fds, size_t n_fds)
{
        struct gate_header *header = message;
        int r;

        header->version = link->version;
        unread_settle(&link->unread, &link->charge,
                      link->fd); /* this message is unread afterwards */
        r = packet_send(link->fd, message, size, fds, n_fds);
        if (r == 0)
                unread_force(link->manager->unread, &link->unread, &link->charge, link->fd,
                             link->payer, n_fds);
        if (r == -EAGAIN)
                sd_event_source_set_io_events(link->source, GATE_LINK_EVENTS | EPOLLOUT);
        return r;
}
