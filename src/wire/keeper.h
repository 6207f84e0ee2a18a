/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_KEEPER_H
#define WIRE_KEEPER_H

/*
 * The messages between the manager and the keeper, over a SOCK_SEQPACKET
 * connection to PATHS_KEEPER_SOCKET.
 *
 * The keeper holds file descriptors under labels and does nothing else, so that
 * there is nothing in it that can fail. It serves one connection at a time, to a
 * process of its own user; a new manager that connects takes over. It ends when
 * it holds nothing and nobody is connected.
 *
 *     PUT  labels, each with its fd  ->  DONE   all of them or none; a label in use is replaced
 *     DROP labels                    ->  DONE   -ENOENT if one was not there; the others are gone
 *     LIST                           ->  ITEMS (labels, each with its fd) until it was all, then
 *     DONE
 *
 * A packet has up to KEEPER_BATCH_MAX labels and is as long as they are many: whoever has thousands
 * of descriptors does not wait thousands of times.
 *
 * The manager chooses the labels, which say what a descriptor is. The keeper knows only two kinds
 * of labels, and acts on them when its connection to the manager ends for whatever reason: a
 * descriptor under KEEPER_PLAN is a plan to let a process on its device again (channels/plan.h), by
 * means of the descriptor under KEEPER_PROCESS with the same rest of the label. The keeper carries
 * out the plan and drops both. If this fails, the keeper tries again, ten times a second, until the
 * process is on its device or has ended, or a manager puts the same label again. LIST does not list
 * such plans.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/packet.h"

#define KEEPER_WIRE_MAGIC   0x5045454bu /* "KEEP" */
#define KEEPER_WIRE_VERSION 2u
#define KEEPER_LABEL_MAX    120
#define KEEPER_BATCH_MAX    PACKET_FDS_MAX
#define KEEPER_PLAN         "plan/"
#define KEEPER_PROCESS      "process/"

enum keeper_message { KEEPER_PUT = 1, KEEPER_DROP, KEEPER_LIST, KEEPER_DONE, KEEPER_ITEMS };

struct keeper_packet {
        uint32_t magic;
        uint16_t version;
        uint16_t message;                               /* enum keeper_message */
        int32_t error;                                  /* DONE: 0 or a negative errno */
        uint32_t count;                                 /* of labels */
        char label[KEEPER_BATCH_MAX][KEEPER_LABEL_MAX]; /* each ends with NUL */
};

_Static_assert(sizeof(struct keeper_packet) <= PACKET_SIZE_MAX, "it is one packet");

static inline size_t keeper_packet_size(uint32_t count)
{
        return offsetof(struct keeper_packet, label) + count * (size_t)KEEPER_LABEL_MAX;
}

/* keeper_packet_begin() - without labels; what is behind them is not sent. */
static inline void keeper_packet_begin(struct keeper_packet *packet, enum keeper_message message,
                                       int error)
{
        packet->magic = KEEPER_WIRE_MAGIC;
        packet->version = KEEPER_WIRE_VERSION;
        packet->message = (uint16_t)message;
        packet->error = error;
        packet->count = 0;
}

/* keeper_packet_is_whole() - of our version, and its labels are all there and end. */
static inline bool keeper_packet_is_whole(const struct keeper_packet *packet, size_t size)
{
        if (size < keeper_packet_size(0) || packet->magic != KEEPER_WIRE_MAGIC ||
            packet->version != KEEPER_WIRE_VERSION || packet->count > KEEPER_BATCH_MAX ||
            size != keeper_packet_size(packet->count))
                return false;
        for (uint32_t i = 0; i < packet->count; i++)
                if (!memchr(packet->label[i], '\0', KEEPER_LABEL_MAX))
                        return false;
        return true;
}

#endif
