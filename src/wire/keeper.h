/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_KEEPER_H
#define WIRE_KEEPER_H

/*
 * What the manager and the keeper say to each other, over a SOCK_SEQPACKET
 * connection to PATHS_KEEPER_SOCKET.
 *
 * The keeper holds file descriptors under labels and does nothing else, so that
 * there is nothing in it that can fail. It serves one connection at a time, to a
 * process of its own user; a new manager that connects takes over. It ends when
 * it holds nothing and nobody is connected.
 *
 *     PUT  label + 1 fd    ->  DONE     a label in use is replaced
 *     DROP label           ->  DONE     -ENOENT if there is no such label
 *     LIST                 ->  ITEM (label + 1 fd) for each, then DONE
 *
 * Labels are the manager's: it finds in them what a descriptor is. But two kinds the keeper knows, and
 * acts on when its connection to the manager ends, whatever ended it: what is under KEEPER_PLAN is a
 * plan to let a process on its device again (channels/plan.h), by means of the descriptor under
 * KEEPER_PROCESS with the same rest of the label. It carries the plan out and drops both.
 */

#include <stdint.h>

#define KEEPER_WIRE_MAGIC   0x5045454bu /* "KEEP" */
#define KEEPER_WIRE_VERSION 1u
#define KEEPER_LABEL_MAX    120
#define KEEPER_PLAN         "plan/"
#define KEEPER_PROCESS      "process/"

enum keeper_message { KEEPER_PUT = 1, KEEPER_DROP, KEEPER_LIST, KEEPER_DONE, KEEPER_ITEM };

struct keeper_packet {
        uint32_t magic;
        uint16_t version;
        uint16_t message;             /* enum keeper_message */
        int32_t error;                /* DONE: 0 or a negative errno */
        uint32_t count;               /* DONE after LIST: how many items */
        char label[KEEPER_LABEL_MAX]; /* ends with NUL */
};

#endif
