/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GATES_H
#define MANAGER_GATES_H

/*
 * One request to the gates of all guests of an operation, as far as their states
 * ask for it, with what their answers mean for the operation.
 *
 * A guest that dies meanwhile is no failure: its part is over.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

struct guest;
struct guest_answer;
struct operation;

/* Creating or mapping thousands of pieces takes a second; more than this is a hang. */
#define GATES_ANSWER_MS 30000

void gates_close(struct operation *operation);   /* those that are open */
void gates_export(struct operation *operation);  /* all; fills guest->memory */
void gates_release(struct operation *operation); /* those that have their memory mapped */
void gates_create(struct operation *operation);  /* those that have released it */
void gates_open(struct operation *operation);    /* those that are closed with memory mapped */

/* gates_what_keeps() - what of @holds (GATE_HOLDS_*, not 0) the driver cannot checkpoint, in words. */
const char *gates_what_keeps(uint32_t holds);

/*
 * gates_failed() - has the step failed for @guest, as this answer of its gate says? Not if it has died,
 * and not if it has to be let go, which is done: the others go on.
 */
bool gates_failed(struct operation *operation, struct guest *guest,
                  const struct guest_answer *answer);

/* gates_fail() - the step has failed, as @answer of @guest's gate says. */
void gates_fail(struct operation *operation, struct guest *guest,
                const struct guest_answer *answer);

/*
 * gates_expect() - are all in @state? If not, the operation fails: a gate that lost its connection
 * has opened by itself meanwhile, and its memory is in use.
 */
bool gates_expect(struct operation *operation, enum gate_state state);

/* gates_gather() - wait for those to come back that are away with their memory released. */
void gates_gather(struct operation *operation);

#endif
