/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_IMPORT_H
#define GATE_IMPORT_H

/*
 * Memory of other processes: who imports it asks the manager, with the ticket, for the driver's
 * descriptor, which the gate of the process that made the memory exports.
 *
 * The agent receives the answer and gives the descriptor to the driver at once, so descriptors of
 * other processes' memory are only ever in the agent's hands. One question is under way at a time:
 * of a thread of the application while the gate is open, of the agent while it is closed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/move.h"
#include "gate/vmm.h"
#include "wire/gate.h"

/*
 * import_open() - the memory of @ticket, for the calling thread of the application. Waits while it is
 * away with its vGPU; the gate may close meanwhile. @ret_physical has one user, the caller.
 */
CUresult import_open(struct physical **ret_physical, const struct gate_ticket *ticket);

/* For the agent. */

/* import_connect() - questions go to this socket from now on, and are asked again. -1: to nobody. */
void import_connect(int socket);

/* import_tell_used() - tell the manager whose memory we have. */
int import_tell_used(int socket);

/*
 * import_withdraw() - the gate is closed now: no thread of the application waits for an answer any more.
 * It asks again when the gate is open.
 */
void import_withdraw(void);

/*
 * import_answer() - the manager has answered; @fd stays the caller's. -EPROTO: that was never asked.
 * -ESTALE: nobody waits for that any more.
 */
int import_answer(const struct gate_imported *answer, int fd);

/* import_let_go() - unmap and release all, and keep the addresses. All or none. */
int import_let_go(struct move *ret_move);

/* import_are_away() - have some been let go, and not been taken again? */
bool import_are_away(void);

/* import_give_up() - forget memory that is away: it does not come back. */
void import_give_up(void);

/*
 * import_take() - begin to take all again that were let go; or only to ask whether that is possible,
 * for all. import_take_next() after each answer: 1, the next was asked for; 0, that was all; or an
 * error, and those that are away are as they were. -EOWNERDEAD: the memory of one is gone for ever.
 */
int import_take(bool is_question);
int import_take_next(struct move *ret_move);

#endif
