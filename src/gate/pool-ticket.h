/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_POOL_TICKET_H
#define GATE_POOL_TICKET_H

/*
 * What tickets (ticket.h) of exported pools and of pointers into them say in their offset and size.
 *
 * The ticket of a pool has the pool's name, which names no memory: all that can be done with it is to say which
 * pointers are of this pool. The ticket of a pointer has the name of the piece of memory that the allocation lies
 * in, and where it lies there. Neither is taken for a ticket of other memory, nor for one of legacy IPC: they have
 * an offset and a size that no memory has.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

/* pool_ticket_write() - @device tells the pool's device from others. pool_ticket_read() - false: of no pool. */
void pool_ticket_write(struct gate_ticket *ticket, uint64_t device);
bool pool_ticket_read(const struct gate_ticket *ticket, uint64_t *ret_device);

struct pool_place {
        uint32_t pool;         /* pool_ticket_mark() of its name */
        uint64_t offset, size; /* of the allocation in the piece */
        uint64_t piece;        /* the size of that */
};

/* pool_ticket_mark() - what a pointer's ticket says of the pool called @name, for there is no room for all of it. */
uint32_t pool_ticket_mark(const uint8_t name[GATE_NAME_SIZE]);

/* pool_place_write() - false: it is too large. pool_place_read() - false: of no pointer; @ret_place makes sense. */
bool pool_place_write(struct gate_ticket *ticket, const struct pool_place *place);
bool pool_place_read(const struct gate_ticket *ticket, struct pool_place *ret_place);

#endif
