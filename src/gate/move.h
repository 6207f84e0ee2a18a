/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_MOVE_H
#define GATE_MOVE_H

/*
 * The steps of a move, for the agent while the gate is closed. Each is done entirely or not at all.
 *
 * They return 0 or -errno (-EIO: the driver failed), and say which call failed and how.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "wire/gate.h"

struct move {
        uint64_t bytes;   /* of what the step dealt with */
        uint32_t count;   /* and how many pieces */
        const char *call; /* that failed, or "" */
        CUresult code;    /* of the driver, or CUDA_SUCCESS */
};

/* move_count() - count the memory that can be moved. */
struct move move_count(void);

/* move_export() - send descriptors of all movable memory, as ALLOCATIONS messages. */
int move_export(struct move *ret_move, int socket);

/* move_release() - give the memory of @range back to the driver; the addresses stay reserved. */
int move_release(struct move *ret_move, struct gate_range range);

/* move_create() - make memory at all addresses of @range that have none, and send it as move_export() does. */
int move_create(struct move *ret_move, struct gate_range range, int socket);

/* move_is_complete() - has every address its memory? */
bool move_is_complete(void);

/*
 * move_attach() - memory behind @fds at the addresses of @batch; the descriptors that are used are
 * taken out of @fds. After the last batch all addresses must have memory. move_detach() undoes the
 * batches so far, until move_keep().
 */
int move_attach(struct move *ret_move, const struct gate_allocations *batch, int *fds);
void move_detach(void);
void move_keep(void);

#endif
