/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_TICKET_H
#define GATE_TICKET_H

/*
 * The application gets a ticket when it exports memory (struct gate_ticket in wire/gate.h).
 *
 * A ticket names memory and is not the memory. So the memory can be let go and made anew while
 * tickets for it are anywhere: in another process, in a socket, in a file. For descriptors it is
 * the contents of a sealed memfd, which passes through SCM_RIGHTS and fork() as a real one does; for
 * legacy IPC it is the 64 bytes of the handle. Those of memory pools are in pool-ticket.h.
 */

#include <stdbool.h>

#include "wire/gate.h"

/* ticket_identify() - name this process in the ticket. False: this process is in no vGPU. */
bool ticket_identify(struct gate_ticket *ticket);

/* ticket_get_slot() - what its tickets say of its slot, and 1; 0: there are none. */
uint32_t ticket_get_slot(void);

/* ticket_is_own() - did this process make its memory? */
bool ticket_is_own(const struct gate_ticket *ticket);

/* ticket_is() - can these bytes be a ticket? */
bool ticket_is(const struct gate_ticket *ticket);

/* ticket_to_fd() - make a sealed memfd, which the caller closes or hands out. Errors: those of memfd_create(2). */
int ticket_to_fd(const struct gate_ticket *ticket);

/* ticket_from_fd() - read a ticket from @fd; false: it is something else. */
bool ticket_from_fd(struct gate_ticket *ret_ticket, int fd);

/* ticket_make_name() - make a name that nobody can guess. Errors: those of getrandom(2). */
int ticket_make_name(uint8_t name[GATE_NAME_SIZE]);

#endif
