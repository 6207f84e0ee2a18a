/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_OFFER_H
#define GATE_OFFER_H

/*
 * What this process gives of its memory to others: a mapping that is exported gets a name, which its tickets
 * (ticket.h) bear, and who shows a ticket to the manager is offered a descriptor of the memory.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

/*
 * offer_make() - a descriptor of the memory that bears @name, for the agent. @is_closed: is the gate?
 * Errors: -ENOENT, there is none (any more); -EAGAIN, it is not there just now; -EBUSY, the
 * gate must be closed for that; -EIO, the driver failed.
 */
int offer_make(int *ret_fd, const uint8_t name[GATE_NAME_SIZE], bool is_closed);

#endif
