/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/gate-link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/packet.h"
#include "daemon/log.h"
#include "manager/model/manager.h"
#include "wire/gate.h"

/*
 * A busy machine takes a moment to close what a process has shared by the thousand. Who has sent descriptors whose
 * closing takes for ever gets no more than that.
 */
#define REST_US     5000
#define REST_MAX_NS 10000000000ull

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
        sd_event_source_disable_unref(link->rest_timer);
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

/* The source tells of what is there by now, and of what has come meanwhile. */
static int on_rested(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct gate_link *link = userdata;

        (void)source, (void)usec;
        link->rest_timer = sd_event_source_disable_unref(link->rest_timer);
        (void)sd_event_source_set_io_events(link->source, GATE_LINK_EVENTS | EPOLLOUT);
        (void)sd_event_source_set_enabled(link->source, SD_EVENT_ON);
        return 0;
}

bool gate_link_rest(struct gate_link *link)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (link->resting_ns == 0)
                link->resting_ns = now_ns;
        if (now_ns - link->resting_ns > REST_MAX_NS) {
                log_event_of(link->payer, LOG_LEVEL_WARNING,
                             "hung up on a gate whose user sent descriptors that cannot be closed",
                             "pid=%d uid=%u", (int)link->peer.pid, link->payer);
                return false;
        }
        if (sd_event_add_time_relative(link->manager->event, &link->rest_timer, CLOCK_MONOTONIC,
                                       REST_US, 1000, on_rested, link) < 0)
                return false;
        (void)sd_event_source_set_enabled(link->source, SD_EVENT_OFF);
        return true;
}

void gate_link_go_on(struct gate_link *link)
{
        link->resting_ns = 0;
}
