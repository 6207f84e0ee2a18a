/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_BROADCAST_H
#define MANAGER_BROADCAST_H

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
#define BROADCAST_ANSWER_MS 30000

/* Of a process, guest->is_spoiled. */
#define BROADCAST_SPOILED \
        "can never be checkpointed again: once, the GPU had no memory left for that"

void broadcast_export(struct operation *operation);        /* all; fills guest->memory */
void broadcast_release(struct operation *operation);       /* those that have their memory mapped */
void broadcast_release_parts(struct operation *operation); /* those of which some may be created */
void broadcast_create(struct operation *operation);        /* those that have released it */
void broadcast_open(struct operation *operation); /* those that are closed with memory mapped */

/*
 * Memory of other processes (wire/gate.h). broadcast_ask_shared(): could those who have some take it again,
 * once they have let go of it? broadcast_take(): they do.
 */
void broadcast_ask_shared(struct operation *operation);
void broadcast_take(struct operation *operation);

/* broadcast_what_keeps() - what of @holds (GATE_HOLDS_*, not 0) the driver cannot checkpoint, in words. */
const char *broadcast_what_keeps(uint32_t holds);

/*
 * broadcast_failed() - has the step failed for @guest, as this answer of its gate says? Not if it has died,
 * and not if it has to be let go, which is done: the others go on.
 */
bool broadcast_failed(struct operation *operation, struct guest *guest,
                      const struct guest_answer *answer);

/* broadcast_fail() - the step has failed, as @answer of @guest's gate says. */
void broadcast_fail(struct operation *operation, struct guest *guest,
                    const struct guest_answer *answer);

/* broadcast_fail_stopped() - the step has failed, because the process of @guest is stopped. */
void broadcast_fail_stopped(struct operation *operation, const struct guest *guest);

/* broadcast_note_closed() - what the answer to a CLOSE or STEP means, unless it timed out. rest.h asks. */
void broadcast_note_closed(struct operation *operation, struct guest *guest,
                           const struct guest_answer *answer);

/*
 * broadcast_expect() - are all in @state? If not, the operation fails: a gate that lost its connection
 * has opened by itself meanwhile, and its memory is in use.
 */
bool broadcast_expect(struct operation *operation, enum gate_state state);

/* broadcast_gather() - wait for those to come back that are away with their memory released. */
void broadcast_gather(struct operation *operation);

#endif
