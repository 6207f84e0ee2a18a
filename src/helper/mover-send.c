/* SPDX-License-Identifier: Apache-2.0 */
/* Sends messages to a mover: non-blocking, in order, with duplicates of waiting descriptors. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/packet.h"
#include "helper/mover-internal.h"

struct queued_packet {
        struct queued_packet *next;
        size_t size;
        size_t n_fds;
        int fds[PACKET_FDS_MAX];
        char bytes[];
};

static void queued_packet_free(struct queued_packet *packet)
{
        if (packet)
                packet_close_fds(packet->fds, packet->n_fds);
        free(packet);
}

DEFINE_CLEANUP(struct queued_packet *, queued_packet_free);

static int enqueue(struct mover *mover, const void *message, size_t size, const int *fds,
                   size_t n_fds)
{
        CLEANUP(queued_packet_freep) struct queued_packet *packet = NULL;
        int r;

        packet = calloc(1, sizeof(*packet) + size);
        if (!packet)
                return -ENOMEM;

        memcpy(packet->bytes, message, size);
        packet->size = size;
        for (; packet->n_fds < n_fds; packet->n_fds++) {
                packet->fds[packet->n_fds] = fcntl(fds[packet->n_fds], F_DUPFD_CLOEXEC, 3);
                if (packet->fds[packet->n_fds] < 0)
                        return -errno;
        }

        r = sd_event_source_set_io_events(mover->source, EPOLLIN | EPOLLOUT);
        if (r < 0)
                return r;
        *mover->queue_end = packet;
        mover->queue_end = &TAKE(packet)->next;
        return 0;
}

int mover_send(struct mover *mover, const void *message, size_t size, const int *fds, size_t n_fds)
{
        int r = -EAGAIN;

        if (mover->socket < 0)
                return -ECONNRESET;
        if (!mover->queue)
                r = packet_send(mover->socket, message, size, fds, n_fds);
        if (r == -EAGAIN)
                r = enqueue(mover, message, size, fds, n_fds);
        return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

int mover_send_queue(struct mover *mover)
{
        while (mover->queue) {
                struct queued_packet *packet = mover->queue;
                int r = packet_send(mover->socket, packet->bytes, packet->size, packet->fds,
                                    packet->n_fds);

                if (r < 0)
                        return r;
                mover->queue = packet->next;
                if (!mover->queue)
                        mover->queue_end = &mover->queue;
                queued_packet_free(packet);
        }
        return sd_event_source_set_io_events(mover->source, EPOLLIN);
}

struct mover_header mover_make_header(enum mover_message message, uint32_t id, uint32_t job)
{
        return (struct mover_header){ .magic = MOVER_WIRE_MAGIC,
                                      .version = MOVER_WIRE_VERSION,
                                      .message = (uint16_t)message,
                                      .id = id,
                                      .job = job };
}

int mover_request(struct mover *mover, void *message, size_t size, const int *fds, size_t n_fds,
                  struct pending waiting)
{
        CLEANUP(freep) struct pending *pending = malloc(sizeof(*pending));
        struct mover_header *head = message;
        int r;

        if (!pending)
                return -ENOMEM;

        *pending = waiting;
        pending->id = head->id = ++mover->last_id;
        r = mover_send(mover, message, size, fds, n_fds);
        if (r < 0)
                return r;

        pending->next = mover->pending;
        mover->pending = TAKE(pending);
        return 0;
}

void mover_drop_queue(struct mover *mover)
{
        while (mover->queue) {
                struct queued_packet *packet = mover->queue;

                mover->queue = packet->next;
                queued_packet_free(packet);
        }
        mover->queue_end = &mover->queue;
}
